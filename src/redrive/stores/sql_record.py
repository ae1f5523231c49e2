"""T1, T2 and T3: how a failed message becomes a letter, or joins the one it belongs to.

1. A ticket that was issued for a letter, on a message with the bytes that were sent, belongs to that letter.
   The first time it is T3, after that T2. Any other ticket is as good as none: a letter may have been purged,
   and headers get copied onto new messages, which must not vanish into an old letter.
2. An identity that is not on record is T1: the unique key decides, so two processes cannot both win.
3. An identity on record is T2.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, select, update

from redrive.clock import new_id
from redrive.dead_letter import MAX_GENERATIONS, Actor, Recorded, Status, Transition, Unreadable
from redrive.event import describe
from redrive.message import cut
from redrive.ordering import PARKED
from redrive.privacy.encryption.envelope import Place
from redrive.stores import sql_audit, sql_failures, sql_groups, sql_lanes
from redrive.stores.expressions import earlier, insert_into, later
from redrive.stores.private import PLAIN, columns_of
from redrive.stores.private_facts import CORRELATION_ID, EVENT_TYPE, SOURCE_ID
from redrive.stores.schema import claims, letters, redrives, revisions
from redrive.stores.sealing import sealing_of
from redrive.stores.sql_failures import Of
from redrive.stores.sql_guard import HOW_BUDGET, hold, moving, quarantine, target
from redrive.stores.sql_rows import failure_columns, first_content, identity_key, short_type

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection, Row
    from sqlalchemy.dialects.sqlite import Insert

    from redrive.dead_letter import Entry
    from redrive.event import Event
    from redrive.stores.expressions import Values
    from redrive.stores.private import Columns

_CAME_BACK = sql_audit.HAPPENED[Transition.CAME_BACK]
GENERATION_LIMIT = "generation limit"
_NOT_ITS_TURN = "not tried: an earlier letter of its key is open"


def record(connection: Connection, entry: Entry, now: datetime) -> tuple[str, Recorded]:
    redrive = _issued(connection, entry)
    if redrive is not None:
        return redrive.id, _returned(connection, entry, redrive, now)
    letter_id = new_id() if entry.lane is None else sql_lanes.next_id(connection, entry.lane)
    if _insert(connection, letter_id, entry, now):
        return letter_id, Recorded.NEW
    return again(connection, entry, now)


def again(connection: Connection, entry: Entry, now: datetime) -> tuple[str, Recorded]:
    """T2, for an identity that is on record."""
    known = connection.execute(
        select(letters).where(letters.c.identity == identity_key(entry.identity)).with_for_update()
    ).one()
    # Without a ticket it is the message of the first life, whatever the letter has lived through since.
    _fold(connection, entry, known, generation=1)
    _quarantine(connection, entry, known, now)
    return known.id, Recorded.AGAIN


def _insert(connection: Connection, letter_id: str, entry: Entry, now: datetime) -> bool:
    """T1; False if the identity is on record."""
    if connection.scalar(_known, {"identity": identity_key(entry.identity)}) is not None:
        return False
    group_id = sql_groups.join(connection, [entry])[entry.fingerprint.id]
    columns = columns_of(connection, entry.queue)
    row = letter_row(letter_id, entry, group_id, now, columns)
    if connection.execute(_new_letter(connection.dialect.name), row).scalar() is None:
        return False
    connection.execute(_new_revision, sealed_original(connection, letter_id, entry))
    sql_failures.add(connection, Of(letter_id, entry.queue, entry.at), 1, entry.failures)
    sql_audit.write(connection, recorded(letter_id, entry, columns))
    return True


_known = select(letters.c.id).where(letters.c.identity == bindparam("identity", type_=letters.c.identity.type))


def sealed_original(connection: Connection, letter_id: str, entry: Entry) -> Values:
    """The first revision, as it is written."""
    by = {"by": entry.by, "reason": ""}
    plain = {"letter_id": letter_id, "number": 0, "at": entry.at, **by, **first_content(entry.message)}
    return sealing_of(connection).revision(plain, queue=entry.queue, created_at=entry.at)


def recorded(letter_id: str, entry: Entry, columns: Columns = PLAIN) -> Values:
    """The first line of the history."""
    by = Actor(entry.by, columns.text(entry.quarantine or ""))
    return sql_audit.line(sql_audit.RECORDED, letter_id, at=entry.at, by=by, after=str(_first_status(entry)))


def _first_status(entry: Entry) -> Status:
    return Status.PENDING if entry.quarantine is None else target(Transition.QUARANTINE)


@cache
def _new_letter(dialect: str) -> Insert:
    insert = insert_into(letters, dialect).on_conflict_do_nothing(index_elements=[letters.c.identity])
    return insert.returning(letters.c.id)  # type: ignore[return-value]  # executes as the same statement


_new_revision = revisions.insert()


def letter_row(letter_id: str, entry: Entry, group_id: str, now: datetime, columns: Columns = PLAIN) -> Values:
    key, event = identity_key(entry.identity), describe(entry.message, entry.queue)
    return {
        "id": letter_id,
        "status": str(_first_status(entry)),
        "changed_at": max(now, entry.at),
        "identity": key,
        "long_identity": None if key == entry.identity else entry.identity,
        "message_id": entry.message.id,
        "message_queue": entry.message.queue,
        "source": entry.message.source,
        "sent_at": entry.message.sent_at,
        "queue": entry.queue,
        "how": _cause(entry, 1, columns),
        "generation": 1,
        "revision": 0,
        "fence": 0,
        "redrive_id": None,
        "refusals": 0,
        "deliveries": 1,
        "delivered_at": entry.at,
        "attempts": max(sql_failures.attempt_number(failure) for failure in entry.failures),
        "created_at": entry.at,
        "first_attempt_at": entry.first_attempt_at,
        "last_attempt_at": entry.failures[-1].at,
        "lane": None,
        **_facts(event, entry.queue, columns),
        **_latest(entry, group_id, columns),
    }


def _facts(event: Event, queue: str, columns: Columns) -> Values:
    """What the message says about itself. The queue's own name, which stands for an event type, is nobody's."""
    type_ = event.event_type
    return {
        "event_type": type_ if type_ == queue else columns.fact(EVENT_TYPE, type_),
        "source_id": columns.fact(SOURCE_ID, event.source_id),
        "correlation_id": columns.fact(CORRELATION_ID, event.correlation_id),
    }


def _latest(entry: Entry, group_id: str, columns: Columns) -> Values:
    """What the last failure says about the letter."""
    last = entry.failures[-1]
    return {
        "handler": entry.handler,
        "group_id": group_id,
        "fingerprint": entry.fingerprint.id,
        "short_type": short_type(last),
        **failure_columns(last),
        "text": columns.failure_text(last),
        **({} if entry.lane is None else {"lane": entry.lane}),
    }


def _issued(connection: Connection, entry: Entry) -> Row[Any] | None:
    """The letter of the entry's ticket with that redrive, if it was issued and its message is what was sent."""
    if entry.ticket is None:
        return None
    sent = and_(revisions.c.letter_id == redrives.c.letter_id, revisions.c.number == redrives.c.revision)
    returned_as, issued_id = redrives.c.returned_as, redrives.c.redrive_id.label("issued_id")
    hold(connection, [entry.ticket.letter_id])
    found = connection.execute(
        select(letters, returned_as, issued_id, revisions.c.body, revisions.c.data_key, revisions.c.number)
        .join(redrives, redrives.c.letter_id == letters.c.id)
        .join(revisions, sent)
        .where(redrives.c.redrive_id == entry.ticket.redrive_id, letters.c.id == entry.ticket.letter_id)
    ).one_or_none()
    return found if found is not None and _is_body(entry.message.body, found, connection) else None


def _is_body(came: bytes | None, sent: Row[Any], connection: Connection) -> bool:
    """False too if what was sent cannot be read any more."""
    place = Place(sent.id, "body", sent.number)
    found = sealing_of(connection).opened(sent.data_key, {"body": sent.body}, lambda _column: place)
    return not isinstance(found, Unreadable) and found["body"] == came


def _returned(connection: Connection, entry: Entry, known: Row[Any], now: datetime) -> Recorded:
    if known.returned_as is not None:
        _fold(connection, entry, known, generation=known.returned_as)
        _quarantine(connection, entry, known, now)
        return Recorded.AGAIN
    if _only_parked(entry):
        return _parked_again(connection, entry, known, now)
    generation = known.generation + 1
    sql_failures.add(connection, _of(known), generation, entry.failures)
    counted = _one_more_delivery(entry, known) | {"generation": generation}
    group_id = sql_groups.join(connection, [entry])[entry.fingerprint.id]
    connection.execute(
        update(redrives)
        .where(redrives.c.redrive_id == known.issued_id, redrives.c.returned_as.is_(None))
        .values(returned_as=generation, outcome=_CAME_BACK, outcome_at=now, **_groups(known, group_id))
    )
    latest = _latest(entry, group_id, columns_of(connection, known.queue))
    if _come_back(connection, entry, counted | latest, known, now):
        return Recorded.CAME_BACK
    # A redrive that no longer decides (the letter was restored, discarded or redriven anew meanwhile): its
    # failures are one more life of the letter, its status is for the later decision to say.
    connection.execute(update(letters).where(letters.c.id == known.id).values(counted))
    _tell(connection, Actor(entry.by), known, now, after=known.status)
    _quarantine(connection, entry, known, now, generation)
    return Recorded.AGAIN


def _only_parked(entry: Entry) -> bool:
    return entry.failures[-1].type == PARKED


def _parked_again(connection: Connection, entry: Entry, known: Row[Any], now: datetime) -> Recorded:
    """T3 for a message that was not even tried, because a letter before it is open: no life of it has ended."""
    connection.execute(
        update(redrives)
        .where(redrives.c.redrive_id == known.issued_id)
        .values(returned_as=known.generation, outcome=_CAME_BACK, outcome_at=now, **_groups(known, known.group_id))
    )
    values = {"redrive_id": None, "how": None, "refusals": 0}
    current = (letters.c.id == known.id, letters.c.redrive_id == known.issued_id)
    if connection.execute(moving(Transition.CAME_BACK, now, *current).values(values)).rowcount != 1:
        return Recorded.AGAIN
    connection.execute(delete(claims).where(claims.c.letter_id == known.id))
    _tell(connection, Actor(entry.by, _NOT_ITS_TURN), known, now, after=str(target(Transition.CAME_BACK)))
    return Recorded.CAME_BACK


def _groups(known: Row[Any], returned: str) -> Values:
    """With which group the redrive came back. While it decides, the group that the letter has is the one it had
    when it was claimed, merged into another by a person at most.
    """
    before = {"group_id": known.group_id} if known.redrive_id == known.issued_id else {}
    return {"returned_group": returned, **before}


def _come_back(connection: Connection, entry: Entry, values: Values, known: Row[Any], now: datetime) -> bool:
    """T3; False if the letter's status does not allow it or another redrive decides."""
    cause = _cause(entry, values["generation"], columns_of(connection, known.queue))
    after = target(Transition.CAME_BACK if cause is None else Transition.QUARANTINE)
    values = values | {"status": str(after), "how": cause, "redrive_id": None, "refusals": 0}
    current = (letters.c.id == known.id, letters.c.redrive_id == known.issued_id)
    if connection.execute(moving(Transition.CAME_BACK, now, *current).values(values)).rowcount != 1:
        return False
    connection.execute(delete(claims).where(claims.c.letter_id == known.id))
    sql_groups.leave(connection, [known.group_id])
    _tell(connection, Actor(entry.by, cause or ""), known, now, after=str(after))
    return True


def _fold(connection: Connection, entry: Entry, known: Row[Any], *, generation: int) -> None:
    """T2. An entry that was counted before is a repeated write: no change."""
    last = entry.failures[-1]
    counted = known.delivered_at == entry.at or sql_failures.is_told(connection, known.id, generation, last)
    if sql_failures.add_unknown(connection, _of(known), generation, entry.failures) or not counted:
        values = _one_more_delivery(entry, known)
        connection.execute(update(letters).where(letters.c.id == known.id).values(values))


def _of(known: Row[Any]) -> Of:
    return Of(known.id, known.queue, known.created_at)


def _one_more_delivery(entry: Entry, known: Row[Any]) -> Values:
    return {
        "deliveries": letters.c.deliveries + 1,
        "delivered_at": entry.at,
        "attempts": sql_failures.attempts_of(known.id),
        "first_attempt_at": earlier(letters.c.first_attempt_at, entry.first_attempt_at),
        "last_attempt_at": later(letters.c.last_attempt_at, entry.failures[-1].at),
    }


def _cause(entry: Entry, generation: int, columns: Columns) -> str | None:
    """Why the letter must wait for a person (T14), if it must."""
    if entry.quarantine is not None:
        return cut(columns.text(entry.quarantine), HOW_BUDGET)
    return GENERATION_LIMIT if generation > MAX_GENERATIONS else None


def _quarantine(connection: Connection, entry: Entry, known: Row[Any], now: datetime, generation: int = 1) -> None:
    cause = _cause(entry, generation, columns_of(connection, known.queue))
    if cause is not None:
        by = Actor(entry.by, cause)
        quarantine(connection, known.id, before=known.status, cause=cause, by=by, now=now)


def _tell(connection: Connection, by: Actor, known: Row[Any], now: datetime, *, after: str) -> None:
    line = sql_audit.line(_CAME_BACK, known.id, at=now, by=by, before=known.status, after=after)
    sql_audit.write(connection, line)
