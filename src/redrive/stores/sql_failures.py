"""The failures of a letter, each kept once per (generation, attempt)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, select

from redrive.dead_letter import Unreadable
from redrive.failure import Failure, FailureKind, Host, Raised
from redrive.message import cut
from redrive.stores.private import PLAIN, columns_of
from redrive.stores.schema import failures
from redrive.stores.sealing import TOLD, sealing_of, told_at
from redrive.stores.sql_rows import failure_columns
from redrive.stores.told import retell, tell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row, ScalarSelect

    from redrive.stores.expressions import Values
    from redrive.stores.private import Columns
    from redrive.stores.sealing import Sealing

MAX_PER_ENTRY = 1000
"""Of one delivery, the newest; no schedule of retries comes near it, a forged trail might."""


class Of(NamedTuple):
    """The letter that failures belong to."""

    id: str
    queue: str
    created_at: datetime


_NAME_BUDGET = 256
_LARGEST = 2**31 - 1

_write = failures.insert()


def attempt_number(failure: Failure) -> int:
    """Bounded, for the number may have come over the wire."""
    return max(0, min(_LARGEST, failure.attempt))


def add(connection: Connection, letter: Of, generation: int, told: Sequence[Failure]) -> None:
    """All of them, for a generation that has none yet."""
    plain = rows(letter.id, generation, told, columns_of(connection, letter.queue))
    connection.execute(_write, sealed(connection, letter, plain))


def sealed(connection: Connection, letter: Of, plain: Iterable[Values]) -> list[Values]:
    """Rows as they are written."""
    sealing = sealing_of(connection)
    return [sealing.failure(row, queue=letter.queue, created_at=letter.created_at) for row in plain]


def rows(letter_id: str, generation: int, told: Sequence[Failure], columns: Columns = PLAIN) -> list[Values]:
    # The first of two with one number stays, as it does when they come in two deliveries.
    once = {attempt_number(each): each for each in reversed(told[-MAX_PER_ENTRY:])}
    return [_row(letter_id, generation, number, each, columns) for number, each in sorted(once.items())]


def is_told(connection: Connection, letter_id: str, generation: int, failure: Failure) -> bool:
    """Whether this very failure is on record, not another one of the same attempt."""
    mine = (failures.c.letter_id == letter_id, failures.c.generation == generation)
    same = (failures.c.attempt == attempt_number(failure), failures.c.at == failure.at)
    return connection.scalar(select(failures.c.attempt).where(*mine, *same)) is not None


def add_unknown(connection: Connection, letter: Of, generation: int, told: Sequence[Failure]) -> bool:
    """Those whose attempt is not on record, and whether there were any. The letter's row is locked."""
    mine = (failures.c.letter_id == letter.id, failures.c.generation == generation)
    known = set(connection.scalars(select(failures.c.attempt).where(*mine)))
    new = [each for each in told if attempt_number(each) not in known]
    if new:
        add(connection, letter, generation, new)
    return bool(new)


def attempts_of(letter_id: str) -> ScalarSelect[int]:
    """All attempts of all lives: the highest number of each generation, added up."""
    highest = (
        select(func.max(failures.c.attempt).label("attempts"))
        .where(failures.c.letter_id == letter_id)
        .group_by(failures.c.generation)
        .subquery()
    )
    return select(func.sum(highest.c.attempts)).scalar_subquery()


def _row(letter_id: str, generation: int, number: int, failure: Failure, columns: Columns) -> Values:
    host = failure.host
    return {
        "letter_id": letter_id,
        "generation": generation,
        "attempt": number,
        "at": failure.at,
        "handler": cut(failure.handler, _NAME_BUDGET),
        "host": cut(host.name, _NAME_BUDGET),
        "process": max(0, min(_LARGEST, host.process)),
        "app": cut(host.app, _NAME_BUDGET),
        "app_version": cut(host.app_version, _NAME_BUDGET),
        "environment": cut(host.environment, _NAME_BUDGET),
        "told": tell(failure),
        **failure_columns(failure),
        "text": columns.failure_text(failure),
    }


def failure_of(row: Row[Any], sealing: Sealing) -> Failure:
    """What the row tells; where the whole story cannot be read, what its plain columns tell of it."""
    place = told_at(row.letter_id, row.generation, row.attempt)
    found = sealing.opened(row.data_key, {TOLD: row.told}, lambda _column: place)
    return _outline(row) if isinstance(found, Unreadable) else retell(found[TOLD])


def _outline(row: Row[Any]) -> Failure:
    return Failure(
        attempt=row.attempt,
        at=row.at,
        kind=FailureKind(row.kind),
        handler=row.handler,
        chain=(Raised(row.type, row.text, ()),),
        host=Host(row.host, row.process, row.app, row.app_version, row.environment),
    )
