"""Lanes: letters whose order is kept. What is open in one keeps everything behind it waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import func, select, text

from redrive.clock import new_id
from redrive.stores.schema import IN_LANES, letters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection, Row

_before = letters.alias("before")


def ahead(connection: Connection, lane: str, of: str | None) -> str | None:
    """The first open letter of the lane, before the letter `of` if that is given."""
    query = select(func.min(letters.c.id)).where(*_open_in(lane))
    found: str | None = connection.scalar(query if of is None else query.where(letters.c.id < of))
    return found


def next_id(connection: Connection, lane: str) -> str:
    """For a letter that comes behind all others of the lane, whatever the clocks of those who made them said."""
    mine = new_id()
    last = connection.scalar(select(func.max(letters.c.id)).where(*_open_in(lane)))
    return mine if last is None or mine > last else str(UUID(int=UUID(last).int + 1))


def first_open(connection: Connection, lane: str, number: int) -> Sequence[Row[Any]]:
    """The first letters of the lane that are not settled, in their order."""
    columns: list[Any] = [letters.c.id, letters.c.status, letters.c.type, letters.c.changed_at]
    query = select(*columns).where(*_open_in(lane)).order_by(letters.c.id).limit(number)
    return connection.execute(query).all()


def _open_in(lane: str) -> tuple[ColumnElement[bool], ...]:
    return letters.c.lane == lane, IN_LANES  # type: ignore[return-value]  # a text that is a condition


_unsettled = text("before.status NOT IN ('RESOLVED', 'DISCARDED')")  # written out, as in the index
BLOCKED_BY = (
    select(func.min(_before.c.id))
    .where(_before.c.lane == letters.c.lane, _unsettled, _before.c.id < letters.c.id)
    .correlate(letters)
    .scalar_subquery()
    .label("blocked_by")
)
"""Of a letter's row: the first open letter before it in its lane."""
