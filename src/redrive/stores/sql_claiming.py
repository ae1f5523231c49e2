"""T4 to T6: the right to send letters, each to one at a time, durable before anything is sent.

Whoever calls has locked the letters (`held`), so what is read of them is what is changed: a few statements for
hundreds of letters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select, update

from redrive.clock import new_id
from redrive.dead_letter import TRANSITIONS, Actor, Claim, Transition, Unreadable
from redrive.stores import bulk, postgres_claiming, sql_audit
from redrive.stores.columns import escape_all
from redrive.stores.expressions import any_of, lots, one_of
from redrive.stores.schema import audit, claims, letters, redrives
from redrive.stores.sealing import sealing_of
from redrive.stores.sql_guard import hold, moving_held, target
from redrive.stores.sql_rows import empty_message, gather_keys, message_of, select_letters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, CursorResult, Row, Table

    from redrive.message import Message
    from redrive.stores.expressions import Values

_CLAIMED = str(target(Transition.CLAIM))


class Claiming(NamedTuple):
    """Who claims, for how long, and for which run."""

    owner: str
    lease_until: datetime
    now: datetime
    run_id: str | None = None
    target: str | None = None
    """Another queue than each letter's own."""

    @property
    def by(self) -> Actor:
        return self.because("" if self.run_id is None else f"run {self.run_id}")

    @property
    def values(self) -> Values:
        own = {"now": self.now, "owner": self.owner, "lease_until": self.lease_until}
        return {**own, "run_id": self.run_id, "target": self.target}

    def because(self, reason: str) -> Actor:
        return Actor(self.owner, reason)


class Candidate(NamedTuple):
    """A letter that is PENDING and locked, and what is to be sent of it."""

    letter: Row[Any]
    revision: int
    message: Message
    unreadable: Unreadable | None = None
    """Then the message is empty, and nothing may be sent."""


def readable_of(connection: Connection, found: Sequence[Row[Any]]) -> dict[str, Candidate]:
    """By their ids, those whose message can be read: no other can be sent."""
    candidates = _candidates(connection, found)
    return {each.letter.id: each for each in candidates if each.unreadable is None}


def _candidates(connection: Connection, found: Sequence[Row[Any]]) -> list[Candidate]:
    sealing = sealing_of(connection)
    gather_keys(sealing, found)
    return [_candidate(row, message_of(row, sealing)) for row in found]


def _candidate(row: Row[Any], message: Message | Unreadable) -> Candidate:
    if isinstance(message, Unreadable):
        return Candidate(row, row.revision, empty_message(row), message)
    return Candidate(row, row.revision, message)


def claim(connection: Connection, letter_ids: Sequence[str], claiming: Claiming) -> list[Claim]:
    """Those that are PENDING, and those whose claim's lease has run out."""
    claimed: dict[str, Claim] = {}
    for lot in lots(letter_ids):
        found = held(connection, lot)
        pending = readable_of(connection, [letter for letter in found if is_claimable(letter)])
        mine = take(connection, list(pending.values()), claiming) + take_over(connection, found, claiming)
        claimed |= {each.letter_id: each for each in mine}
    return [claimed[letter_id] for letter_id in dict.fromkeys(letter_ids) if letter_id in claimed]


def held(connection: Connection, letter_ids: Sequence[str]) -> Sequence[Row[Any]]:
    """Those that exist, with their messages, locked."""
    hold(connection, letter_ids)
    if connection.dialect.name == "postgresql":
        return connection.execute(_HELD, {"ids": escape_all(letter_ids)}).all()
    return connection.execute(_WITH_MESSAGES.where(letters.c.id.in_(letter_ids))).all()


_OF_LETTERS = (
    "id", "status", "fence", "generation", "revision", "group_id", "queue", "created_at",
    "message_id", "message_queue", "source", "sent_at", "lane",
)  # fmt: skip
"""Not all columns: to read a value costs as much as most of what is done with it."""
_WITH_MESSAGES = select_letters(columns=[letters.c[name] for name in _OF_LETTERS])
_HELD = _WITH_MESSAGES.where(any_of(letters.c.id))


def is_claimable(letter: Row[Any]) -> bool:
    return letter.status in TRANSITIONS[Transition.CLAIM].sources


def take(connection: Connection, candidates: Sequence[Candidate], claiming: Claiming) -> list[Claim]:
    """T4 and T5."""
    if not candidates:
        return []
    taken = [_claim_of(each, new_id(), claiming.target or each.letter.queue) for each in candidates]
    if connection.dialect.name == "postgresql":
        before = [each.letter.status for each in candidates]
        given = postgres_claiming.give(connection, taken, before, by=claiming.by, values=claiming.values)
        all_of(given, len(taken))
        return taken
    insert_rows(
        connection,
        (claims, [_claim_row(each, claiming) for each in taken]),
        (redrives, [_issued_row(one, each, claiming) for one, each in zip(candidates, taken, strict=True)]),
        (audit, [_line(Transition.CLAIM, one.letter, claiming) for one in candidates]),
    )
    ids = [each.letter_id for each in taken]
    issued = select(claims.c.redrive_id).where(claims.c.letter_id == letters.c.id).scalar_subquery()
    moved = moving_held(connection, Transition.CLAIM, claiming.now, ids)
    counted(connection.execute(moved.values(fence=letters.c.fence + 1, redrive_id=issued)), len(ids))
    return taken


def take_over(connection: Connection, found: Sequence[Row[Any]], claiming: Claiming) -> list[Claim]:
    """T6, where a lease has run out: the same redrive id, so that a copy already sent and the one to come are
    known as one; and the same target. What cannot be read any more is handed over too, for it has to be settled.
    """
    taken = _candidates(connection, [letter for letter in found if letter.status == _CLAIMED])
    held_by_others = {each.letter.id: each for each in taken}
    if not held_by_others:
        return []
    expired = select(claims).where(
        _among(connection, claims.c.letter_id, list(held_by_others)), claims.c.lease_until <= claiming.now
    )
    over = {row.letter_id: row for row in connection.execute(expired)}
    if over:
        _hand_over(connection, list(over), claiming)
        before_and_after = {"before": _CLAIMED, "after": _CLAIMED}
        line = sql_audit.TAKEN_OVER
        sql_audit.write(
            connection,
            *(sql_audit.line(line, each, at=claiming.now, by=claiming.by, **before_and_after) for each in over),
        )
    # EDIT is refused while REDRIVING, so the current revision is the one that was claimed.
    return [_claim_of(held_by_others[each], row.redrive_id, row.target) for each, row in over.items()]


def _hand_over(connection: Connection, letter_ids: list[str], claiming: Claiming) -> None:
    mine = _among(connection, letters.c.id, letter_ids)
    taken = update(letters).where(mine).values(fence=letters.c.fence + 1)
    counted(connection.execute(taken), len(letter_ids))
    handed = update(claims).where(_among(connection, claims.c.letter_id, letter_ids))
    values = {"owner": claiming.owner, "lease_until": claiming.lease_until, "fence": claims.c.fence + 1}
    connection.execute(handed.values(values | {"unsent": False}))


def redrive_row(letter: Row[Any], claiming: Claiming, revision: int) -> Values:
    """What a redrive's row says about its letter."""
    return {
        "letter_id": letter.id,
        "generation": letter.generation,
        "revision": revision,
        "group_id": letter.group_id,
        "target": claiming.target or letter.queue,
    }


def _issued_row(candidate: Candidate, claim: Claim, claiming: Claiming) -> Values:
    known = redrive_row(candidate.letter, claiming, candidate.revision)
    return {
        **known,
        "redrive_id": claim.redrive_id,
        "claimed_at": claiming.now,
        "run_id": claiming.run_id,
    }


def insert_rows(connection: Connection, *inserts: tuple[Table, Sequence[Values]]) -> None:
    """All rows into their tables, of which each has at least one."""
    if connection.dialect.name == "postgresql":
        bulk.insert_rows(connection, *inserts)
        return
    for table, rows in inserts:
        connection.execute(table.insert(), list(rows))


def counted(result: CursorResult[Any], expected: int) -> None:
    all_of(result.rowcount, expected)


def all_of(changed: int, expected: int) -> None:
    if changed != expected:
        raise RuntimeError(f"{changed} letters changed in the place of {expected} that are locked")


def _claim_of(candidate: Candidate, redrive_id: str, queue: str) -> Claim:
    return Claim(
        letter_id=candidate.letter.id,
        redrive_id=redrive_id,
        fence=candidate.letter.fence + 1,
        generation=candidate.letter.generation,
        target=queue,
        revision=candidate.revision,
        message=candidate.message,
        unreadable=candidate.unreadable,
        lane=candidate.letter.lane,
    )


def _claim_row(claim: Claim, claiming: Claiming) -> Values:
    return {
        "letter_id": claim.letter_id,
        "redrive_id": claim.redrive_id,
        "owner": claiming.owner,
        "fence": claim.fence,
        "lease_until": claiming.lease_until,
        "target": claim.target,
        "revision": claim.revision,
        "run_id": claiming.run_id,
    }


def _line(transition: Transition, letter: Row[Any], claiming: Claiming) -> Values:
    what, after = sql_audit.HAPPENED[transition], str(target(transition))
    return sql_audit.line(what, letter.id, at=claiming.now, by=claiming.by, before=letter.status, after=after)


def _among(connection: Connection, column: Any, ids: Sequence[str]) -> Any:
    return one_of(column, ids, connection.dialect.name)
