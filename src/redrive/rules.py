"""Automatic rules: which letters are sent back without a person, when, and what the run of a rule may do next.

All of it is judged from what is given: the rule, its newest run and the time. `automatic` carries it out.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING

import msgspec

from redrive.dead_letter import MAX_GENERATIONS, Status
from redrive.letter_query import LetterQuery
from redrive.run import ENDED, Brakes, Canary, Run, RunChange, RunPlan, RunStatus
from redrive.search import parse
from redrive.search_terms import Field, FieldTerm, Filter, Op

if TYPE_CHECKING:
    from collections.abc import Collection

_DAYS_AHEAD = 3
"""In which the next edge of a window is looked for: one day has none where clocks are put forward over it."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Every day from one time to another, over midnight if the second is the earlier one."""

    opens: time
    closes: time
    zone: tzinfo = UTC

    def is_open(self, now: datetime) -> bool:
        local = now.astimezone(self.zone).time()
        if self.opens < self.closes:
            return self.opens <= local < self.closes
        return local >= self.opens or local < self.closes

    def until_edge(self, now: datetime) -> float:
        """Seconds until it opens or closes."""
        today = now.astimezone(self.zone).date()
        days = [today + timedelta(days=each) for each in range(_DAYS_AHEAD)]
        edges = [datetime.combine(day, at, self.zone) for day in days for at in (self.opens, self.closes)]
        return min(ahead for edge in edges if (ahead := (edge.astimezone(UTC) - now).total_seconds()) > 0)

    def __str__(self) -> str:
        return f"{self.opens:%H:%M}-{self.closes:%H:%M} {self.zone}"


class AutomaticRule(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    when: str
    """A filter. Ages in it count from each look."""
    wait: float = 600.0
    """Seconds that a letter has been PENDING, unchanged."""
    at_most: int = MAX_GENERATIONS
    """Redrives of one letter, those that people asked for included."""
    rate: float | None = None
    canary: Canary = Canary()
    brakes: Brakes = Brakes()
    window: Window | None = None

    @property
    def signature(self) -> str:
        """Who asks for its runs, in every history."""
        return f"rule {self.name}"

    def is_open(self, now: datetime) -> bool:
        return self.window is None or self.window.is_open(now)

    def plan(
        self, now: datetime, *, since: datetime | None = None, without_groups: Collection[str] = ()
    ) -> RunPlan:
        """A run of the letters that it is for now: those that have waited, have lives left, have changed after
        `since` and are in none of these groups.
        """
        where = self._filter(now, since, without_groups)
        return RunPlan(
            selection=LetterQuery(status=Status.PENDING, queue=_one_queue(where), where=where),
            rate=self.rate,
            canary=self.canary,
            brakes=self.brakes,
            reason=f"automatic: {self.when}",
            rule=self.name,
        )

    def _filter(self, now: datetime, since: datetime | None, without_groups: Collection[str]) -> Filter:
        terms = list(parse(self.when, now=now).terms)
        if without_groups:
            values = tuple(sorted(without_groups))
            terms.append(FieldTerm(field=Field.GROUP, op=Op.BEGINS, values=values, negated=True))
        lives = min(self.at_most, MAX_GENERATIONS)
        terms.append(FieldTerm(field=Field.GENERATION, op=Op.AT_MOST, values=(lives,)))
        terms.append(FieldTerm(field=Field.CHANGED, op=Op.AT_MOST, values=(_before(now, self.wait),)))
        if since is not None:
            terms.append(FieldTerm(field=Field.CHANGED, op=Op.MORE, values=(since,)))
        return Filter(tuple(terms))


def _one_queue(where: Filter) -> str | None:
    """If it is about one queue, that is where its letters go, and whose backlog counts."""
    for term in where.terms:
        if isinstance(term, FieldTerm) and term.field is Field.QUEUE and term.op is Op.IS and not term.negated:
            return str(term.values[0]) if len(term.values) == 1 else None
    return None


def _before(now: datetime, span: float) -> datetime:
    try:
        return now - timedelta(seconds=span)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


class LastRun(msgspec.Struct, frozen=True):
    """A rule's newest run, and who made the last change to it."""

    run: Run
    changed_by: str


class Make(msgspec.Struct, frozen=True):
    """A new run, of letters that have changed after `since`."""

    since: datetime | None = None


class Change(msgspec.Struct, frozen=True):
    """The rule's own run is to be changed."""

    change: RunChange
    why: str


def judge(rule: AutomaticRule, last: LastRun | None, now: datetime) -> Make | Change | None:
    """What the rule has to do now, if anything."""
    if last is not None and last.run.status not in ENDED:
        return _of_active(rule, last, now)
    if not rule.is_open(now):
        return None
    if last is None:
        return Make()
    return None if _rests(rule, last.run, now) else Make(_since(rule, last))


def _of_active(rule: AutomaticRule, last: LastRun, now: datetime) -> Change | None:
    run, open_now = last.run, rule.is_open(now)
    if run.status is RunStatus.RUNNING and not open_now:
        return Change(RunChange.PAUSE, f"outside of its window {rule.window}")
    if run.status is RunStatus.PAUSED and open_now and last.changed_by == rule.signature:
        return Change(RunChange.RESUME, f"its window {rule.window} is open" if rule.window else "it has no window")
    expired = run.approval is not None and run.approval.expires_at < now
    if run.status is RunStatus.AWAITING_APPROVAL and expired:
        return Change(RunChange.CANCEL, "nobody has approved it in time")
    return None


def _rests(rule: AutomaticRule, run: Run, now: datetime) -> bool:
    """After a run that did harm, its letters wait as if they had failed when it ended."""
    failed = run.status in {RunStatus.STOPPED, RunStatus.FAILED}
    return failed and run.ended_at is not None and run.ended_at > _before(now, rule.wait)


def _since(rule: AutomaticRule, last: LastRun) -> datetime | None:
    """Letters of a run that a person has cancelled, or rejected, are left to people: it takes those that have
    changed since, and so do the runs after it.
    """
    if last.run.status is RunStatus.CANCELLED and last.changed_by != rule.signature:
        return last.run.ended_at
    *_, term = last.run.plan.selection.where.terms
    if isinstance(term, FieldTerm) and (term.field, term.op) == (Field.CHANGED, Op.MORE):
        [since] = term.values
        return since if isinstance(since, datetime) else None
    return None
