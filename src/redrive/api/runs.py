"""`/runs`: previewed, made, watched and decided about."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import msgspec
from fastapi import Path, Query, Request
from starlette.responses import Response, StreamingResponse

from redrive.access import Permission
from redrive.any_text_json import encoded
from redrive.api import run_wire as wire
from redrive.api.letter_wire import Reason
from redrive.api.routes import AtDesk, IdempotencyKey, Routes, answer, taken
from redrive.errors import RedriveError, TransitionRefused
from redrive.letter_query import MAX_PAGE, LetterQuery
from redrive.run import ENDED, RunChange, RunPlan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.actions import Actions
    from redrive.clock import Clock
    from redrive.run import Run

runs = Routes("Runs")

_SAMPLES = 5
_LOOK_EVERY = 1.0
_SILENT_FOR = 15.0
"""Seconds after which a stream without news says that it lives."""

RunId = Annotated[str, Path(description="The run's id, or a beginning that only it has.", max_length=64)]


async def one_letter(desk: Actions, letter_id: str, key: str | None) -> Run:
    """The run that sends this letter alone. Refused if its status does not allow that."""
    (whole_id,) = await desk.identify([letter_id])
    policy = desk.run_policy
    plan = RunPlan(
        selection=LetterQuery(ids=(whole_id,)), rate=policy.rate, canary=policy.canary, brakes=policy.brakes
    )
    if key is not None and (made := await desk.run_made_by(key, plan)) is not None:
        return made
    letter = await desk.letter(whole_id)
    sorted_out = await desk.sort_out([whole_id])
    if not sorted_out.pending:
        raise TransitionRefused(whole_id, "redrive", letter.status)
    return await desk.create_run(await desk.plan_run(plan), key=key)


def accepted(request: Request, run: Run, told: msgspec.Struct) -> Response:
    """With the run's own URL, as it is from outside."""
    return answer(told, HTTPStatus.ACCEPTED, location=request.url_for("show_run", run_id=run.id).path)


@runs.at(
    "POST",
    "/runs/preview",
    Permission.REDRIVE,
    takes=wire.RunRequest,
    answers=wire.PreviewJson,
    summary="What a run would do now, and what speaks against it; changes nothing",
)
async def preview(
    request: Request, desk: AtDesk, asked: Annotated[wire.RunRequest, taken(wire.RunRequest)]
) -> Response:
    plan = asked.plan(desk.run_policy, request.app.state.door.clock.now())
    found = await desk.preview_run(plan)
    samples = await desk.edit_samples(plan, [each.id for each in found.sample[:_SAMPLES]])
    return answer(wire.preview_json(found, samples))


@runs.at(
    "POST",
    "/runs",
    Permission.REDRIVE,
    takes=wire.RunRequest,
    answers=wire.RunAccepted,
    status=HTTPStatus.ACCEPTED,
    summary="Make a run: its selection is frozen, and engines carry it out",
)
async def create(
    request: Request,
    desk: AtDesk,
    asked: Annotated[wire.RunRequest, taken(wire.RunRequest)],
    key: IdempotencyKey = None,
) -> Response:
    plan = asked.plan(desk.run_policy, request.app.state.door.clock.now())
    made = None if key is None else await desk.run_made_by(key, plan)
    run = made or await desk.create_run(await desk.plan_run(plan), key=key)
    return accepted(request, run, wire.RunAccepted(wire.run_json(await desk.report(run.id))))


@runs.at("GET", "/runs", Permission.READ, answers=wire.RunPage, summary="List runs, newest first")
async def list_runs(
    desk: AtDesk,
    active: Annotated[bool, Query(description="Only those that have not ended.")] = False,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
    after: Annotated[str | None, Query(max_length=64, description="`next` of the page before.")] = None,
) -> Response:
    found, following = await desk.report_page(active=active, limit=limit, after=after)
    return answer(wire.RunPage([wire.run_json(each) for each in found], following))


@runs.at(
    "GET",
    "/approvals",
    Permission.APPROVE,
    answers=wire.RunPage,
    summary="Runs of others that wait for an approval which whoever asks could give",
)
async def approvals(desk: AtDesk, limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50) -> Response:
    return answer(wire.RunPage([wire.run_json(each) for each in await desk.approvals(limit=limit)]))


@runs.at(
    "GET",
    "/runs/{run_id}",
    Permission.READ,
    answers=wire.RunDetail,
    also=(HTTPStatus.NOT_FOUND,),
    summary="One run with its progress and its history",
)
async def show_run(run_id: RunId, desk: AtDesk) -> Response:
    report = await desk.report(run_id)
    return answer(wire.RunDetail(wire.run_json(report), await desk.run_history(report.run.id)))


@runs.at(
    "GET",
    "/runs/{run_id}/letters",
    Permission.READ,
    answers=wire.Outcomes,
    also=(HTTPStatus.NOT_FOUND,),
    summary="What became of each letter of a run",
)
async def outcomes(
    run_id: RunId,
    desk: AtDesk,
    after: Annotated[str, Query(description="`next` of the page before.", max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    found = await desk.outcome_page(run_id, after=after, limit=limit)
    following = found[-1].redrive_id if len(found) == limit else None
    return answer(wire.Outcomes(found, following))


@runs.at(
    "GET",
    "/runs/{run_id}/unsent",
    Permission.READ,
    answers=wire.UnsentLetters,
    also=(HTTPStatus.NOT_FOUND,),
    summary="Letters of a run that were refused or passed over, with why",
)
async def unsent(run_id: RunId, desk: AtDesk, limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100) -> Response:
    return answer(wire.UnsentLetters(await desk.unsent(run_id, at_most=limit)))


@runs.at(
    "GET",
    "/runs/{run_id}/events",
    Permission.READ,
    media_type="text/event-stream",
    also=(HTTPStatus.NOT_FOUND,),
    summary="The progress of a run as server-sent events, until it has ended",
)
async def events(request: Request, run_id: RunId, desk: AtDesk) -> Response:
    run = await desk.run(run_id)
    stream = _events(desk, run.id, request.app.state.door.clock)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def _events(desk: Actions, run_id: str, clock: Clock) -> AsyncIterator[bytes]:
    told, spoken = b"", clock.monotonic()
    while True:
        try:
            report = await desk.report(run_id)
        except RedriveError as error:  # the client connects again, and is told what is wrong
            yield b"event: problem\ndata: " + encoded(str(error)) + b"\n\n"
            return
        news = encoded(wire.event_of(report))
        if news != told:
            yield b"event: progress\ndata: " + news + b"\n\n"
            told, spoken = news, clock.monotonic()
        elif clock.monotonic() - spoken > _SILENT_FOR:
            yield b": nothing new\n\n"
            spoken = clock.monotonic()
        if report.run.status in ENDED:
            return
        await asyncio.sleep(_LOOK_EVERY)


@runs.at(
    "POST",
    "/runs/{run_id}/settle",
    Permission.REDRIVE,
    takes=wire.Settling,
    answers=wire.SettledLetters,
    summary="Decide about letters in doubt, some at a time: ask again until none is left",
)
async def settle(run_id: RunId, desk: AtDesk, asked: Annotated[wire.Settling, taken(wire.Settling)]) -> Response:
    run = await desk.run(run_id)
    if asked.how == "sent":
        number = await desk.take_as_sent(run, asked.reason, at_most=asked.at_most)
        return answer(wire.SettledLetters(taken_as_sent=number))
    sent = await desk.send_again(run, rate=asked.rate, at_most=asked.at_most)
    return answer(wire.SettledLetters(outcomes=sent))


_DECISIONS = {
    RunChange.PAUSE: (Permission.REDRIVE, "Pause a run; what is in hand is finished"),
    RunChange.RESUME: (Permission.REDRIVE, "Go on with a paused run"),
    RunChange.CANCEL: (Permission.REDRIVE, "Give a run up; what was sent stays sent"),
    RunChange.APPROVE: (Permission.APPROVE, "Approve a run of somebody else's"),
    RunChange.REJECT: (Permission.APPROVE, "Reject a run that waits for an approval"),
}


def _declare(change: RunChange, permission: Permission, summary: str) -> None:
    async def decide(run_id: RunId, desk: AtDesk, why: Annotated[Reason, taken(Reason)]) -> Response:
        run = await desk.change_run(run_id, change, why.reason)
        return answer(wire.RunAccepted(wire.run_json(await desk.report(run.id))))

    decide.__name__ = f"{change}_run"
    runs.at(
        "POST", f"/runs/{{run_id}}/{change}", permission, takes=Reason, answers=wire.RunAccepted, summary=summary
    )(decide)


for _change, (_permission, _summary) in _DECISIONS.items():
    _declare(_change, _permission, _summary)
