"""Letters with bodies and their whole story, many at a time: a few statements per lot, and no lot larger than
memory allows (G7).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from sqlalchemy import func, literal, select

from redrive.message import cut
from redrive.stores import sql_failures
from redrive.stores.columns import escape_all
from redrive.stores.expressions import any_of, lots, one_of
from redrive.stores.private import columns_of
from redrive.stores.schema import audit, failures, letters, revisions
from redrive.stores.sealing import sealing_of
from redrive.stores.sql_audit import happening
from redrive.stores.sql_lanes import BLOCKED_BY
from redrive.stores.sql_rows import TEXT_BUDGET, letter_of, letters_of, revisions_of, select_letters
from redrive.stores.sql_scope import inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Column, ColumnElement, Connection, Row, Table

    from redrive.access import Scope
    from redrive.dead_letter import DeadLetter
    from redrive.failure import Failure
    from redrive.stores.private import Columns

BUDGET = 8 * 1024 * 1024
"""Bytes of bodies, headers and failures that are read at once; one letter alone may be larger."""
AT_ONCE = 200


def portions(connection: Connection, letter_ids: Sequence[str], *, story: bool) -> list[list[str]]:
    """The ids, each once and in their order, in portions that may be read at once."""
    found: list[list[str]] = []
    for lot in lots(letter_ids):
        sizes = _sizes(connection, lot, story=story)
        room = 0
        for letter_id in lot:
            size = sizes[letter_id]
            if not found or size > room or len(found[-1]) >= AT_ONCE:
                found.append([])
                room = BUDGET
            found[-1].append(letter_id)
            room -= size
    return found


def first_portion(connection: Connection, letter_ids: Sequence[str]) -> Sequence[str]:
    """The first of `portions` without the story. Nearly always it is all of them, which one number tells."""
    if len(letter_ids) <= AT_ONCE and _whole_size(connection, letter_ids) <= BUDGET:
        return letter_ids
    return portions(connection, letter_ids, story=False)[0]


def _whole_size(connection: Connection, letter_ids: Sequence[str]) -> int:
    if connection.dialect.name == "postgresql":
        return int(connection.scalar(_WHOLE_SIZE, {"ids": escape_all(letter_ids)}) or 0)
    mine = revisions.c.letter_id.in_(letter_ids)
    return int(connection.scalar(select(func.sum(_HELD)).where(mine)) or 0)


_parts = (revisions.c.body, revisions.c.headers, revisions.c.properties)
_HELD = sum((func.coalesce(func.length(part), 0) for part in _parts), start=literal(0))
_WHOLE_SIZE = select(func.sum(_HELD)).where(any_of(revisions.c.letter_id))


def read(
    connection: Connection, letter_ids: Sequence[str], *, story: bool, within: Scope = None
) -> list[DeadLetter]:
    """Those that exist, in the order of the ids. Without `story`, only the bodies are added to what a list has."""
    query = select_letters(BLOCKED_BY, bodies=not story).where(letters.c.id.in_(list(letter_ids)))
    rows = connection.execute(query.where(*inside(letters.c.queue, within))).all()
    by_id = {row.id: row for row in rows}
    wanted = [by_id[letter_id] for letter_id in letter_ids if letter_id in by_id]
    if story:
        return list(with_story(connection, wanted))
    return letters_of(wanted, sealing_of(connection), "blocked_by")


def with_story(connection: Connection, rows: Sequence[Row[Any]]) -> Iterator[DeadLetter]:
    """The letters of these rows, read without their bodies, with everything that belongs to them."""
    ids = [row.id for row in rows]
    edits = _by_letter(connection, revisions, ids, order=(revisions.c.number,))
    told = _by_letter(connection, failures, ids, order=(failures.c.generation, failures.c.attempt))
    lines = _by_letter(connection, audit, ids, order=(audit.c.id,))
    sealing = sealing_of(connection)
    sealing.gather(each.data_key for found in (edits, told) for own in found.values() for each in own)
    for row in rows:
        every = revisions_of(row, edits[row.id], sealing)
        current = next(each for each in every if each.number == row.revision)
        failed = tuple(sql_failures.failure_of(each, sealing) for each in told[row.id])
        whole = letter_of(
            row,
            current.unreadable or current.message,
            failures=failed,
            generations=tuple(each.generation for each in told[row.id]),
            revisions=every,
            history=tuple(happening(each) for each in lines[row.id]),
            blocked_by=row.blocked_by,
        )
        exact = _exact_text(columns_of(connection, row.queue), row.text, failed)
        yield whole if exact == row.text else replace(whole, text=exact)


def _exact_text(columns: Columns, shown: str, failed: Sequence[Failure]) -> str:
    """Of the failure that a letter is known by, whose text its row may have with masks."""
    same = (each for each in reversed(failed) if columns.failure_text(each) == shown)
    found = next(same, None)
    return shown if found is None else cut(found.text, TEXT_BUDGET)


def _sizes(connection: Connection, letter_ids: list[str], *, story: bool) -> Mapping[str, int]:
    sizes: dict[str, int] = defaultdict(int)
    measured: list[tuple[Table, ColumnElement[int]]] = [(revisions, _HELD)]
    if story:
        measured.append((failures, func.length(failures.c.told)))
    for table, size in measured:
        mine = one_of(table.c.letter_id, letter_ids, connection.dialect.name)
        query = select(table.c.letter_id, func.sum(size)).where(mine)
        for letter_id, total in connection.execute(query.group_by(table.c.letter_id)):
            sizes[letter_id] += int(total)
    return sizes


def _by_letter(
    connection: Connection, table: Table, letter_ids: list[str], *, order: Iterable[Column[Any]]
) -> Mapping[str, list[Row[Any]]]:
    found: dict[str, list[Row[Any]]] = defaultdict(list)
    query = select(table).where(table.c.letter_id.in_(letter_ids)).order_by(table.c.letter_id, *order)
    for row in connection.execute(query):
        found[row.letter_id].append(row)
    return found
