"""Looking: one letter with its whole story, pages of letters, and numbers. Every value is a bound parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from redrive.errors import UsageError
from redrive.letter_query import MAX_PAGE
from redrive.stores.expressions import begins_with
from redrive.stores.schema import letters, revisions
from redrive.stores.sql_audit import history_of
from redrive.stores.sql_failures import all_of
from redrive.stores.sql_rows import letter_of, revision_of, select_letters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import ColumnElement, Connection, Row

    from redrive.dead_letter import DeadLetter
    from redrive.letter_query import LetterQuery

SHORTEST_BEGINNING = 8
MAX_IDS = 10_000


def get(connection: Connection, letter_id: str) -> DeadLetter | None:
    row = _one(connection, letter_id)
    if row is None:
        return None
    told = all_of(connection, row.id)
    query = select(revisions).where(revisions.c.letter_id == row.id).order_by(revisions.c.number)
    return letter_of(
        row,
        failures=tuple(failure for _, failure in told),
        generations=tuple(generation for generation, _ in told),
        revisions=tuple(revision_of(row, each) for each in connection.execute(query)),
        history=tuple(history_of(connection, row.id)),
    )


def _one(connection: Connection, letter_id: str) -> Row[Any] | None:
    exact = connection.execute(select_letters().where(letters.c.id == letter_id)).one_or_none()
    if exact is not None or len(letter_id) < SHORTEST_BEGINNING:
        return exact
    beginning = begins_with(letters.c.id, letter_id.lower())
    rows = connection.execute(select_letters().where(beginning).limit(2)).all()
    if len(rows) > 1:
        raise UsageError(
            f"more than one letter's id begins with {letter_id!r}", remedy="give more of the id, or all of it"
        )
    return rows[0] if rows else None


def find(connection: Connection, query: LetterQuery) -> list[DeadLetter]:
    if query.ids is not None and len(query.ids) > MAX_IDS:
        raise UsageError(f"{len(query.ids)} ids in one query", remedy=f"ask for at most {MAX_IDS} at a time")
    found = select_letters(bodies=query.bodies).where(*_conditions(query))
    page = found.order_by(letters.c.id.desc()).limit(page_size(query.limit))
    return [letter_of(row) for row in connection.execute(page)]


def page_size(limit: int) -> int:
    return max(0, min(limit, MAX_PAGE))


def _conditions(query: LetterQuery) -> Iterator[ColumnElement[bool]]:
    columns = letters.c
    if query.ids is not None:
        yield columns.id.in_(list(dict.fromkeys(query.ids)))
    for column, wanted in (
        (columns.status, query.status),
        (columns.queue, query.queue),
        (columns.handler, query.handler),
    ):
        if wanted is not None:
            yield column == str(wanted)
    if query.type is not None:
        yield or_(columns.type == query.type, columns.short_type == query.type)
    if query.group is not None:
        yield begins_with(columns.group_id, query.group)
    if query.created_before is not None:
        yield columns.created_at < query.created_before
    if query.created_after is not None:
        yield columns.created_at > query.created_after
    if query.after is not None:
        yield columns.id < query.after
