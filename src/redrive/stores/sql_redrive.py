"""T4 to T10 and T16: the right to send a letter once, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, select, update

from redrive.clock import new_id
from redrive.dead_letter import MAX_REFUSALS, TRANSITIONS, Actor, Claim, Transition
from redrive.errors import UsageError
from redrive.stores import sql_audit
from redrive.stores.expressions import lots
from redrive.stores.schema import claims, letters, redrives
from redrive.stores.sql_guard import hold, moving, quarantine, target
from redrive.stores.sql_rows import message_of, select_letters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.control import RedriveTicket

CONFIRMED = "confirmed"
REFUSED_BY_BROKER = "refused by the broker"


def claim(
    connection: Connection, letter_ids: Sequence[str], *, owner: str, lease_until: datetime, now: datetime
) -> list[Claim]:
    claimed: dict[str, Claim] = {}
    for lot in lots(letter_ids):
        hold(connection, lot)
        for letter in connection.execute(select_letters().where(letters.c.id.in_(lot))).all():
            allowed = letter.status in TRANSITIONS[Transition.CLAIM].sources
            redrive_id = (_take if allowed else _take_over)(connection, letter, owner, lease_until, now)
            if redrive_id is not None:
                claimed[letter.id] = _claim_of(letter, redrive_id)
    return [claimed[letter_id] for letter_id in dict.fromkeys(letter_ids) if letter_id in claimed]


def _take(
    connection: Connection, letter: Row[Any], owner: str, lease_until: datetime, now: datetime
) -> str | None:
    """T4 and T5: durable before anything is sent."""
    redrive_id, fence = new_id(), letter.fence + 1
    statement = moving(Transition.CLAIM, now, letters.c.id == letter.id, letters.c.fence == letter.fence)
    if connection.execute(statement.values(fence=fence, redrive_id=redrive_id)).rowcount != 1:
        return None
    common = {"letter_id": letter.id, "redrive_id": redrive_id, "revision": letter.revision}
    held = {"owner": owner, "fence": fence, "lease_until": lease_until, "target": letter.queue}
    connection.execute(claims.insert(), common | held)
    connection.execute(redrives.insert(), common | {"generation": letter.generation, "claimed_at": now})
    _tell(connection, Transition.CLAIM, letter.id, before=letter.status, by=Actor(owner), now=now)
    return redrive_id


def _take_over(
    connection: Connection, letter: Row[Any], owner: str, lease_until: datetime, now: datetime
) -> str | None:
    """T6: the same redrive id, so that a copy already sent and the one to come are known as one."""
    fence, claimed = letter.fence + 1, str(target(Transition.CLAIM))
    expired = exists().where(claims.c.letter_id == letter.id, claims.c.lease_until <= now)
    taken = update(letters).where(letters.c.id == letter.id, letters.c.fence == letter.fence)
    taken = taken.where(letters.c.status == claimed, expired).values(fence=fence)
    if connection.execute(taken).rowcount != 1:
        return None
    held = update(claims).where(claims.c.letter_id == letter.id)
    connection.execute(held.values(owner=owner, fence=fence, lease_until=lease_until))
    line = sql_audit.line(sql_audit.TAKEN_OVER, letter.id, at=now, by=Actor(owner), before=claimed, after=claimed)
    sql_audit.write(connection, line)
    return str(letter.redrive_id)


def _claim_of(letter: Row[Any], redrive_id: str) -> Claim:
    # EDIT is refused while REDRIVING, so the current revision is the one that was claimed.
    return Claim(
        letter_id=letter.id,
        redrive_id=redrive_id,
        fence=letter.fence + 1,
        generation=letter.generation,
        target=letter.queue,
        revision=letter.revision,
        message=message_of(letter),
    )


def settle(connection: Connection, claim: Claim, outcome: Transition, *, by: Actor, now: datetime) -> bool:
    if outcome not in _SETTLED:
        raise UsageError(f"a claim cannot be settled by {outcome.name}", remedy="use SENT, REFUSED or UNCLAIM")
    held = (letters.c.id == claim.letter_id, letters.c.redrive_id == claim.redrive_id)
    # The fence alone tells this claim from the one that took it over; the status, whether it is still open.
    statement = moving(outcome, now, *held, letters.c.fence == claim.fence).values(_SETTLED[outcome])
    if connection.execute(statement).rowcount != 1:
        return False
    _close(connection, claim.letter_id, claim.redrive_id, outcome, now)
    _tell(connection, outcome, claim.letter_id, before=str(target(Transition.CLAIM)), by=by, now=now)
    if outcome is Transition.REFUSED:
        _give_up(connection, claim.letter_id, by, now)
    return True


_SETTLED: dict[Transition, dict[str, Any]] = {
    Transition.SENT: {"refusals": 0},  # the redrive stays the one that decides
    Transition.REFUSED: {"refusals": letters.c.refusals + 1, "redrive_id": None},
    Transition.UNCLAIM: {"redrive_id": None},
}


def _give_up(connection: Connection, letter_id: str, by: Actor, now: datetime) -> None:
    """T8, the third time: the broker will not have it, and asking again is no use."""
    columns = (letters.c.status, letters.c.refusals)
    letter = connection.execute(select(*columns).where(letters.c.id == letter_id)).one()
    if letter.refusals >= MAX_REFUSALS:
        quarantine(connection, letter_id, before=letter.status, cause=REFUSED_BY_BROKER, by=by, now=now)


def confirm(connection: Connection, ticket: RedriveTicket, *, by: Actor, now: datetime) -> bool:
    mine = letters.c.id == ticket.letter_id
    status = connection.scalar(select(letters.c.status).where(mine).with_for_update())
    statement = moving(Transition.CONFIRM, now, mine, letters.c.redrive_id == ticket.redrive_id)
    if connection.execute(statement.values(how=CONFIRMED, refusals=0)).rowcount != 1:
        return False
    _close(connection, ticket.letter_id, ticket.redrive_id, Transition.CONFIRM, now)
    _tell(connection, Transition.CONFIRM, ticket.letter_id, before=str(status), by=by, now=now)
    return True


def _close(connection: Connection, letter_id: str, redrive_id: str, outcome: Transition, now: datetime) -> None:
    """The claim is over; the redrive's own row tells how it went."""
    connection.execute(delete(claims).where(claims.c.letter_id == letter_id))
    ended: dict[str, Any] = {"outcome": sql_audit.HAPPENED[outcome], "outcome_at": now}
    values = {"sent_at": now} if outcome is Transition.SENT else ended
    connection.execute(update(redrives).where(redrives.c.redrive_id == redrive_id).values(values))


def _tell(
    connection: Connection, transition: Transition, letter_id: str, *, before: str, by: Actor, now: datetime
) -> None:
    what, after = sql_audit.HAPPENED[transition], str(target(transition))
    sql_audit.write(connection, sql_audit.line(what, letter_id, at=now, by=by, before=before, after=after))
