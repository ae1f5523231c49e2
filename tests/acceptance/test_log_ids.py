"""Which run a line of the log is about."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from redrive.access import local
from redrive.actions import Actions
from redrive.engine import RedriveEngine
from redrive.letter_query import LetterQuery
from redrive.run import RunPlan
from redrive.telemetry.detail import Detail
from redrive.telemetry.logs import configure_logs
from support.api_house import open_house

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    configure_logs(level="debug", style="json")
    monkeypatch.undo()
    yield told
    structlog.reset_defaults()


async def test_every_line_of_a_run_bears_its_id_and_that_of_no_other(logged: io.StringIO, tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        parts: dict[str, Any] = {"store": house.store, "transport": house.transport, "clock": house.clock}
        desk = Actions(**parts, who=local("test"))
        run_of: dict[str, str] = {}
        for _ in range(2):
            letter_id = await house.letter()
            plan = RunPlan(selection=LetterQuery(ids=(letter_id,)))
            run_of[letter_id] = (await desk.create_run(await desk.plan_run(plan))).id
        engine = RedriveEngine(**parts, owner="test", spans=Detail())
        await asyncio.gather(*(engine.carry_out(run_id) for run_id in run_of.values()))
        structlog.get_logger("redrive.test").info("afterwards")

    *lines, last = [json.loads(line) for line in logged.getvalue().splitlines()]
    sent = [line for line in lines if line["event"] == "message sent back"]
    assert {line["letter_id"]: line["run_id"] for line in sent} == run_of
    changed = [line["run_id"] for line in lines if line["event"] == "a run has been changed"]
    assert sorted(changed) == sorted(run_of.values())
    assert last["event"] == "afterwards"
    assert "run_id" not in last
