"""Plain columns of letters that are on record get their masks: those of an older Redrive, or of a store that was
opened without privacy, are rewritten when their letter is indexed. What has its masks is left as it is.

A letter that somebody else is changing is passed over: it stays in the index's queue, and its turn comes again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select, tuple_, update

from redrive.stores.private import columns_of
from redrive.stores.private_facts import CORRELATION_ID, EVENT_TYPE, SOURCE_ID
from redrive.stores.schema import failures, groups, letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection, Row, Select

    from redrive.stores.expressions import Values
    from redrive.stores.private import Columns

_FACTS = (EVENT_TYPE, SOURCE_ID, CORRELATION_ID)
_MOST_TIMES = 3
_LETTER = (letters.c.id, letters.c.queue, letters.c.text, letters.c.how, *(letters.c[name] for name in _FACTS))


def mask_columns(connection: Connection, letter_ids: Sequence[str]) -> set[str]:
    """The letters that somebody else is at; of all others the columns are as the store's privacy asks."""
    in_use = _mask_letters(connection, letter_ids)
    ours = [each for each in letter_ids if each not in in_use]
    _mask_failures(connection, ours)
    _mask_titles(connection, ours)
    return in_use


def _mask_letters(connection: Connection, letter_ids: Sequence[str]) -> set[str]:
    rows = connection.execute(select(*_LETTER).where(letters.c.id.in_(letter_ids))).all()
    plain = {row.id for row in rows if _masked_letter(connection, row)}
    if not plain:
        return set()
    held = connection.execute(_held(select(*_LETTER).where(letters.c.id.in_(plain)).order_by(letters.c.id))).all()
    for row in held:
        if values := _masked_letter(connection, row):
            connection.execute(update(letters).where(letters.c.id == row.id).values(values))
    return plain - {row.id for row in held}


def _held(rows: Select[Any]) -> Select[Any]:
    """Nobody is waited for, and whoever only refers to such a row does not wait for us."""
    return rows.with_for_update(skip_locked=True, key_share=True)


def _masked_letter(connection: Connection, row: Row[Any]) -> Values:
    """What has to be changed."""
    columns = columns_of(connection, row.queue)
    masked: Values = {"text": _settled(columns, row.text), "how": columns.optional(row.how)}
    for name in _FACTS:
        value = getattr(row, name)
        masked[name] = value if value == row.queue else columns.fact(name, value)
    return {name: value for name, value in masked.items() if value != getattr(row, name)}


def _settled(columns: Columns, text: str) -> str:
    """Masked until there is nothing more to mask: a text that changes is indexed again, which has to end."""
    for _ in range(_MOST_TIMES):
        masked = columns.text(text)
        if masked == text:
            return text
        text = masked
    return columns.text("[masked]")


def _mask_failures(connection: Connection, letter_ids: Sequence[str]) -> None:
    key = (failures.c.letter_id, failures.c.generation, failures.c.attempt)
    mine = select(*key, failures.c.text, letters.c.queue).join(letters, letters.c.id == failures.c.letter_id)
    for row in connection.execute(mine.where(failures.c.letter_id.in_(letter_ids))).all():
        masked = columns_of(connection, row.queue).text(row.text)
        if masked != row.text:
            this = tuple_(*key) == tuple_(row.letter_id, row.generation, row.attempt)
            connection.execute(update(failures).where(this).values(text=masked))


def _mask_titles(connection: Connection, letter_ids: Iterable[str]) -> None:
    titled = select(groups.c.id, groups.c.queue, groups.c.title).order_by(groups.c.id)
    own = select(letters.c.group_id).where(letters.c.id.in_(list(letter_ids)))
    rows = connection.execute(titled.where(groups.c.id.in_(own))).all()
    plain = [row.id for row in rows if columns_of(connection, row.queue).text(row.title) != row.title]
    for row in connection.execute(_held(titled.where(groups.c.id.in_(plain)))).all() if plain else ():
        title = columns_of(connection, row.queue).text(row.title)
        connection.execute(update(groups).where(groups.c.id == row.id).values(title=title))
