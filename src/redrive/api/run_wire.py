"""Runs as the API takes and tells them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from redrive.api.letter_wire import LetterLine, line
from redrive.api.selection import LetterSelection
from redrive.dead_letter import Happening
from redrive.editing import Operation
from redrive.preview import Check, GroupShare, Level, Preview
from redrive.redriving import Outcome
from redrive.run import MAX_RATE, Approval, Brakes, Canary, LetterOutcome, Progress, RunPlan, RunStatus
from redrive.run_actions import EditedSample
from redrive.run_policy import RunPolicy
from redrive.run_report import RunReport, Unsent


class RunRequest(msgspec.Struct, kw_only=True):
    """What to send back and how. What is not given is as the server's settings have it."""

    selection: LetterSelection
    at_most: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    """So many letters, the oldest first."""
    target: str | None = None
    """Another queue than each letter's own."""
    to_origin: bool = False
    quarantined: bool = False
    edit: list[Operation] = []
    allow_sensitive: bool = False
    schema: str = ""
    rate: Annotated[float, msgspec.Meta(gt=0, le=MAX_RATE)] | None = None
    """Messages per second."""
    canary: Canary | None = None
    brakes: Brakes | None = None
    reason: str = ""

    def plan(self, policy: RunPolicy, now: datetime) -> RunPlan:
        return RunPlan(
            selection=self.selection.query(now),
            at_most=self.at_most,
            target=self.target,
            to_origin=self.to_origin,
            quarantined=self.quarantined,
            edit=tuple(self.edit),
            allow_sensitive=self.allow_sensitive,
            schema=self.schema,
            rate=self.rate or policy.rate,
            canary=self.canary or policy.canary,
            brakes=self.brakes or policy.brakes,
            reason=self.reason.strip(),
        )


SETTLED_AT_ONCE = 100


class Settling(msgspec.Struct, kw_only=True):
    """What to do about letters in doubt: take them as sent, for a reason, or send them again."""

    how: Literal["sent", "send again"]
    reason: str = ""
    rate: Annotated[float, msgspec.Meta(gt=0, le=MAX_RATE)] | None = None
    """Messages per second, of those that are sent again."""
    at_most: Annotated[int, msgspec.Meta(ge=1, le=SETTLED_AT_ONCE)] = SETTLED_AT_ONCE


class SettledLetters(msgspec.Struct, kw_only=True):
    taken_as_sent: int = 0
    outcomes: list[Outcome] = []
    """Of those that were sent again."""


class RunJson(msgspec.Struct, kw_only=True):
    """A run, and what has become of its letters so far."""

    id: str
    status: RunStatus
    why: str
    """Of its last change."""
    requested_by: str
    created_at: datetime
    changed_at: datetime
    ended_at: datetime | None
    total: int
    remaining: int
    exhausted: bool
    stage: int
    approval: Approval | None
    progress: Progress
    summary: str
    """One sentence."""
    estimated_end: datetime | None
    in_doubt: int
    """Letters that may have been sent, and that nobody goes on with."""
    selection: LetterSelection
    at_most: int | None
    target: str | None
    to_origin: bool
    quarantined: bool
    edit: list[Operation]
    allow_sensitive: bool
    schema: str
    rate: float | None
    ceilings: dict[str, float]
    canary: Canary
    brakes: Brakes
    reason: str
    rule: str
    """The automatic rule that made it; empty: a person."""


_OF_RUN = (
    *("id", "status", "why", "requested_by", "created_at", "changed_at", "ended_at", "total", "remaining"),
    *("exhausted", "stage", "approval", "progress"),
)
_OF_PLAN = (
    *("at_most", "target", "to_origin", "quarantined", "allow_sensitive", "schema", "rate", "canary"),
    *("brakes", "reason", "rule"),
)


def run_json(report: RunReport) -> RunJson:
    run, plan = report.run, report.run.plan
    return RunJson(
        **{name: getattr(run, name) for name in _OF_RUN},
        **{name: getattr(plan, name) for name in _OF_PLAN},
        summary=report.summary,
        estimated_end=report.estimated_end,
        in_doubt=report.in_doubt,
        selection=LetterSelection.of(plan.selection),
        edit=list(plan.edit),
        ceilings=dict(plan.ceilings),
    )


class RunPage(msgspec.Struct):
    items: list[RunJson]
    next: str | None = None
    """The cursor of the older page: `after=`. null: this was the last one."""


class RunDetail(msgspec.Struct):
    run: RunJson
    history: list[Happening]


class Outcomes(msgspec.Struct):
    items: list[LetterOutcome]
    next: str | None
    """`after=` of the next page."""


class UnsentLetters(msgspec.Struct):
    items: list[Unsent]


class PreviewJson(msgspec.Struct, kw_only=True):
    """What a run would do now, and what speaks against it. Nothing was changed."""

    count: int
    exact: bool
    by_queue: dict[str, int]
    by_group: list[GroupShare]
    groups: int
    spread_over: int
    by_target: dict[str, int]
    oldest: datetime | None
    newest: datetime | None
    sample: list[LetterLine]
    checks: list[Check]
    worst: Level
    digest: str
    samples: list[EditedSample]
    """What the edit and the schema say to the letters of the sample."""


_OF_PREVIEW = ("count", "exact", "groups", "spread_over", "oldest", "newest", "worst", "digest")


def preview_json(found: Preview, samples: list[EditedSample]) -> PreviewJson:
    return PreviewJson(
        **{name: getattr(found, name) for name in _OF_PREVIEW},
        by_queue=dict(found.by_queue),
        by_group=list(found.by_group),
        by_target=dict(found.by_target),
        sample=[line(each) for each in found.sample],
        checks=list(found.checks),
        samples=samples,
    )


class RunAccepted(msgspec.Struct):
    run: RunJson


def event_of(report: RunReport) -> dict[str, Any]:
    """What changes while a run goes on."""
    told = run_json(report)
    return {name: getattr(told, name) for name in ("id", "status", "why", *_MOVING)}


_MOVING = (
    *("changed_at", "ended_at", "stage", "total", "remaining"),
    *("progress", "summary", "estimated_end", "in_doubt"),
)
