"""T17 for letters that a run takes: its edit as a new revision of each, in the transaction that claims them.

A letter that the edit does not fit, whose payload would not fit the plan's schema, or that somebody has edited
since an approval was asked for, is left as it is, with the reason in its history; the others go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select

from redrive.dead_letter import Actor, Transition
from redrive.edit_schema import check_by
from redrive.editing import apply
from redrive.errors import EditRefused, UsageError
from redrive.run import PassedOver
from redrive.stores import sql_audit
from redrive.stores.expressions import one_of
from redrive.stores.schema import audit, letters, revisions
from redrive.stores.sealing import sealing_of
from redrive.stores.sql_claiming import Candidate, counted, insert_rows
from redrive.stores.sql_guard import moving_held
from redrive.stores.sql_rows import content
from redrive.stores.sql_runs_quarantine import released

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row

    from redrive.message import Message
    from redrive.run import RunPlan
    from redrive.stores.expressions import Values
    from redrive.stores.sql_claiming import Claiming

_TOLD = 5
"""Places of a payload that the history tells."""


class _Refusal(NamedTuple):
    outcome: str
    reason: str


def edited(
    connection: Connection,
    run: Row[Any],
    plan: RunPlan,
    candidates: Sequence[Candidate],
    claiming: Claiming,
) -> tuple[list[Candidate], dict[str, str]]:
    """What is to be sent; and by their ids, what became of letters that the edit or the schema does not fit."""
    unseen = _edited_since(connection, candidates, run)
    if not plan.edit and not plan.schema and not unseen:
        return released(connection, run, plan, candidates, claiming), {}
    fit: list[Candidate] = []
    refused: dict[str, _Refusal] = {}
    for each in candidates:
        found = _UNSEEN if each.letter.id in unseen else _edited(each, plan)
        if isinstance(found, _Refusal):
            refused[each.letter.id] = found
        else:
            fit.append(found)
    fit = released(connection, run, plan, fit, claiming)
    by = Actor(run.requested_by, plan.reason)
    _keep(connection, [each for each in fit if each.revision != each.letter.revision], claiming, by)
    _tell_refused(connection, [each for each in candidates if each.letter.id in refused], refused, claiming)
    return fit, {each: refusal.outcome for each, refusal in refused.items()}


_UNSEEN = _Refusal(PassedOver.EDITED_MEANWHILE, "after an approval of the run was asked for")


def _edited_since(connection: Connection, candidates: Sequence[Candidate], run: Row[Any]) -> set[str]:
    """Letters whose text nobody has seen who approved the run. Without an approval there is nobody."""
    changed = [each.letter.id for each in candidates if each.revision > 0]
    if run.approval_digest is None or not changed:
        return set()
    later = select(revisions.c.letter_id).where(
        one_of(revisions.c.letter_id, changed, connection.dialect.name), revisions.c.at > run.created_at
    )
    return set(connection.scalars(later))


def _edited(candidate: Candidate, plan: RunPlan) -> Candidate | _Refusal:
    try:
        message = apply(candidate.message, plan.edit, allow_sensitive=plan.allow_sensitive)
    except EditRefused as refusal:
        return _Refusal(PassedOver.NOT_EDITED, str(refusal))
    misfits = _misfits(message, plan.schema) if plan.schema else []
    if misfits:
        return _Refusal(PassedOver.MISFIT, "; ".join(misfits[:_TOLD]))
    return _with(candidate, message)


def _misfits(message: Message, schema: str) -> list[str]:
    check = check_by(schema)
    try:
        return [str(each) for each in check.misfits(message)]
    except UsageError as unusable:  # of this payload: what only its check has come upon
        return [str(unusable)]


def _with(candidate: Candidate, message: Message) -> Candidate:
    """An edit that changes nothing makes no revision."""
    if content(message) == content(candidate.message):
        return candidate
    return Candidate(candidate.letter, candidate.revision + 1, message)


def _keep(connection: Connection, changed: Sequence[Candidate], claiming: Claiming, by: Actor) -> None:
    if not changed:
        return
    insert_rows(
        connection,
        (revisions, [_revision(connection, each, claiming, by) for each in changed]),
        (audit, [_line(each, claiming, by) for each in changed]),
    )
    ids = [each.letter.id for each in changed]
    moved = moving_held(connection, Transition.EDIT, claiming.now, ids)
    counted(connection.execute(moved.values(revision=letters.c.revision + 1)), len(ids))


def _revision(connection: Connection, candidate: Candidate, claiming: Claiming, by: Actor) -> Values:
    letter = candidate.letter
    held = {"letter_id": letter.id, "number": candidate.revision, "at": claiming.now}
    plain = {**held, **sql_audit.signed(by), **content(candidate.message)}
    return sealing_of(connection).revision(plain, queue=letter.queue, created_at=letter.created_at)


def _line(candidate: Candidate, claiming: Claiming, by: Actor) -> Values:
    before, after = f"revision {candidate.letter.revision}", f"revision {candidate.revision}"
    what, letter_id = sql_audit.HAPPENED[Transition.EDIT], candidate.letter.id
    return sql_audit.line(what, letter_id, at=claiming.now, by=by, before=before, after=after)


def _tell_refused(
    connection: Connection, candidates: Sequence[Candidate], refused: dict[str, _Refusal], claiming: Claiming
) -> None:
    lines = [
        sql_audit.line(
            refused[each.letter.id].outcome,
            each.letter.id,
            at=claiming.now,
            by=claiming.because(refused[each.letter.id].reason),
            before=each.letter.status,
            after=each.letter.status,
        )
        for each in candidates
    ]
    sql_audit.write(connection, *lines)
