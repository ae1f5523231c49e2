"""What a test wants to go wrong in the emulator, planned for the next time that a point is reached."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from support.servicebus.refusals import Refusal


class Point(Enum):
    """Where something can be asked of the emulator. Each asks first, then is done, then answered."""

    TOKEN = "token"  # noqa: S105  a point, not a secret
    ATTACH = "attach"
    SEND = "send"
    SETTLE = "settle"
    MANAGE = "manage"


@dataclass(frozen=True)
class Fault:
    """One of these."""

    cut_before: bool = False
    """The line is cut before anything is done."""
    cut_after: bool = False
    """It is done, and the line is cut before the answer."""
    refuse: Refusal | None = None
    """It is not done, and this is the answer."""
    hold: asyncio.Event | None = None
    """It is done, and the answer comes when this is set."""


NONE = Fault()


class Faults:
    def __init__(self) -> None:
        self._planned: dict[Point, deque[Fault]] = defaultdict(deque)
        self.reached: Counter[Point] = Counter()
        """How often, so far."""

    def plan(self, point: Point, *faults: Fault) -> None:
        """The next times that this point is reached, one each."""
        self._planned[point].extend(faults)

    def take(self, point: Point) -> Fault:
        self.reached[point] += 1
        planned = self._planned[point]
        return planned.popleft() if planned else NONE
