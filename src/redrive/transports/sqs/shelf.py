"""What was fetched of a queue and nobody has yet."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from redrive.transports.sqs.leases import Lease


class Shelf(Protocol):
    @property
    def ready(self) -> int:
        """How many can be taken now."""
        ...

    @property
    def full(self) -> bool:
        """It holds so much that waits that no more should be fetched."""
        ...

    def put(self, leases: Iterable[Lease]) -> None: ...

    def take(self) -> Lease | None: ...

    def due_in(self) -> float | None:
        """Seconds until one can be taken that waits; None: none does."""
        ...

    def spare(self, count: int) -> list[Lease]:
        """Takes away so many of those that are ready, the last ones, with what waits behind them."""
        ...

    def rest(self) -> list[Lease]:
        """Takes away what is not worth keeping while nobody reads."""
        ...


class Pile:
    """Of a standard queue: all alike."""

    full = False

    def __init__(self) -> None:
        self._leases: deque[Lease] = deque()

    @property
    def ready(self) -> int:
        return len(self._leases)

    def put(self, leases: Iterable[Lease]) -> None:
        self._leases.extend(leases)

    def take(self) -> Lease | None:
        return self._leases.popleft() if self._leases else None

    def due_in(self) -> float | None:
        return None

    def spare(self, count: int) -> list[Lease]:
        return [self._leases.pop() for _ in range(min(count, len(self._leases)))]

    def rest(self) -> list[Lease]:
        return self.spare(len(self._leases))
