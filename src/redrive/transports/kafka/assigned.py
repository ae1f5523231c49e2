"""One partition while it is ours: what of it is in hand, and up to where everything is done.

Only a *watermark* is ever committed: the offset before which nothing is left to do. Records are done in any order;
the watermark waits for the slowest. So that a crash repeats no more than that allows, no record is handed out that
is further than `span` from it; where they go one by one, none while the one before it is not done.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from redrive.errors import LeaseLost

if TYPE_CHECKING:
    from redrive.transports.kafka.subscription import Subscription, Taker, Waiting  # noqa: TC004  never decoded

NEVER = -1
"""No offset: nothing was committed."""


class AssignedPartition:
    """Belongs to the event loop. `watermark`, `committed` and `halted` are read by the thread that polls, which
    may also say that it is `lost`.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        *,
        name: str = "",
        partitions: int = 0,
        group: str = "",
        start: int,
        suspect_until: int,
        span: int,
        ahead: int,
        one_by_one: bool = False,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.name = name
        """What the identities of its records begin with."""
        self.partitions = partitions
        """How many its topic has; 0: not known."""
        self.group = group
        self.watermark = start
        self.committed = start
        self.suspect_until = suspect_until
        """Records before it may have been in the hands of a process that died."""
        self.lost = False
        """It belongs to somebody else: nothing of it may be settled any more."""
        self.halted = False
        """No more of it may come for now."""
        self.span = span
        self.ahead = ahead
        """So far from the watermark records are read; then its partition is halted."""
        self.one_by_one = one_by_one
        self.shut = False
        """One by one: the record whose turn it is is not done, so nothing behind it may be handed out."""
        self.pending: deque[Waiting] = deque()
        """Records that were read, and nobody has yet."""
        self.bytes = 0
        """Of those, and of those that are not due yet."""
        self.in_turn = False
        """It stands among the partitions that may have something to hand out."""
        self.in_hand = 0
        """Records that somebody has."""
        self._next = start
        self._open: deque[int] = deque()
        self._done: set[int] = set()

    @property
    def done_ahead(self) -> int:
        """Records that are done, and wait for an older one."""
        return len(self._done)

    @property
    def reach(self) -> int:
        return self._next - self.watermark

    def come(self, offset: int) -> bool:
        """False: it is before one that came, which happens in no log that goes on as it was."""
        if offset < self._next:
            return False
        if not self._open:
            self.watermark = offset  # what is left out before it was never a record of anybody's
        self._open.append(offset)
        self._next = offset + 1
        return True

    def reach_end(self, offset: int) -> None:
        """No record is left before that offset: what is between holds the marks of transactions."""
        self._next = max(self._next, offset)
        if not self._open:
            self.watermark = self._next

    def finish(self, offset: int) -> None:
        """That record is done for good, and will not come again if the next commit is made."""
        waiting = self._open
        if waiting and waiting[0] == offset:
            waiting.popleft()
            done = self._done
            while waiting and waiting[0] in done:
                done.remove(waiting.popleft())
            self.watermark = waiting[0] if waiting else self._next
        else:
            self._done.add(offset)


class Receipt(msgspec.Struct, eq=False):
    """One delivery of one record. Settled once."""

    subscription: Subscription
    record: Waiting
    taker: Taker
    open: bool = True

    @property
    def assigned(self) -> AssignedPartition:
        return self.record.assigned

    @property
    def place(self) -> dict[str, str | int]:
        assigned = self.record.assigned
        return {
            "messaging.destination.name": assigned.topic,
            "messaging.destination.partition.id": str(assigned.partition),
            "messaging.consumer.group.name": assigned.group,
            "messaging.kafka.offset": self.record.offset,
        }

    def claim(self) -> None:
        """LeaseLost if it was settled, or is being settled, or its partition is somebody else's."""
        if self.open and self.record.assigned.lost:
            self.open = False
            self.taker.put_down()  # there is room for another one
            raise LeaseLost("the partition of this delivery belongs to another consumer now")
        if not self.open:
            raise LeaseLost("this delivery was settled before")
        self.open = False

    def unclaim(self) -> None:
        """It could not be settled: somebody may try again."""
        self.open = True
