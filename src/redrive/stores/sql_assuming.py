"""Redriven letters of which nothing was heard for so long that it is taken for success (T11, how=assumed)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from redrive.dead_letter import Status, Transition
from redrive.stores import sql_change
from redrive.stores.expressions import lots
from redrive.stores.schema import letters, redrives
from redrive.stores.sql_guard import hold
from redrive.stores.sql_ledger import NO_LEDGER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.dead_letter import Actor
    from redrive.stores.sql_ledger import Ledger


def assume(
    connection: Connection,
    letter_ids: Sequence[str],
    *,
    sent_before: datetime,
    by: Actor,
    now: datetime,
    ledger: Ledger = NO_LEDGER,
) -> int:
    assumed: sql_change.Before = {}
    for lot in lots(sorted(letter_ids)):
        hold(connection, lot)  # what is found silent now, stays so until it is changed
        silent = _silent(connection, lot, sent_before)
        how = sql_change.ASSUMED
        assumed |= sql_change.move(connection, silent, Transition.RESOLVE, by=by, how=how, now=now)[0]
    sql_change.tell(connection, ledger, Transition.RESOLVE, assumed, by=by, now=now)
    return len(assumed)


def _silent(connection: Connection, letter_ids: list[str], sent_before: datetime) -> list[str]:
    query = (
        select(letters.c.id)
        .join(redrives, redrives.c.redrive_id == letters.c.redrive_id)
        .where(
            letters.c.id.in_(letter_ids),
            letters.c.status == str(Status.REDRIVEN),
            redrives.c.outcome.is_(None),
            redrives.c.sent_at < sent_before,
        )
    )
    return list(connection.scalars(query))
