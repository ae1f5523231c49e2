"""`/run-plans`: what a run would be before it is made, for those who ask before they decide."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Header, Request
from starlette.responses import Response

from redrive.access import Permission
from redrive.api import run_wire as wire
from redrive.api.problems import Unprocessable
from redrive.api.routes import AtDesk, Routes, answer, taken
from redrive.letter_query import MAX_PAGE
from redrive.run import Approval, Brakes, Canary
from redrive.run_actions import EditedSample
from redrive.run_request import LONGEST_KEY

run_plans = Routes("Runs")


class UsualRun(msgspec.Struct, kw_only=True):
    """What a run is where nobody says otherwise."""

    rate: float | None
    canary: Canary
    brakes: Brakes


class PlannedJson(msgspec.Struct, kw_only=True):
    """How many letters the run would send now, and the approval that it would need."""

    count: int
    approval: Approval | None


class RunMade(msgspec.Struct):
    run: wire.RunJson | None
    """null: none was made by that key."""


class SamplesAsked(msgspec.Struct, kw_only=True):
    """A run, and letters that its edit and schema are tried on."""

    run: wire.RunRequest
    ids: list[str]
    """At most 500."""


class EditedSamples(msgspec.Struct):
    items: list[EditedSample]


@run_plans.at(
    "GET", "/run-plans/usual", Permission.READ, answers=UsualRun, summary="What the settings say about runs"
)
async def usual(desk: AtDesk) -> Response:
    found = await desk.usual_run()
    return answer(UsualRun(rate=found.rate, canary=found.canary, brakes=found.brakes))


@run_plans.at(
    "POST",
    "/run-plans",
    Permission.REDRIVE,
    takes=wire.RunRequest,
    answers=PlannedJson,
    summary="How many letters a run would send, and what it needs; makes nothing",
)
async def plan(
    request: Request, desk: AtDesk, asked: Annotated[wire.RunRequest, taken(wire.RunRequest)]
) -> Response:
    found = await desk.plan_run(asked.plan(desk.run_policy, request.app.state.door.clock.now()))
    return answer(PlannedJson(count=found.count, approval=found.approval))


@run_plans.at(
    "POST",
    "/run-plans/made",
    Permission.REDRIVE,
    takes=wire.RunRequest,
    answers=RunMade,
    summary="The run that was made by that Idempotency-Key, if there is one",
)
async def made(
    request: Request,
    desk: AtDesk,
    asked: Annotated[wire.RunRequest, taken(wire.RunRequest)],
    key: Annotated[str, Header(alias="Idempotency-Key", max_length=LONGEST_KEY)],
) -> Response:
    plan = asked.plan(desk.run_policy, request.app.state.door.clock.now())
    found = await desk.run_made_by(key, plan)
    return answer(RunMade(None if found is None else wire.run_json(await desk.report(found.id))))


@run_plans.at(
    "POST",
    "/run-plans/samples",
    Permission.REDRIVE,
    takes=SamplesAsked,
    answers=EditedSamples,
    summary="What an edit and a schema say to these letters; changes nothing",
)
async def samples(request: Request, desk: AtDesk, asked: Annotated[SamplesAsked, taken(SamplesAsked)]) -> Response:
    if len(asked.ids) > MAX_PAGE:
        raise Unprocessable(f"{len(asked.ids)} letters at once", remedy=f"give at most {MAX_PAGE} ids")
    plan = asked.run.plan(desk.run_policy, request.app.state.door.clock.now())
    return answer(EditedSamples(await desk.edit_samples(plan, asked.ids)))
