"""T4 and T5, T7, T8 and T16 on PostgreSQL: one statement for all letters of a window and all tables they are in.

It does what `sql_claiming` and `sql_redrive` do table by table on SQLite. To ask the server for each, and to write
rows that it makes by itself here, took the client longer than everything else about a redrive.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import ARRAY, Select, Text, bindparam, column, delete, func, insert, literal, select, update

from redrive.dead_letter import Transition
from redrive.stores import sql_audit
from redrive.stores.columns import ExactText, Moment, escape_all
from redrive.stores.expressions import any_of
from redrive.stores.schema import audit, claims, letters, redrives
from redrive.stores.sql_guard import SETTLED, moving_found, target, told_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import CTE, ColumnElement, Connection, Table, TableValuedAlias

    from redrive.dead_letter import Actor, Claim
    from redrive.stores.expressions import Values

    Columns = dict[str, ColumnElement[Any]]

_NOW = bindparam("now", type_=Moment)


def give(
    connection: Connection, taken: Sequence[Claim], before: Sequence[str], *, by: Actor, values: Values
) -> int:
    """Claims of letters that are locked and have these statuses. `values`: now, owner, lease_until, run_id, target
    (None: each letter's own queue). How many there are now.
    """
    texts = {
        "ids": escape_all([each.letter_id for each in taken]),
        "redrive_ids": [each.redrive_id for each in taken],
        "before": list(before),
    }
    return connection.scalar(_giving(), {**texts, **values, **sql_audit.signed(by)}) or 0


def end(
    connection: Connection,
    outcome: Transition,
    claimed: Sequence[tuple[str, str]],
    by: Sequence[Actor],
    *,
    now: datetime,
) -> int:
    """Claims, each a letter and its redrive, of letters that are locked; `by`: who ends each, and why. How many
    there were.
    """
    letter_ids, redrive_ids = zip(*claimed, strict=True)
    signed = [sql_audit.signed(each) for each in by]
    texts = {
        "ids": escape_all(letter_ids),
        "redrive_ids": list(redrive_ids),
        "by": escape_all([each["by"] for each in signed]),
        "reasons": escape_all([each["reason"] for each in signed]),
    }
    return connection.scalar(_ending(outcome), {**texts, "now": now}) or 0


@cache
def _giving() -> Select[Any]:
    issued = _rows("issued", letter_id="ids", redrive_id="redrive_ids", before="before")
    moved = moving_found(Transition.CLAIM, _NOW, letters.c.id == issued.c.letter_id)
    moved = moved.values(fence=letters.c.fence + 1, redrive_id=issued.c.redrive_id)
    names = ("id", "redrive_id", "fence", "generation", "revision", "group_id", "queue")
    given = moved.returning(*(letters.c[name] for name in names), issued.c.before).cte("given")
    new = (_insert(claims, _claim(given)), _insert(redrives, _redrive(given)), _insert(audit, _line(given)))
    return select(func.count()).select_from(given).add_cte(*new)


def _of_both(given: CTE) -> Columns:
    queue = func.coalesce(_text("target"), given.c.queue)
    known: Columns = {"letter_id": given.c.id, "redrive_id": given.c.redrive_id, "revision": given.c.revision}
    return {**known, "target": queue, "run_id": _text("run_id")}


def _claim(given: CTE) -> Columns:
    lease = bindparam("lease_until", type_=Moment)
    return {**_of_both(given), "owner": _text("owner"), "fence": given.c.fence, "lease_until": lease}


def _redrive(given: CTE) -> Columns:
    told: Columns = {"generation": given.c.generation, "group_id": given.c.group_id, "claimed_at": _NOW}
    return {**_of_both(given), **told}


def _line(given: CTE) -> Columns:
    status: Columns = {"before": given.c.before, "after": _status(Transition.CLAIM)}
    signed: Columns = {"by": _text("by"), "reason": _text("reason")}
    return {**status, **signed, "letter_id": given.c.id, "at": _NOW, "what": _what(Transition.CLAIM)}


@cache
def _ending(outcome: Transition) -> Select[Any]:
    moved = moving_found(outcome, _NOW, any_of(letters.c.id)).values(SETTLED[outcome])
    ended = moved.returning(letters.c.id).cte("ended")
    over = delete(claims).where(any_of(claims.c.letter_id)).cte("gone")
    told = update(redrives).where(any_of(redrives.c.redrive_id, "redrive_ids")).values(told_of(outcome, _NOW))
    return select(func.count()).select_from(ended).add_cte(over, told.cte("told"), _insert(audit, _last(outcome)))


def _last(outcome: Transition) -> Columns:
    line = _rows("line", letter_id="ids", by="by", reason="reasons")
    status: Columns = {"before": _status(Transition.CLAIM), "after": _status(outcome)}
    signed: Columns = {"by": line.c.by, "reason": line.c.reason}
    return {**status, **signed, "letter_id": line.c.letter_id, "at": _NOW, "what": _what(outcome)}


def _rows(name: str, **columns: str) -> TableValuedAlias:
    """Arrays of texts side by side, each bound by a name of its own."""
    arrays = [bindparam(bound, type_=ARRAY(Text)) for bound in columns.values()]
    named = [column(each, ExactText) for each in columns]
    return func.unnest(*arrays).table_valued(*named, name=name).render_derived()


def _insert(table: Table, values: Columns) -> CTE:
    return insert(table).from_select(list(values), select(*values.values())).cte(f"new_{table.name}")


def _text(name: str) -> ColumnElement[str]:
    return bindparam(name, type_=ExactText)


def _status(transition: Transition) -> ColumnElement[str]:
    return literal(str(target(transition)), Text)


def _what(transition: Transition) -> ColumnElement[str]:
    return literal(sql_audit.HAPPENED[transition], Text)
