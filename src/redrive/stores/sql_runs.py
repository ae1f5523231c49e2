"""Redrive runs: made, looked at, changed. `sql_runs_taking` is how their letters are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import select, update

from redrive.errors import NotFound, Refused, TransitionRefused, UsageError
from redrive.ledger import RUN, Deed, Subject
from redrive.message import cut
from redrive.run import CHANGES, ENDED, MAX_RATE, Approval, Run, RunChange, RunStatus
from redrive.run_request import check_reason, check_same
from redrive.stores import sql_audit, sql_runs_lanes, sql_runs_letting_go, sql_runs_plan, sql_runs_selection
from redrive.stores.expressions import begins_with
from redrive.stores.schema import NOT_ENDED, audit, runs
from redrive.stores.sql_audit import NAME_BUDGET, REASON_BUDGET
from redrive.stores.sql_ledger import NO_LEDGER
from redrive.stores.sql_read import MAX_IDS, SHORTEST_BEGINNING
from redrive.stores.sql_runs_outcomes import progress_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.dead_letter import Actor, Happening
    from redrive.run import Progress, RunPlan
    from redrive.stores.expressions import Values
    from redrive.stores.sql_ledger import Ledger

    Count = Callable[[Connection, Sequence[Row[Any]]], dict[str, Progress]]

REQUESTED = "requested"


def check(plan: RunPlan) -> None:
    """What no run could be made of, whatever the letters are."""
    if plan.selection.ids is not None and len(plan.selection.ids) > MAX_IDS:
        raise UsageError(
            f"{len(plan.selection.ids)} ids in one run",
            remedy=f"give at most {MAX_IDS}, or a filter that selects them",
        )
    if plan.rate is not None and not 0 < plan.rate <= MAX_RATE:
        raise UsageError(
            f"{plan.rate} messages per second are no pace", remedy=f"give more than 0 and at most {MAX_RATE:g}"
        )
    check_reason(plan)
    if plan.at_most is not None and plan.at_most < 1:
        raise UsageError(f"a run of at most {plan.at_most} letters", remedy="give at least 1")


def create(
    connection: Connection,
    run_id: str,
    plan: RunPlan,
    *,
    by: Actor,
    approval: Approval | None,
    now: datetime,
    key: str | None = None,
    ledger: Ledger = NO_LEDGER,
) -> Run:
    """The run that was made before under that id, or by that key, if there is one."""
    known = _made_before(connection, run_id, plan, key)
    if known is not None:
        return known
    total = sql_runs_selection.count(connection, plan)
    if approval is not None and approval.digest != plan.digest(total):
        raise Refused(
            f"this is not what was shown: the selection has {total} letters now",
            remedy="look at the preview again, and ask for what it shows",
        )
    status = RunStatus.RUNNING if approval is None else RunStatus.AWAITING_APPROVAL
    row: Values = {
        "id": run_id,
        "status": str(status),
        "why": cut(plan.reason, REASON_BUDGET),
        "plan": sql_runs_plan.write(plan),
        "requested_by": cut(by.name, NAME_BUDGET),
        "created_at": now,
        "changed_at": now,
        "total": total,
        "taken": 0,
        "cut_off": sql_runs_selection.cut_off(connection),
        "cursor_place": 0,
        "exhausted": False,
        "stage": 0,
        "rule": plan.rule or None,
        "request_key": key,
    }
    connection.execute(runs.insert(), row | _approval_columns(approval))
    _tell(connection, run_id, REQUESTED, by=by, before="", after=status, now=now)
    deed = Deed(what=REQUESTED, subject=Subject.of(RUN, [run_id]), after=_shown(status, plan, total))
    signed = msgspec.structs.replace(by, reason=by.reason or plan.reason)
    ledger.write(connection, deed, by=signed, now=now)
    return _existing(connection, run_id)


def _shown(status: RunStatus, plan: RunPlan, total: int) -> str:
    """What was asked for, as an approval is bound to it."""
    return f"{status}, letters {total}, plan {plan.digest(total)}"


def _made_before(connection: Connection, run_id: str, plan: RunPlan, key: str | None) -> Run | None:
    made = find(connection, run_id)
    if made is None and key is not None:
        made = keyed(connection, key)
        if made is not None:
            check_same(made, plan)
    return made


def keyed(connection: Connection, key: str, count: Count = progress_of) -> Run | None:
    rows = connection.execute(select(runs).where(runs.c.request_key == key)).all()
    return _runs_of(connection, rows, count)[0] if rows else None


def _approval_columns(approval: Approval | None) -> Values:
    if approval is None:
        return {}
    return {
        "approval_digest": approval.digest,
        "approval_expires_at": approval.expires_at,
        "approval_why": cut(approval.why, REASON_BUDGET),
    }


def find(connection: Connection, run_id: str, count: Count = progress_of) -> Run | None:
    row = _one(connection, run_id)
    return None if row is None else _runs_of(connection, [row], count)[0]


def _existing(connection: Connection, run_id: str) -> Run:
    found = find(connection, run_id)
    if found is None:
        raise _no_such(run_id)
    return found


def _one(connection: Connection, run_id: str) -> Row[Any] | None:
    exact = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
    if exact is not None or len(run_id) < SHORTEST_BEGINNING:
        return exact
    beginning = begins_with(runs.c.id, run_id.lower())
    rows = connection.execute(select(runs).where(beginning).limit(2)).all()
    if len(rows) > 1:
        raise UsageError(
            f"more than one run's id begins with {run_id!r}", remedy="give more of the id, or all of it"
        )
    return rows[0] if rows else None


def find_all(
    connection: Connection, count: Count, *, active: bool, limit: int, after: str | None = None
) -> list[Run]:
    """Their ids are in the order of time."""
    query = select(runs).order_by(runs.c.id.desc()).limit(limit)
    if after is not None:
        query = query.where(runs.c.id < after)
    rows = connection.execute(query.where(NOT_ENDED) if active else query).all()
    return _runs_of(connection, rows, count)


def change(
    connection: Connection,
    run_id: str,
    wanted: RunChange,
    *,
    by: Actor,
    now: datetime,
    seen: datetime | None = None,
    ledger: Ledger = NO_LEDGER,
) -> Run:
    known = _one(connection, run_id)
    if known is None:
        raise _no_such(run_id)
    run = connection.execute(select(runs).where(runs.c.id == known.id).with_for_update()).one()
    rule = CHANGES[wanted]
    if run.status not in rule.sources or seen not in {None, run.changed_at}:
        raise TransitionRefused(run.id, wanted, run.status, noun="run")
    values: Values = {"status": str(rule.target), "why": cut(by.reason, REASON_BUDGET), "changed_at": now}
    if rule.target in ENDED:
        values["ended_at"] = now
    if wanted is RunChange.APPROVE:
        values |= _approved(run, by, now)
    connection.execute(update(runs).where(runs.c.id == run.id).values(values))
    _tell(connection, run.id, _HAPPENED[wanted], by=by, before=run.status, after=rule.target, now=now)
    if rule.target in ENDED:
        sql_runs_lanes.leave_all(connection, run.id)
        sql_runs_letting_go.give_back(connection, run.id, rule.target, by, now)
    subject = Subject.of(RUN, [run.id])
    deed = Deed(what=_HAPPENED[wanted], subject=subject, before=run.status, after=str(rule.target))
    ledger.write(connection, deed, by=by, now=now)
    return _existing(connection, run.id)


_HAPPENED: dict[RunChange, str] = {
    RunChange.APPROVE: "approved",
    RunChange.REJECT: "rejected",
    RunChange.PAUSE: "paused",
    RunChange.RESUME: "resumed",
    RunChange.CANCEL: "cancelled",
    RunChange.STOP: "stopped",
    RunChange.FINISH: "finished",
    RunChange.FAIL: "failed",
}
"""What `Happening.what` says about each change."""


def _approved(run: Row[Any], by: Actor, now: datetime) -> Values:
    name = cut(by.name, NAME_BUDGET)
    if name == run.requested_by:
        raise Refused(
            f"run {run.id} was asked for by {run.requested_by}, who cannot approve it",
            remedy="somebody else has to approve it",
        )
    if now > run.approval_expires_at:
        raise Refused(
            f"the time to approve run {run.id} ended at {run.approval_expires_at:%Y-%m-%d %H:%M:%S} UTC",
            remedy="cancel it and ask for it anew",
        )
    return {"approved_by": name, "approved_at": now}


def pass_stage(connection: Connection, run_id: str, stage: int) -> bool:
    mine = update(runs).where(runs.c.id == run_id, runs.c.stage == stage)
    return connection.execute(mine.values(stage=stage + 1)).rowcount == 1


def history(connection: Connection, run_id: str) -> list[Happening]:
    run = _one(connection, run_id)
    if run is None:
        raise _no_such(run_id)
    lines = select(audit).where(audit.c.letter_id == sql_audit.of_run(run.id)).order_by(audit.c.id)
    return [sql_audit.happening(row) for row in connection.execute(lines)]


def _tell(
    connection: Connection, run_id: str, what: str, *, by: Actor, before: str, after: RunStatus, now: datetime
) -> None:
    about = sql_audit.of_run(run_id)
    sql_audit.write(connection, sql_audit.line(what, about, at=now, by=by, before=before, after=str(after)))


def _no_such(run_id: str) -> NotFound:
    return NotFound(f"no run {run_id}", remedy="`redrive runs` shows the ids")


def _runs_of(connection: Connection, rows: Sequence[Row[Any]], count: Count) -> list[Run]:
    progress = count(connection, rows)
    return [
        Run(
            id=row.id,
            plan=sql_runs_plan.read(row.plan),
            status=RunStatus(row.status),
            why=row.why,
            requested_by=row.requested_by,
            created_at=row.created_at,
            changed_at=row.changed_at,
            ended_at=row.ended_at,
            total=row.total,
            exhausted=row.exhausted,
            stage=row.stage,
            approval=_approval_of(row),
            progress=progress[row.id],
        )
        for row in rows
    ]


def _approval_of(row: Row[Any]) -> Approval | None:
    if row.approval_digest is None:
        return None
    return Approval(
        digest=row.approval_digest,
        expires_at=row.approval_expires_at,
        why=row.approval_why,
        by=row.approved_by,
        at=row.approved_at,
    )
