"""What clocks said before, kept in the store, so that a clock that jumped takes nothing out of it (F21).

Since one start of the machine, the wall clock and the time since that start must have gone on alike. Across
starts, and between machines, they cannot be compared: there a clock may be ahead of the latest note by as long as
a machine is usually off, and no more. Nothing else is a witness; letters are none, for the same wrong clock may
have dated them.

A clock that is doubted is not noted, and so is doubted again, however often it is tried, until it is put right or
a person says that it is right. After a new start a clock that is behind is believed: nothing goes too early by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.duration import short
from redrive.errors import Refused
from redrive.uptime import NotedClock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from redrive.clock import Clock
    from redrive.stores.clock_note_store import ClockNoteStore
    from redrive.uptime import Uptime

JUMP = 3600.0
_USUALLY_OFF = 2 * 86400.0
_SHARE = 0.1
"""Of the time that letters are kept: nothing goes earlier than by so much of it."""


class ClockNote:
    def __init__(self, store: ClockNoteStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def check(self, *, keep: float, is_right: bool = False) -> None:
        """Notes the clock. Refused, and it is not noted, if it may have jumped; `keep`: seconds after which
        something is about to go. `is_right`: a person says so.
        """
        now, running = self._clock.now(), self._clock.uptime()
        doubt = None if is_right else _doubt(now, running, await self._store.noted_clocks(), keep)
        if doubt is not None:
            raise Refused(
                f"{doubt}: nothing was changed",
                remedy=f"if it is {now:%Y-%m-%d %H:%M} UTC now, say so once: "
                "`redrive retention run --clock-is-right`; else set the clock right",
            )
        await self._store.note_clock(NotedClock(now, running))


def _doubt(now: datetime, running: Uptime, noted: Sequence[NotedClock], keep: float) -> str | None:
    """What speaks against the clock, if anything does. `noted`: the latest first."""
    own = next((each for each in noted if running.boot and each.uptime.boot == running.boot), None)
    if own is not None:
        jumped = (now - own.at).total_seconds() - (running.seconds - own.uptime.seconds)
        which_way = "ahead" if jumped > 0 else "back"
        told = f"the clock jumped {short(abs(jumped))} {which_way} since it was looked at last"
        return told if abs(jumped) > JUMP else None
    if not noted:
        return "no clock was ever noted in this store, so that nobody knows whether this one is right"
    silence = (now - noted[0].at).total_seconds()
    if silence > min(_USUALLY_OFF, max(JUMP, keep * _SHARE)):
        return f"the clock is {short(silence)} ahead of the last one that was noted in the store"
    return None
