"""Why a run pauses by itself, in words that tell what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from redrive.brakes import Brakeman
from redrive.errors import PublishRefused
from redrive.run import Brakes


def test_a_run_that_errors_have_paused_names_the_remedy() -> None:
    run: Any = SimpleNamespace(plan=SimpleNamespace(brakes=Brakes(publish_errors=1)))
    nobody: Any = None
    brakeman = Brakeman(run, store=nobody, transport=nobody, clock=nobody)
    error = PublishRefused("there is no queue 'orders'", permanent=False, remedy="run `redrive setup`")
    told = brakeman.failed(error)
    assert told == "1 publish error in a row: there is no queue 'orders' (run `redrive setup`)"
