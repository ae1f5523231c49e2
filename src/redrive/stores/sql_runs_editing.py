"""T17 for letters that a run takes: its edit as a new revision of each, in the transaction that claims them.

A letter that the edit does not fit is left as it is, with the reason in its history; the others go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.dead_letter import Transition
from redrive.editing import apply
from redrive.errors import EditRefused
from redrive.stores import sql_audit
from redrive.stores.schema import audit, letters, revisions
from redrive.stores.sql_claiming import Candidate, counted, insert_rows
from redrive.stores.sql_guard import moving_held
from redrive.stores.sql_rows import content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from redrive.dead_letter import Actor
    from redrive.editing import Operation
    from redrive.message import Message
    from redrive.stores.expressions import Values
    from redrive.stores.sql_claiming import Claiming

NOT_EDITED = "not edited"


def edited(
    connection: Connection,
    operations: Sequence[Operation],
    candidates: Sequence[Candidate],
    claiming: Claiming,
    *,
    by: Actor,
) -> tuple[list[Candidate], list[str]]:
    """What is to be sent, and the ids of letters that the edit does not fit."""
    if not operations:
        return list(candidates), []
    fit: list[Candidate] = []
    refused: dict[str, EditRefused] = {}
    for each in candidates:
        try:
            fit.append(_with(each, apply(each.message, operations)))
        except EditRefused as refusal:
            refused[each.letter.id] = refusal
    _keep(connection, [each for each in fit if each.revision != each.letter.revision], claiming, by)
    _tell_refused(connection, [each for each in candidates if each.letter.id in refused], refused, claiming)
    return fit, list(refused)


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
        (revisions, [_revision(each, claiming, by) for each in changed]),
        (audit, [_line(each, claiming, by) for each in changed]),
    )
    ids = [each.letter.id for each in changed]
    moved = moving_held(connection, Transition.EDIT, claiming.now, ids)
    counted(connection.execute(moved.values(revision=letters.c.revision + 1)), len(ids))


def _revision(candidate: Candidate, claiming: Claiming, by: Actor) -> Values:
    held = {"letter_id": candidate.letter.id, "number": candidate.revision, "at": claiming.now}
    return {**held, **sql_audit.signed(by), **content(candidate.message)}


def _line(candidate: Candidate, claiming: Claiming, by: Actor) -> Values:
    before, after = f"revision {candidate.letter.revision}", f"revision {candidate.revision}"
    what, letter_id = sql_audit.HAPPENED[Transition.EDIT], candidate.letter.id
    return sql_audit.line(what, letter_id, at=claiming.now, by=by, before=before, after=after)


def _tell_refused(
    connection: Connection, candidates: Sequence[Candidate], refused: dict[str, EditRefused], claiming: Claiming
) -> None:
    lines = [
        sql_audit.line(
            NOT_EDITED,
            each.letter.id,
            at=claiming.now,
            by=claiming.because(str(refused[each.letter.id])),
            before=each.letter.status,
            after=each.letter.status,
        )
        for each in candidates
    ]
    sql_audit.write(connection, *lines)
