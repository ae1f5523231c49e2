"""The seam to what clocks said: so that one that jumped is found out, on whichever machine it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from redrive.uptime import NotedClock


class ClockNoteStore(Protocol):
    async def noted_clocks(self) -> list[NotedClock]:
        """The last note of each start of each machine, the latest first. A store is made with one."""
        ...

    async def note_clock(self, noted: NotedClock) -> None:
        """In the place of what the same start has noted before. Those that are much older than this one go."""
        ...
