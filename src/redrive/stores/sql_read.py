"""Looking: one letter with its whole story, pages of letters, and numbers. Every value is a bound parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive.errors import UsageError
from redrive.stores.estimates import plan_anew
from redrive.stores.expressions import begins_with
from redrive.stores.postgres_search import find_page
from redrive.stores.schema import letters
from redrive.stores.sealing import sealing_of
from redrive.stores.sql_lanes import BLOCKED_BY
from redrive.stores.sql_rows import letters_of, select_letters
from redrive.stores.sql_scope import inside
from redrive.stores.sql_selection import needs_index, page_of, with_owned_groups
from redrive.stores.sql_whole import with_story

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from redrive.access import Scope
    from redrive.dead_letter import DeadLetter
    from redrive.letter_query import LetterQuery

SHORTEST_BEGINNING = 8
MAX_IDS = 10_000


def get(connection: Connection, letter_id: str, within: Scope = None) -> DeadLetter | None:
    row = _one(connection, letter_id, within)
    return None if row is None else next(with_story(connection, [row]))


def _one(connection: Connection, letter_id: str, within: Scope) -> Row[Any] | None:
    with_bodies_apart = select_letters(BLOCKED_BY, bodies=False).where(*inside(letters.c.queue, within))
    exact = connection.execute(with_bodies_apart.where(letters.c.id == letter_id)).one_or_none()
    if exact is not None or len(letter_id) < SHORTEST_BEGINNING:
        return exact
    beginning = begins_with(letters.c.id, letter_id.lower())
    rows = connection.execute(with_bodies_apart.where(beginning).limit(2)).all()
    if len(rows) > 1:
        raise UsageError(
            f"more than one letter's id begins with {letter_id!r}", remedy="give more of the id, or all of it"
        )
    return rows[0] if rows else None


def find(connection: Connection, query: LetterQuery) -> list[DeadLetter]:
    if query.ids is not None and len(query.ids) > MAX_IDS:
        raise UsageError(f"{len(query.ids)} ids in one query", remedy=f"ask for at most {MAX_IDS} at a time")
    query = with_owned_groups(connection, query)
    # The page first, by ids alone: all else is read of its letters only.
    found = select_letters(BLOCKED_BY, bodies=query.bodies)
    if connection.dialect.name == "postgresql" and needs_index(query):
        found = found.where(letters.c.id.in_(find_page(connection, query)))
    else:
        if query.where.terms or query.within is not None:
            plan_anew(connection)
        page = page_of(query, connection.dialect.name).subquery("page")
        found = found.join(page, page.c.id == letters.c.id)
    newest_first = found.order_by(letters.c.created_at.desc(), letters.c.id.desc())
    rows = connection.execute(newest_first).all()
    return letters_of(rows, sealing_of(connection), "blocked_by")
