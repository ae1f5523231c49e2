"""Large runs are counted seldom while they go on, and exactly as soon as they do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from redrive.run import Progress, RunStatus
from redrive.stores import sql_runs_recounting
from redrive.stores.sql_runs_recounting import LONG, Recounting
from redrive.testing import ManualClock


class Counter:
    """Counts one more each time, and takes its time."""

    def __init__(self, clock: ManualClock, takes: float) -> None:
        self._clock, self._takes, self._sent = clock, takes, 0

    def __call__(self, _connection: object, runs: list[Any]) -> dict[str, Progress]:
        if runs:
            self._clock.advance(self._takes)
            self._sent += 1
        return {run.id: Progress(sent=self._sent) for run in runs}


def _run(status: RunStatus = RunStatus.RUNNING) -> Any:
    return SimpleNamespace(id="run", status=status)


def _counted(monkeypatch: pytest.MonkeyPatch, takes: float) -> tuple[ManualClock, Any]:
    clock = ManualClock()
    monkeypatch.setattr(sql_runs_recounting, "progress_of", Counter(clock, takes))
    recounting = Recounting(clock)
    return clock, lambda run: recounting.progress_of(None, [run])["run"].sent  # type: ignore[arg-type]  # unused


def test_what_is_counted_quickly_is_counted_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    _, sent = _counted(monkeypatch, takes=LONG)

    assert [sent(_run()) for _ in range(3)] == [1, 2, 3]


def test_what_took_long_stands_for_ten_times_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sent = _counted(monkeypatch, takes=0.5)
    assert sent(_run()) == 1

    clock.advance(4.999)
    assert sent(_run()) == 1
    clock.advance(0.001)
    assert sent(_run()) == 2


@pytest.mark.parametrize("status", [each for each in RunStatus if each is not RunStatus.RUNNING])
def test_a_run_that_does_not_go_on_is_counted_anew(monkeypatch: pytest.MonkeyPatch, status: RunStatus) -> None:
    _, sent = _counted(monkeypatch, takes=5.0)
    assert sent(_run()) == 1

    assert [sent(_run(status)), sent(_run(status))] == [2, 3]
