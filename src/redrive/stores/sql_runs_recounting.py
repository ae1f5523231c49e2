"""How often the letters of large runs are counted.

To count a million rows takes a second, and engines and people look at a run every second. So what took long to
count stands for a while, as long as the run goes on; of a run that has ended or pauses, every look is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from redrive.run import RunStatus
from redrive.stores.sql_runs_outcomes import progress_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row

    from redrive.clock import Clock
    from redrive.run import Progress

LONG = 0.05
"""Seconds. What is counted in less is counted anew every time."""
_TIMES = 10.0
"""It stands for so many times as long as it took: counting costs a tenth of a processor at most."""


class _Kept(NamedTuple):
    progress: Progress
    until: float


class Recounting:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    def progress_of(self, connection: Connection, runs: Sequence[Row[Any]]) -> dict[str, Progress]:
        begin = self._clock.monotonic()
        kept = {run.id: self._kept[run.id].progress for run in runs if self._stands(run, begin)}
        counted = progress_of(connection, [run for run in runs if run.id not in kept])
        end = self._clock.monotonic()
        if end - begin > LONG:
            until = end + (end - begin) * _TIMES
            self._kept |= {run_id: _Kept(progress, until) for run_id, progress in counted.items()}
        return kept | counted

    def _stands(self, run: Row[Any], now: float) -> bool:
        if run.status != RunStatus.RUNNING:
            self._kept.pop(run.id, None)
        return run.id in self._kept and now < self._kept[run.id].until
