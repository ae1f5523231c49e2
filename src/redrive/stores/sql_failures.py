"""The failures of a letter, each kept once per (generation, attempt)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from redrive.message import cut
from redrive.stores.private import PLAIN, columns_of
from redrive.stores.schema import failures
from redrive.stores.sql_rows import failure_columns
from redrive.stores.told import tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, ScalarSelect

    from redrive.failure import Failure
    from redrive.stores.expressions import Values
    from redrive.stores.private import Columns

MAX_PER_ENTRY = 1000
"""Of one delivery, the newest; no schedule of retries comes near it, a forged trail might."""

_NAME_BUDGET = 256
_LARGEST = 2**31 - 1

_write = failures.insert()


def attempt_number(failure: Failure) -> int:
    """Bounded, for the number may have come over the wire."""
    return max(0, min(_LARGEST, failure.attempt))


def add(connection: Connection, letter_id: str, generation: int, told: Sequence[Failure], queue: str) -> None:
    """All of them, for a generation that has none yet. `queue`: the letter's."""
    connection.execute(_write, rows(letter_id, generation, told, columns_of(connection, queue)))


def rows(letter_id: str, generation: int, told: Sequence[Failure], columns: Columns = PLAIN) -> list[Values]:
    # The first of two with one number stays, as it does when they come in two deliveries.
    once = {attempt_number(each): each for each in reversed(told[-MAX_PER_ENTRY:])}
    return [_row(letter_id, generation, number, each, columns) for number, each in sorted(once.items())]


def is_told(connection: Connection, letter_id: str, generation: int, failure: Failure) -> bool:
    """Whether this very failure is on record, not another one of the same attempt."""
    mine = (failures.c.letter_id == letter_id, failures.c.generation == generation)
    same = (failures.c.attempt == attempt_number(failure), failures.c.at == failure.at)
    return connection.scalar(select(failures.c.attempt).where(*mine, *same)) is not None


def add_unknown(
    connection: Connection, letter_id: str, generation: int, told: Sequence[Failure], queue: str
) -> bool:
    """Those whose attempt is not on record, and whether there were any. The letter's row is locked."""
    mine = (failures.c.letter_id == letter_id, failures.c.generation == generation)
    known = set(connection.scalars(select(failures.c.attempt).where(*mine)))
    new = [each for each in told if attempt_number(each) not in known]
    if new:
        add(connection, letter_id, generation, new, queue)
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
