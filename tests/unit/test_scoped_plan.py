"""Whose letters a run may take is kept with its plan, and is part of what was asked for."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from redrive.access import Scope
from redrive.letter_query import LetterQuery
from redrive.run import RunPlan
from redrive.stores import sql_runs_plan


def _plan(within: Scope) -> RunPlan:
    return RunPlan(selection=LetterQuery(queue="orders", within=within))


@pytest.mark.parametrize("within", [None, (), ("orders",), ("pay*", "p\u00e4y", "%")])
def test_a_plan_is_read_with_the_scope_it_was_written_with(within: Scope) -> None:
    assert sql_runs_plan.read(sql_runs_plan.write(_plan(within))) == _plan(within)


def test_a_plan_that_was_stored_before_there_were_scopes_has_none() -> None:
    stored = msgspec.json.decode(sql_runs_plan.write(_plan(None)))
    del stored["selection"]["within"]

    assert sql_runs_plan.read(msgspec.json.encode(stored)) == _plan(None)


def test_another_scope_is_another_request() -> None:
    plans = [_plan(each) for each in (None, (), ("orders",), ("orders*",))]

    assert len({plan.digest(1) for plan in plans}) == len(plans)
    assert replace(plans[0], reason="else").digest(1) == plans[0].digest(1)
