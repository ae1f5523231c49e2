"""T7, T8, T10 and T16: what became of what was sent. `sql_claiming` is how the right to send is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete, select, update

from redrive.dead_letter import MAX_REFUSALS, Actor, Transition
from redrive.errors import UsageError
from redrive.stores import postgres_claiming, sql_audit
from redrive.stores.columns import escape_all
from redrive.stores.expressions import any_of, lots, one_of
from redrive.stores.schema import audit, claims, letters, redrives
from redrive.stores.sql_claiming import all_of, counted, insert_rows
from redrive.stores.sql_guard import SETTLED, hold, moving, moving_held, quarantine, target, told_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from redrive.control import RedriveTicket
    from redrive.run import Settled
    from redrive.stores.expressions import Values

CONFIRMED = "confirmed"
REFUSED_BY_BROKER = "refused by the broker"

_CLAIMED = str(target(Transition.CLAIM))


class Ending(NamedTuple):
    """How one claim ends."""

    letter_id: str
    redrive_id: str
    fence: int
    outcome: Transition
    reason: str

    @classmethod
    def of(cls, settled: Settled) -> Ending:
        claim = settled.claim
        return cls(claim.letter_id, claim.redrive_id, claim.fence, settled.outcome, settled.reason)

    def by(self, actor: Actor) -> Actor:
        return Actor(actor.name, self.reason or actor.reason)


def settle(connection: Connection, settled: Sequence[Settled], *, by: Actor, now: datetime) -> list[str]:
    """The letters of those that were changed."""
    for each in settled:
        if each.outcome not in SETTLED:
            name = each.outcome.name
            raise UsageError(f"a claim cannot be settled by {name}", remedy="use SENT, REFUSED or UNCLAIM")
    return end(connection, [Ending.of(each) for each in settled], by=by, now=now)


def end(connection: Connection, endings: Sequence[Ending], *, by: Actor, now: datetime) -> list[str]:
    changed: list[str] = []
    for lot in lots(sorted({each.letter_id for each in endings})):
        mine = set(lot)
        open_ones = _open(connection, [each for each in endings if each.letter_id in mine])
        for outcome in SETTLED:
            _close_all(connection, outcome, [each for each in open_ones if each.outcome is outcome], by, now)
        _give_up(connection, [each for each in open_ones if each.outcome is Transition.REFUSED], by, now)
        changed += [each.letter_id for each in open_ones]
    return changed


def _open(connection: Connection, endings: Sequence[Ending]) -> list[Ending]:
    """Those whose claim is the current one of a letter that is still REDRIVING; of two for one claim the first."""
    found: dict[str, Any] = {row.id: row for row in _held(connection, [each.letter_id for each in endings])}
    first: dict[str, Ending] = {}
    for each in endings:
        if _is_current(found.get(each.letter_id), each):
            first.setdefault(each.letter_id, each)
    return list(first.values())


def _held(connection: Connection, letter_ids: Sequence[str]) -> Sequence[Any]:
    """Locked, and as they are then."""
    hold(connection, letter_ids)
    if connection.dialect.name == "postgresql":
        return connection.execute(_HELD, {"ids": escape_all(letter_ids)}).all()
    return connection.execute(select(*_columns).where(letters.c.id.in_(letter_ids))).all()


_columns = (letters.c.id, letters.c.status, letters.c.fence, letters.c.redrive_id)
_HELD = select(*_columns).where(any_of(letters.c.id))


def _is_current(letter: Any, ending: Ending) -> bool:
    # The fence alone tells this claim from the one that took it over; the status, whether it is still open.
    if letter is None or letter.status != _CLAIMED:
        return False
    return bool(letter.fence == ending.fence and letter.redrive_id == ending.redrive_id)


def _close_all(
    connection: Connection, outcome: Transition, endings: Sequence[Ending], by: Actor, now: datetime
) -> None:
    if not endings:
        return
    if connection.dialect.name == "postgresql":
        claimed = [(each.letter_id, each.redrive_id) for each in endings]
        signed = [each.by(by) for each in endings]
        all_of(postgres_claiming.end(connection, outcome, claimed, signed, now=now), len(endings))
        return
    ids = [each.letter_id for each in endings]
    moved = moving_held(connection, outcome, now, ids)
    counted(connection.execute(moved.values(SETTLED[outcome])), len(ids))
    _close(connection, ids, [each.redrive_id for each in endings], outcome, now)
    insert_rows(connection, (audit, [_line(each, by, now) for each in endings]))


def _give_up(connection: Connection, refused: Sequence[Ending], by: Actor, now: datetime) -> None:
    """T8, the third time: the broker will not have it, and asking again is no use."""
    if not refused:
        return
    reasons = {each.letter_id: each for each in refused}
    columns = (letters.c.id, letters.c.status)
    often = select(*columns).where(
        _among(connection, letters.c.id, list(reasons)), letters.c.refusals >= MAX_REFUSALS
    )
    for row in connection.execute(often).all():
        signed = reasons[row.id].by(by)
        quarantine(connection, row.id, before=row.status, cause=REFUSED_BY_BROKER, by=signed, now=now)


def confirm(connection: Connection, ticket: RedriveTicket, *, by: Actor, now: datetime) -> bool:
    mine = letters.c.id == ticket.letter_id
    status = connection.scalar(select(letters.c.status).where(mine).with_for_update())
    statement = moving(Transition.CONFIRM, now, mine, letters.c.redrive_id == ticket.redrive_id)
    if connection.execute(statement.values(how=CONFIRMED, refusals=0)).rowcount != 1:
        return False
    _close(connection, [ticket.letter_id], [ticket.redrive_id], Transition.CONFIRM, now)
    what, after = sql_audit.HAPPENED[Transition.CONFIRM], str(target(Transition.CONFIRM))
    line = sql_audit.line(what, ticket.letter_id, at=now, by=by, before=str(status), after=after)
    sql_audit.write(connection, line)
    return True


def _close(
    connection: Connection,
    letter_ids: Sequence[str],
    redrive_ids: Sequence[str],
    outcome: Transition,
    now: datetime,
) -> None:
    """The claims are over; each redrive's own row tells how it went."""
    connection.execute(delete(claims).where(_among(connection, claims.c.letter_id, letter_ids)))
    mine = _among(connection, redrives.c.redrive_id, redrive_ids)
    connection.execute(update(redrives).where(mine).values(told_of(outcome, now)))


def _line(ending: Ending, by: Actor, now: datetime) -> Values:
    what, after = sql_audit.HAPPENED[ending.outcome], str(target(ending.outcome))
    signed = ending.by(by)
    return sql_audit.line(what, ending.letter_id, at=now, by=signed, before=_CLAIMED, after=after)


def _among(connection: Connection, column: Any, ids: Sequence[str]) -> ColumnElement[bool]:
    return one_of(column, ids, connection.dialect.name)
