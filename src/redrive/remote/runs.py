"""Runs through a server: made there, carried out by its engine, watched from here."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.api.run_wire import (
    SETTLED_AT_ONCE,
    Outcomes,
    PreviewJson,
    RunAccepted,
    RunDetail,
    RunJson,
    RunPage,
    SettledLetters,
    UnsentLetters,
)
from redrive.dead_letter import Status
from redrive.errors import Unreachable, UsageError
from redrive.letter_query import LetterQuery
from redrive.redriving import Result, unclaimed
from redrive.remote.asking import request_of
from redrive.remote.line import Line, segment
from redrive.remote.reading import preview_of, report_of
from redrive.run import Approval, Brakes, Canary, RunStatus
from redrive.run_actions import EditedSample, PlannedRun, sorted_by_status
from redrive.run_policy import RunPolicy

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from redrive.dead_letter import DeadLetter, Happening
    from redrive.preview import Preview
    from redrive.redriving import Outcome
    from redrive.run import LetterOutcome, Run, RunChange, RunPlan
    from redrive.run_actions import SortedOut
    from redrive.run_report import RunReport, Unsent
    from redrive.transports.inspection import Inspector

_PAGE = 500
_FIRST_LOOK = 0.05
_LOOK_EVERY = 1.0
_PATIENCE = 5
_PORTION = 5.0
"""Seconds."""
_LAST_LOOKS = 3
"""At a run that was halted: engines see that within a second, and finish or give back what they have."""


class _Usual(msgspec.Struct):
    rate: float | None
    canary: Canary
    brakes: Brakes


class _Planned(msgspec.Struct):
    count: int
    approval: Approval | None


class _Made(msgspec.Struct):
    run: RunJson | None


class _Samples(msgspec.Struct):
    items: list[EditedSample]


class RemoteRuns:
    _line: Line

    if TYPE_CHECKING:

        async def letters(self, query: LetterQuery) -> list[DeadLetter]: ...

    async def usual_run(self) -> RunPolicy:
        told = await self._line.ask("GET", "/run-plans/usual", _Usual)
        return RunPolicy(rate=told.rate, canary=told.canary, brakes=told.brakes)

    async def sort_out(self, letter_ids: Sequence[str], *, quarantined: bool = False) -> SortedOut:
        found: dict[str, Status] = {}
        for start in range(0, len(letter_ids), _PAGE):
            page = tuple(letter_ids[start : start + _PAGE])
            found |= {each.id: each.status for each in await self.letters(LetterQuery(ids=page, limit=len(page)))}
        return sorted_by_status({each: found.get(each) for each in letter_ids}, quarantined=quarantined)

    async def plan_run(self, plan: RunPlan) -> PlannedRun:
        """The plan itself stays as it is: the server holds it within its ceilings when the run is made."""
        told = await self._line.ask("POST", "/run-plans", _Planned, body=request_of(plan))
        return PlannedRun(plan=plan, count=told.count, approval=told.approval)

    async def preview_run(self, plan: RunPlan, *, inspector: Inspector | None = None) -> Preview:  # noqa: ARG002  the server has its own
        return preview_of(await self._line.ask("POST", "/runs/preview", PreviewJson, body=request_of(plan)))

    async def edit_samples(self, plan: RunPlan, letter_ids: Sequence[str]) -> list[EditedSample]:
        if not (plan.edit or plan.schema):
            return []
        body = {"run": request_of(plan), "ids": list(letter_ids)}
        return (await self._line.ask("POST", "/run-plans/samples", _Samples, body=body)).items

    async def create_run(self, planned: PlannedRun, *, key: str | None = None) -> Run:
        body = request_of(planned.plan)
        told = await self._line.ask("POST", "/runs", RunAccepted, body=body, headers=_keyed(key))
        return report_of(told.run).run

    async def run_made_by(self, key: str, plan: RunPlan) -> Run | None:
        told = await self._line.ask("POST", "/run-plans/made", _Made, body=request_of(plan), headers=_keyed(key))
        return None if told.run is None else report_of(told.run).run

    async def retry(self, letter_ids: Sequence[str], *, begun: bool = False) -> list[Outcome]:  # noqa: ARG002  as the desk has it
        """Letters that somebody is sending are left to them: the server's engine takes over what they leave."""
        return [unclaimed(each, Status.REDRIVING) for each in letter_ids]

    # Looking

    async def run(self, run_id: str) -> Run:
        return (await self.report(run_id)).run

    async def report(self, run_id: str) -> RunReport:
        return report_of((await self._detail(run_id)).run)

    async def run_history(self, run_id: str) -> list[Happening]:
        return (await self._detail(run_id)).history

    async def _detail(self, run_id: str) -> RunDetail:
        return await self._line.ask("GET", f"/runs/{segment(run_id)}", RunDetail)

    async def reports(self, *, active: bool = False, limit: int = 50) -> list[RunReport]:
        params = {"active": active, "limit": limit}
        return [report_of(each) for each in (await self._line.ask("GET", "/runs", RunPage, params=params)).items]

    async def outcomes(self, run_id: str) -> AsyncGenerator[LetterOutcome]:
        after: str | None = ""
        while after is not None:
            params = {"after": after, "limit": _PAGE}
            page = await self._line.ask("GET", f"/runs/{segment(run_id)}/letters", Outcomes, params=params)
            for outcome in page.items:
                yield outcome
            after = page.next

    async def unsent(self, run_id: str, *, at_most: int) -> list[Unsent]:
        path, params = f"/runs/{segment(run_id)}/unsent", {"limit": max(1, min(at_most, _PAGE))}
        return (await self._line.ask("GET", path, UnsentLetters, params=params)).items

    # Deciding

    async def change_run(self, run_id: str, change: RunChange, reason: str = "") -> Run:
        path, body = f"/runs/{segment(run_id)}/{change}", {"reason": reason}
        return report_of((await self._line.ask("POST", path, RunAccepted, body=body)).run).run

    async def take_as_sent(self, run: Run, reason: str) -> int:
        total = 0
        while taken := (await self._settled(run, how="sent", reason=reason)).taken_as_sent:
            total += taken
        return total

    async def send_again(
        self, run: Run, *, rate: float | None = None, on_progress: Callable[[int], None] | None = None
    ) -> list[Outcome]:
        """In portions that each take a few seconds at that rate: the server answers no longer question."""
        portion = SETTLED_AT_ONCE if rate is None else max(1, min(SETTLED_AT_ONCE, int(rate * _PORTION)))
        outcomes: list[Outcome] = []
        while sent := (await self._settled(run, how="send again", rate=rate, at_most=portion)).outcomes:
            outcomes += sent
            if on_progress is not None:
                on_progress(len(sent))
            results = {each.result for each in sent}
            if Result.UNKNOWN in results and Result.SENT not in results:  # as at the store: the broker is away
                break
            if rate is not None:
                await asyncio.sleep(1 / rate)
        return outcomes

    async def _settled(self, run: Run, **body: Any) -> SettledLetters:
        return await self._line.ask("POST", f"/runs/{segment(run.id)}/settle", SettledLetters, body=body)

    async def carry_out(self, run_id: str, *, on_progress: Callable[[Run], None] | None = None) -> Run:
        """The server's engine does it. Watched until it has ended or does not run any more; a server that does not
        answer is asked again for a few seconds.
        """
        pause, last_looks = _FIRST_LOOK, _LAST_LOOKS
        while True:
            run = await self._looked_at(run_id)
            if on_progress is not None:
                on_progress(run)
            if run.status is not RunStatus.RUNNING:
                last_looks -= 1
                if not (run.progress.in_hand and last_looks):
                    return run
                pause = _LOOK_EVERY
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LOOK_EVERY)

    async def _looked_at(self, run_id: str) -> Run:
        for _ in range(_PATIENCE):
            with suppress(Unreachable):
                return await self.run(run_id)
            await asyncio.sleep(_LOOK_EVERY)
        return await self.run(run_id)


def _keyed(key: str | None) -> dict[str, Any]:
    if key is None:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise UsageError("through a server, a key is plain ASCII on one line", remedy="choose another --key")
    return {"idempotency-key": key}
