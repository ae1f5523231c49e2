"""The next letters of a run's selection, which was frozen when the run was made: the oldest first, none twice.

A filter is asked page by page behind the last letter that was looked at, for letters up to the cut-off. A list of
ids is gone through in its order.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace
from sqlalchemy import func, select

from redrive.letter_query import LetterQuery, Place
from redrive.preview import taken_of
from redrive.search_terms import Field, FieldTerm, Filter, Op
from redrive.stores import sql_count
from redrive.stores.estimates import plan_anew, plan_once
from redrive.stores.postgres_search import find_page
from redrive.stores.schema import letters
from redrive.stores.sql_selection import all_of, needs_index, page_behind, terms_of, with_owned_groups
from redrive.stores.sql_whole import first_portion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from redrive.run import RunPlan

_FIRST = Place(datetime.min.replace(tzinfo=UTC), "")


class Cursor(NamedTuple):
    """How far the selection was looked at."""

    cut_off: str
    last: Place | None = None
    place: int = 0
    exhausted: bool = False


class Page(NamedTuple):
    ids: Sequence[str]
    place: int = 0
    """Of the last of them, in a list of ids."""
    is_last: bool = False


def count(connection: Connection, plan: RunPlan) -> int:
    """How many letters would be taken now."""
    number = sql_count.count(connection, taken_of(plan.selection, quarantined=plan.quarantined), None).number
    return number if plan.at_most is None else min(number, plan.at_most)


def cut_off(connection: Connection) -> str:
    return connection.scalar(select(func.max(letters.c.id))) or ""


def next_page(connection: Connection, plan: RunPlan, cursor: Cursor, size: int) -> Page:
    """At most `size` letters, and no more than memory should hold at once."""
    selection = plan.selection
    page = _of_filter(connection, plan, cursor, size) if selection.ids is None else _of_ids(plan, cursor, size)
    if not page.ids:
        return page
    portion = first_portion(connection, page.ids)
    left = len(page.ids) - len(portion)
    wanted = portion if selection.ids is None else _matching(connection, selection, portion)
    return Page(wanted, page.place - left, page.is_last and not left)


def _of_filter(connection: Connection, plan: RunPlan, cursor: Cursor, size: int) -> Page:
    known = FieldTerm(field=Field.ID, op=Op.AT_MOST, values=(cursor.cut_off,))
    pending = taken_of(plan.selection, quarantined=plan.quarantined)
    where = Filter((*pending.where.terms, known))
    query = with_owned_groups(connection, replace(pending, where=where, limit=size))
    last = cursor.last or _FIRST
    if connection.dialect.name == "postgresql" and needs_index(query):
        found = find_page(connection, replace(query, before=last))
    else:
        plan_anew(connection, in_order=True)
        place = {"created_at": last.created_at, "id": last.id}
        found = list(connection.scalars(page_behind(query, connection.dialect.name), place))
    plan_once(connection)
    return Page(found, is_last=len(found) < size)


def _of_ids(plan: RunPlan, cursor: Cursor, size: int) -> Page:
    every = list(dict.fromkeys(plan.selection.ids or ()))
    found = every[cursor.place : cursor.place + size]
    reached = cursor.place + len(found)
    return Page(found, reached, is_last=reached >= len(every))


def _matching(connection: Connection, selection: LetterQuery, ids: Sequence[str]) -> Sequence[str]:
    """Those that are all else that the selection asks for. Their status is looked at when they are locked."""
    query = with_owned_groups(connection, replace(taken_of(selection), status=None, ids=tuple(ids)))
    if not terms_of(query):
        return ids
    matching = set(connection.scalars(all_of(query, connection.dialect.name)))
    return [each for each in ids if each in matching]


def selected(connection: Connection, plan: RunPlan, cut_off: str, ids: Sequence[str]) -> set[str]:
    """Those of the letters that the run was made for, whatever their status is."""
    listed = None if plan.selection.ids is None else set(plan.selection.ids)
    known = [each for each in ids if each <= cut_off and (listed is None or each in listed)]
    return set(_matching(connection, plan.selection, known)) if known else set()
