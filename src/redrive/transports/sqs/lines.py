"""What was fetched of a FIFO queue: a line for each message group, of which only the first may be in hand.

1. SQS gives several messages of a group at once, and no more of it until none of them is in flight. Those behind
   the first wait here, their leases kept, until the one before them is deleted.
2. The first may have to wait: for its next attempt, or because it was sent with a delay. Its line waits with it,
   other lines do not.
3. Whatever else happens to one (its lease is lost, it is given back), those behind it are no longer ours to hand
   out: somebody may get it, and they would come before it. They are given back.
4. What a message went through here is remembered when it is given back, and believed if it comes again and nobody
   has received it meanwhile.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from redrive.epoch import microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from redrive.transports import Delivery
    from redrive.transports.sqs.leases import Lease

_MOST_WAITING = 500
"""Lines whose first message waits. Each has ten messages at most."""
_MOST_REMEMBERED = 1000


class Line:
    def __init__(self, group: str) -> None:
        self.group = group
        self.leases: deque[Lease] = deque()
        self.in_hand = False
        """Its first."""

    @property
    def due(self) -> int:
        return self.leases[0].due


class Lines:
    """`now`: microseconds since 1970. `is_ours` tells whether a lease holds; `give_back` makes those messages
    visible to others soon that are still ours and that nobody has in hand.
    """

    def __init__(
        self,
        *,
        now: Callable[[], int],
        is_ours: Callable[[Lease], bool],
        give_back: Callable[[list[Lease]], None],
    ) -> None:
        self._now = now
        self._is_ours = is_ours
        self._give_back = give_back
        self._lines: dict[str, Line] = {}
        self._remembered: dict[str, tuple[int, Delivery]] = {}

    @property
    def ready(self) -> int:
        return sum(1 for _ in self._ready())

    @property
    def full(self) -> bool:
        return sum(1 for _ in self._waiting()) >= _MOST_WAITING

    def put(self, leases: Iterable[Lease]) -> None:
        """In the order in which SQS gave them."""
        came = {lease.arrived.id: lease for lease in leases}
        for group in {lease.group for lease in came.values()} & self._lines.keys():
            self._check(self._lines[group], came)
        for lease in came.values():
            lease.line = self
            self._recall(lease)
            line = self._lines.setdefault(lease.group, Line(lease.group))
            line.leases.append(lease)

    def take(self) -> Lease | None:
        line = next(self._ready(), None)
        if line is None:
            return None
        line.in_hand = True
        self._lines[line.group] = self._lines.pop(line.group)  # the others' turn
        return line.leases[0]

    def due_in(self) -> float | None:
        first = min((line.due for line in self._waiting()), default=None)
        return None if first is None else max(first - self._now(), 0) / 1e6

    def spare(self, count: int) -> list[Lease]:
        """Of those that were not tried: another process would begin anew with the others."""
        chosen = [line for line in self._ready() if line.leases[0].again is None][-count:] if count else []
        return [lease for line in chosen for lease in self._cut(line, 0)]

    def rest(self) -> list[Lease]:
        """One that was tried is kept: another process would begin anew with it."""
        return [
            lease
            for line in list(self._lines.values())
            if line.in_hand or line.leases[0].again is None
            for lease in self._cut(line, 1 if line.in_hand else 0)
        ]

    def wait(self, lease: Lease, again: Lease) -> None:
        """The one in hand waits in its place, as `again`."""
        line = self._line_of(lease)
        if line is not None:
            line.leases[0] = again
            line.in_hand = False

    def settled(self, lease: Lease) -> None:
        """It is no longer held. Unless it was deleted, nothing behind it is ours to hand out."""
        line = self._line_of(lease)
        if line is None:
            return
        if not lease.deleted:
            self._leave(line, line.leases.index(lease))
            return
        line.leases.remove(lease)
        line.in_hand = False
        if not line.leases:
            del self._lines[line.group]

    def lost(self, lease: Lease) -> None:
        """Whoever has it in hand is told when they settle it; nobody is given those behind it."""
        line = self._line_of(lease)
        if line is not None:
            self._leave(line, line.leases.index(lease) + 1)

    def _ready(self) -> Iterator[Line]:
        now = self._now()
        return (line for line in self._lines.values() if not line.in_hand and line.due <= now)

    def _waiting(self) -> Iterator[Line]:
        now = self._now()
        return (line for line in self._lines.values() if not line.in_hand and line.due > now)

    def _line_of(self, lease: Lease) -> Line | None:
        line = self._lines.get(lease.group)
        return line if line is not None and lease in line.leases else None

    def _check(self, line: Line, came: Collection[str]) -> None:
        """SQS gives more of a group when it takes what is held of it for lost: from there on it is."""
        for place, lease in enumerate(line.leases):
            lease.lost = lease.lost or lease.arrived.id in came
            if not self._is_ours(lease):
                self._leave(line, place)
                return

    def _leave(self, line: Line, first: int) -> None:
        """From there on."""
        self._give_back(self._cut(line, first))

    def _cut(self, line: Line, first: int) -> list[Lease]:
        cut = [line.leases.pop() for _ in range(len(line.leases) - first)][::-1]
        for lease in cut:
            self._remember(lease)
        if not line.leases:
            del self._lines[line.group]
        return cut

    def _remember(self, lease: Lease) -> None:
        if lease.again is None:
            return
        self._remembered[lease.arrived.id] = (lease.arrived.receptions, lease.again)
        if len(self._remembered) > _MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]

    def _recall(self, lease: Lease) -> None:
        receptions, again = self._remembered.pop(lease.arrived.id, (0, None))
        if again is not None and lease.arrived.receptions == receptions + 1:
            lease.again = again
            lease.due = 0 if again.due_since is None else microseconds(again.due_since)
