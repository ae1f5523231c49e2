"""The desk's part about redrive runs: see `redrive.actions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from redrive.access import Permission, covers
from redrive.approvals import Shown, approval_for, same_person
from redrive.dead_letter import Status
from redrive.edit_diff import diff
from redrive.edit_schema import check_by
from redrive.editing import apply
from redrive.engine import RedriveEngine
from redrive.errors import EditRefused, NotFound, Refused, UsageError
from redrive.header_class import HIDDEN
from redrive.letter_query import LetterQuery
from redrive.preview import taken_of
from redrive.previewing import preview
from redrive.privacy.edit_masks import masked_edit
from redrive.redriving import Outcome, unclaimed
from redrive.run import CHANGES, Approval, RunChange, RunPlan, RunStatus
from redrive.run_report import UNSENT, WHY, RunReport, Unsent, estimated_end
from redrive.run_request import check_key, check_reason, check_same
from redrive.search_terms import Field, FieldTerm, Filter, Op
from redrive.standing import Standing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

    from redrive.access import Scope
    from redrive.clock import Clock
    from redrive.dead_letter import DeadLetter, Happening
    from redrive.message import Message
    from redrive.preview import Preview
    from redrive.privacy.masking import Masker
    from redrive.run import LetterOutcome, Run
    from redrive.run_policy import RunPolicy
    from redrive.stores import RunStore
    from redrive.telemetry.spans import Spans
    from redrive.transports import Transport
    from redrive.transports.inspection import Inspector

_SHORTEST_ID = 8
_PAGE = 500
_ANOTHER_DECIDES = frozenset({RunChange.APPROVE, RunChange.REJECT})


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A plan as it would be carried out: within the ceilings, with what it needs, and how much it is now."""

    plan: RunPlan
    count: int
    approval: Approval | None = None


class SortedOut(msgspec.Struct, frozen=True, kw_only=True):
    """Named letters, by what a run can do with them."""

    pending: tuple[str, ...]
    """And QUARANTINED ones, if those are to be sent as well."""
    claimed: tuple[str, ...]
    """Being sent, by somebody who may have died of it."""
    left: tuple[Outcome, ...]
    """What cannot be sent, and why."""


class EditedSample(msgspec.Struct, frozen=True, kw_only=True):
    """What the edit of a plan does to one letter, place by place; or why it does not fit, or where the result
    does not fit the plan's schema.
    """

    letter_id: str
    differences: tuple[str, ...] = ()
    refused: str = ""
    misfits: tuple[str, ...] = ()


class RunActions(Standing):
    _runs: RunStore
    _transport: Transport
    _spans: Spans | None
    _clock: Clock
    _policy: RunPolicy
    _inspector: Inspector | None

    @property
    def run_policy(self) -> RunPolicy:
        return self._policy

    async def usual_run(self) -> RunPolicy:
        """What a plan is made of where nobody says otherwise."""
        await self._may(Permission.READ)
        return self._policy

    # Making

    async def sort_out(self, letter_ids: Sequence[str], *, quarantined: bool = False) -> SortedOut:
        """In the given order. `quarantined`: a run can send those as well."""
        within = await self._may(Permission.REDRIVE)
        statuses: dict[str, Status] = {}
        for start in range(0, len(letter_ids), _PAGE):
            page = tuple(letter_ids[start : start + _PAGE])
            found = await self._runs.find(LetterQuery(ids=page, limit=len(page), within=within))
            statuses |= {letter.id: letter.status for letter in found}
        return sorted_by_status({each: statuses.get(each) for each in letter_ids}, quarantined=quarantined)

    async def plan_run(self, plan: RunPlan) -> PlannedRun:
        """NotFound if there is nothing to send; Unreachable if the broker is away, before anything is made."""
        check_reason(plan)
        plan = await self._permitted(plan)
        selection = taken_of(plan.selection, quarantined=plan.quarantined)
        found = (await self._runs.count(selection)).number
        count = found if plan.at_most is None else min(found, plan.at_most)
        if not count:
            raise NotFound(
                f"no pending {'or quarantined ' if plan.quarantined else ''}letter matches",
                remedy="`redrive list --status pending` with the same filter shows them",
            )
        await self._transport.depths(() if plan.target is None else (plan.target,))
        sources = await self._named_among(selection)
        targets = sources if plan.target is None else frozenset({plan.target})
        limited = self._policy.limited(plan, targets)
        rules, now = self._policy.approval, self._clock.now()
        edited = await self._edited_before(selection) if rules.edits else 0
        shown = Shown(count=count, queues=sources | targets, edited=edited)
        approval = approval_for(limited, shown, rules=rules, now=now)
        if approval is None and rules.more_than is not None:
            # Letters that come between here and its making must not carry it over the limit unseen.
            most = rules.more_than if plan.at_most is None else min(plan.at_most, rules.more_than)
            limited = replace(limited, at_most=most)
        return PlannedRun(plan=limited, count=count, approval=approval)

    async def _permitted(self, plan: RunPlan) -> RunPlan:
        """The plan, about letters of queues that whoever asks may send to. Denied if it asks for more."""
        if plan.edit:
            await self._may(Permission.EDIT)
        if plan.to_origin:  # reaches every queue that is bound there
            await self._may_everywhere(Permission.REDRIVE)
        if plan.target is not None:
            await self._may_send_to(plan.target)
        selection = await self._seen(plan.selection, Permission.REDRIVE)
        if plan.edit:
            selection = await self._seen(selection, Permission.EDIT)
        return plan if selection == plan.selection else replace(plan, selection=selection)

    async def _edited_before(self, selection: LetterQuery) -> int:
        """How many of them do not go back as they came: somebody has edited them, by hand or by a run."""
        terms = (*selection.where.terms, FieldTerm(field=Field.REVISION, op=Op.MORE, values=(0,)))
        return (await self._runs.count(replace(selection, where=Filter(terms)))).number

    async def _named_among(self, selection: LetterQuery) -> frozenset[str]:
        """Which of the queues that the settings say something about have letters in the selection."""
        if selection.queue is not None:
            return frozenset({selection.queue})
        named = sorted(self._policy.named_queues)
        counts = [await self._runs.count(replace(selection, queue=each)) for each in named]
        return frozenset(queue for queue, count in zip(named, counts, strict=True) if count.number)

    async def preview_run(self, plan: RunPlan, *, inspector: Inspector | None = None) -> Preview:
        """What the run would do now, and how dangerous that is; changes nothing."""
        found = await preview(
            await self._permitted(plan),
            store=self._runs,
            transport=self._transport,
            clock=self._clock,
            expire_after=self._policy.expire_after,
            inspector=inspector or self._inspector,
        )
        text = self._masks.general.text
        return replace(
            found,
            sample=tuple(self._masked(each) for each in found.sample),
            by_group=tuple(replace(each, title=text(each.title)) for each in found.by_group),
        )

    async def edit_samples(self, plan: RunPlan, letter_ids: Sequence[str]) -> list[EditedSample]:
        """What the plan's edit and schema say to these letters now. None if it has neither."""
        within = (await self._permitted(plan)).selection.within
        checked = letter_ids if plan.edit or plan.schema else ()
        letters = [await self._runs.get(each, within=within) for each in checked]
        return [self._edited(letter, plan) for letter in letters if letter is not None]

    def _edited(self, letter: DeadLetter, plan: RunPlan) -> EditedSample:
        mask = self._masks.for_queue(letter.queue)
        if letter.unreadable is not None:
            return EditedSample(letter_id=letter.id, refused=letter.unreadable.explained)
        try:
            after = apply(letter.message, plan.edit, allow_sensitive=plan.allow_sensitive)
        except EditRefused as refused:
            return EditedSample(letter_id=letter.id, refused=mask.text(str(refused)))
        misfits = check_by(plan.schema).misfits(after) if plan.schema else []
        return EditedSample(
            letter_id=letter.id,
            differences=tuple(_differences(mask, letter.message, after)),
            misfits=tuple(mask.text(str(each)) for each in misfits),
        )

    async def create_run(self, planned: PlannedRun, *, key: str | None = None) -> Run:
        """Durable, its selection frozen. Awaiting approval if it needs one. The same key again is the same run;
        Refused if that is of another request.
        """
        plan, by = await self._permitted(planned.plan), self._by(planned.plan.reason)
        return await self._runs.create_run(plan, by=by, approval=planned.approval, key=key)

    async def run_made_by(self, key: str, plan: RunPlan) -> Run | None:
        """The run that was made by that key before, if there is one. Refused if that is of another request."""
        within, asked = await self._may(Permission.REDRIVE), await self._permitted(plan)
        check_key(key)
        made = await self._runs.keyed_run(key)
        if made is not None:
            if not covers(within, queues_of(made.plan)):  # which run that is, is not for them to know
                raise Refused("that key was used for another request", remedy="give another key")
            check_same(made, asked)
        return made

    # Looking

    async def run(self, run_id: str) -> Run:
        """With its progress, its edit with masks; the beginning of its id will do."""
        return self._shown_run(await self._run(run_id, Permission.READ))

    def _shown_run(self, run: Run) -> Run:
        if not run.plan.edit:
            return run
        edit = masked_edit(run.plan.edit, self._masks.general)
        return replace(run, plan=replace(run.plan, edit=edit))

    async def _run(self, run_id: str, permission: Permission) -> Run:
        within = await self._may(permission)
        named = run_id.strip().lower()
        if len(named) < _SHORTEST_ID:
            raise UsageError(
                f"{run_id!r} is too short for a run's id",
                remedy=f"give at least {_SHORTEST_ID} characters of it; `redrive runs` shows the ids",
            )
        found = await self._runs.run(named)
        if found is None or not covers(within, queues_of(found.plan)):
            raise NotFound(f"no run {run_id}", remedy="`redrive runs` shows the ids")
        return found

    async def report(self, run_id: str) -> RunReport:
        return await self._report(await self.run(run_id))

    async def reports(self, *, active: bool = False, limit: int = 50) -> list[RunReport]:
        """The newest first."""
        within = await self._may(Permission.READ)
        found = await self._runs.runs(active=active, limit=limit)
        return [await self._report(run) for run in found if covers(within, queues_of(run.plan))]

    async def _report(self, run: Run) -> RunReport:
        in_doubt = await self._runs.in_doubt(run.id) if run.progress.in_hand else 0
        end = estimated_end(run, self._clock.now())
        return RunReport(run=self._shown_run(run), estimated_end=end, in_doubt=in_doubt)

    async def run_history(self, run_id: str) -> list[Happening]:
        return await self._runs.run_history((await self.run(run_id)).id)

    async def outcomes(self, run_id: str) -> AsyncGenerator[LetterOutcome]:
        """What became of each letter that was taken, page by page."""
        run, after = await self.run(run_id), ""
        while page := await self._runs.outcomes(run.id, after=after, limit=_PAGE):
            for outcome in page:
                yield outcome
            after = page[-1].redrive_id

    async def outcome_page(self, run_id: str, *, after: str = "", limit: int) -> list[LetterOutcome]:
        """What became of so many letters that were taken; the next page is `after` the last one's redrive id."""
        return await self._runs.outcomes((await self.run(run_id)).id, after=after, limit=limit)

    async def unsent(self, run_id: str, *, at_most: int) -> list[Unsent]:
        """Letters of the run that were refused or passed over, with why."""
        run, found = await self.run(run_id), list[Unsent]()
        most = min(at_most, run.progress.refused + run.progress.passed_over)
        async for each in self.outcomes(run.id):
            if len(found) == most:
                break
            if each.outcome in UNSENT:
                found.append(Unsent(each.letter_id, each.outcome, await self._reason(each)))
        return found

    async def _reason(self, outcome: LetterOutcome) -> str:
        """The last one that the letter's history gives for it, or else what such an outcome always means."""
        letter = await self._runs.get(outcome.letter_id)
        history = () if letter is None else letter.history
        told = (line.reason for line in reversed(history) if line.what == outcome.outcome)
        return next(told, WHY.get(outcome.outcome, ""))

    # Deciding

    async def change_run(self, run_id: str, change: RunChange, reason: str = "") -> Run:
        """Pause, resume, cancel, approve, reject. Refused where the run's status does not allow it."""
        needed = Permission.APPROVE if change in _ANOTHER_DECIDES else Permission.REDRIVE
        run = await self._run(run_id, needed)
        _check_allowed(run, change)
        if change is RunChange.APPROVE and same_person(run.requested_by, self._who.name):
            raise Refused(
                f"run {run.id} was requested by {run.requested_by}: nobody approves their own run",
                remedy="ask somebody else, who has an account of their own",
            )
        return await self._runs.change_run(run.id, change, by=self._by(reason))

    # Carrying out

    async def carry_out(self, run_id: str, *, on_progress: Callable[[Run], None] | None = None) -> Run:
        """With an engine of this process, beside any others, until the run has ended or does not run any more."""
        run = await self._run(run_id, Permission.REDRIVE)
        engine = RedriveEngine(
            store=self._runs,
            transport=self._transport,
            clock=self._clock,
            owner=self._who.name,
            in_flight=self.run_policy.in_flight,
            spans=self._spans,
        )
        return await engine.carry_out(run.id, on_progress=on_progress)


def sorted_by_status(of: Mapping[str, Status | None], *, quarantined: bool) -> SortedOut:
    """None: there is no such letter."""
    sent = {Status.PENDING, Status.QUARANTINED} if quarantined else {Status.PENDING}
    takeable = {*sent, Status.REDRIVING}
    return SortedOut(
        pending=tuple(each for each, status in of.items() if status in sent),
        claimed=tuple(each for each, status in of.items() if status is Status.REDRIVING),
        left=tuple(unclaimed(each, status) for each, status in of.items() if status not in takeable),
    )


def queues_of(plan: RunPlan) -> Scope:
    """The queues that its letters can be of."""
    return plan.selection.within if plan.selection.queue is None else (plan.selection.queue,)


def _differences(mask: Masker, before: Message, after: Message) -> Iterator[str]:
    """Where something changes that is not shown, it is told that it does."""
    shown = {(each.of_header, each.place): each for each in diff(mask.message(before), mask.message(after))}
    for each in diff(before, after):
        hidden = {name: HIDDEN for name in ("before", "after") if getattr(each, name) is not None}
        told = each if each.of_sizes else shown.get((each.of_header, each.place), replace(each, **hidden))
        yield mask.text(told.line())


def _check_allowed(run: Run, change: RunChange) -> None:
    allowed = CHANGES[change].sources
    if run.status not in allowed:
        possible = " or ".join(status for status in RunStatus if status in allowed)
        raise Refused(
            f"run {run.id} is {run.status}: cannot {change} it", remedy=f"only a run that is {possible} can be"
        )
