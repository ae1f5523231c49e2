"""The seam to work that one process of all does at a time: who does it, and when it was done last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime


class DutyStore(Protocol):
    """Times are the store's own, so that processes whose clocks differ agree. A lease keeps others from beginning
    the same work; it does not stop whoever was suspended and goes on behind its end, so the work itself has to be
    safe to be done twice.
    """

    async def take_duty(self, name: str, *, holder: str, every: float, lease: float) -> datetime | None:
        """The store's time if the duty is the holder's from now on, for `lease` seconds: nobody else has it, and
        it was not done in the last `every` seconds. None: there is nothing to do here. A time that lies ahead was
        written by a clock that was wrong, and counts as none.
        """
        ...

    async def hold_duty(self, name: str, *, holder: str, lease: float) -> bool:
        """So many seconds more. False, and nothing is changed, if somebody else has it by now."""
        ...

    async def end_duty(self, name: str, *, holder: str, done: bool) -> bool:
        """It is nobody's any more; `done`: and next due after its time. False, and nothing is changed, if somebody
        else has it by now.
        """
        ...
