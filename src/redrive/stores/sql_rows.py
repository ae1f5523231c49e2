"""Rows into nouns: messages, letters, revisions, and what a letter's row says about a failure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, null, select

from redrive.dead_letter import DeadLetter, Revision, Status, Unreadable
from redrive.headers import decode_headers, encode_headers
from redrive.message import Message, cut
from redrive.privacy.encryption.envelope import Place
from redrive.stores.schema import letters, revisions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Row, Select

    from redrive.failure import Failure
    from redrive.stores.expressions import Values
    from redrive.stores.sealing import Sealing

TYPE_BUDGET = 512
TEXT_BUDGET = 1024
_LONGEST_KEY = 200
_DIGEST = "sha256:"


def identity_key(identity: str) -> str:
    """What makes a letter unique: its identity, or a digest where that is too long for an index.
    An identity that looks like a digest is digested too, so that none can pass for another.
    """
    if len(identity) <= _LONGEST_KEY and not identity.startswith(_DIGEST):
        return identity
    return _DIGEST + hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()


def failure_columns(failure: Failure) -> Values:
    """How the letter's row, or a failure's, tells what went wrong: bounded, for lists and searching."""
    return {
        "kind": str(failure.kind),
        "type": cut(failure.type, TYPE_BUDGET),
        "text": cut(failure.text, TEXT_BUDGET),
    }


def short_type(failure: Failure) -> str:
    return cut(failure.type.rpartition(".")[2], TYPE_BUDGET)


def content(message: Message) -> Values:
    """What every revision holds; everything else about a message stays the same for its whole life."""
    return {"body": message.body, "headers": encode_headers(message.headers), "key": message.key}


def first_content(message: Message) -> Values:
    """What revision 0 holds: what no edit changes lies beside what it does, and out of the lists' way."""
    return {**content(message), "properties": message.properties}


def select_letters(*more: Any, bodies: bool = True, columns: Sequence[Any] = (letters,)) -> Select[Any]:
    """Letters, each with its current revision; without `bodies`, body and properties are NULL and are not read.
    `columns`: what is wanted of the letter's own row, everything if nothing else is said.
    """
    current = and_(revisions.c.letter_id == letters.c.id, revisions.c.number == letters.c.revision)
    apart = (revisions.c.body, *_of_first) if bodies else _NOT_READ
    told = (*columns, *apart, revisions.c.headers, revisions.c.key, revisions.c.data_key)
    return select(*told, *more).select_from(letters).join(revisions, current)


_first = revisions.alias("first")
_of_first = tuple(
    select(column)
    .where(_first.c.letter_id == letters.c.id, _first.c.number == 0)
    .correlate(letters)
    .scalar_subquery()
    .label(name)
    for name, column in (("properties", _first.c.properties), ("properties_key", _first.c.data_key))
)
_NOT_READ = tuple(null().label(name) for name in ("body", "properties", "properties_key"))


def gather_keys(sealing: Sealing, rows: Sequence[Row[Any]]) -> None:
    """Before rows of `select_letters` are opened one by one."""
    sealing.gather(each for row in rows for each in (row.data_key, row.properties_key))


def message_of(row: Row[Any], sealing: Sealing) -> Message | Unreadable:
    """The message of a letter's row."""
    held = _held(row, row.id, row.revision, sealing)
    first = sealing.opened(row.properties_key, {"properties": row.properties}, _places(row.id, 0))
    if isinstance(held, Unreadable):
        return held
    return first if isinstance(first, Unreadable) else _message(row, {**held, **first})


def _held(row: Row[Any], letter_id: str, number: int, sealing: Sealing) -> Values | Unreadable:
    """What the columns of a revision hold that may be another one than the letter's first."""
    values = {"body": row.body, "headers": row.headers, "key": row.key}
    return sealing.opened(row.data_key, values, _places(letter_id, number))


def held_by(row: Row[Any], sealing: Sealing) -> Values | Unreadable:
    """What `content` made the row of a revision of."""
    return _held(row, row.letter_id, row.number, sealing)


def _places(letter_id: str, number: int) -> Callable[[str], Place]:
    return lambda column: Place(letter_id, column, number)


def _message(row: Row[Any], held: Values) -> Message:
    return Message(
        id=row.message_id,
        queue=row.message_queue,
        body=held["body"],
        sent_at=row.sent_at,
        headers=decode_headers(held["headers"]),
        key=held["key"],
        source=row.source,
        properties=held["properties"],
    )


def empty_message(row: Row[Any]) -> Message:
    """In the place of one that cannot be read."""
    return _message(row, {"body": None, "headers": encode_headers(()), "key": None, "properties": None})


def revisions_of(letter: Row[Any], rows: Sequence[Row[Any]], sealing: Sealing) -> tuple[Revision, ...]:
    """All revisions of a letter, from its row and theirs, in order."""
    sealing.gather(row.data_key for row in rows)
    first: Values | Unreadable = {"properties": None}
    if rows:
        first = sealing.opened(rows[0].data_key, {"properties": rows[0].properties}, _places(letter.id, 0))
    return tuple(_revision(letter, row, _held(row, letter.id, row.number, sealing), first) for row in rows)


def _revision(letter: Row[Any], row: Row[Any], held: Values | Unreadable, first: Values | Unreadable) -> Revision:
    signed = {"number": row.number, "at": row.at, "by": row.by, "reason": row.reason}
    if isinstance(held, Unreadable):
        return Revision(**signed, message=empty_message(letter), unreadable=held)
    if isinstance(first, Unreadable):
        return Revision(**signed, message=empty_message(letter), unreadable=first)
    return Revision(**signed, message=_message(letter, {**held, **first}))


def keys_of(rows: Sequence[Any], sealing: Sealing) -> list[bytes | Unreadable]:
    """The message keys of rows that have `id`, `revision`, `key` and `data_key`."""
    sealing.gather(row.data_key for row in rows)
    return [_key(row, sealing) for row in rows]


def _key(row: Row[Any], sealing: Sealing) -> bytes | Unreadable:
    found = sealing.opened(row.data_key, {"key": row.key}, _places(row.id, row.revision))
    return found if isinstance(found, Unreadable) else found["key"]


def letters_of(rows: Sequence[Row[Any]], sealing: Sealing, *more: str) -> list[DeadLetter]:
    """Of rows of `select_letters`, with these columns as they are."""
    gather_keys(sealing, rows)
    return [
        letter_of(row, message_of(row, sealing), **{name: getattr(row, name) for name in more}) for row in rows
    ]


def letter_of(row: Row[Any], message: Message | Unreadable, **told: Any) -> DeadLetter:
    """`message` is the current one, or why it cannot be read."""
    unreadable = message if isinstance(message, Unreadable) else None
    return DeadLetter(
        id=row.id,
        status=Status(row.status),
        how=row.how,
        message=empty_message(row) if isinstance(message, Unreadable) else message,
        unreadable=unreadable,
        queue=row.queue,
        handler=row.handler,
        kind=row.kind,
        type=row.type,
        text=row.text,
        group_id=row.group_id,
        identity=row.identity if row.long_identity is None else row.long_identity,
        generation=row.generation,
        revision=row.revision,
        deliveries=row.deliveries,
        attempts=row.attempts,
        created_at=row.created_at,
        first_attempt_at=row.first_attempt_at,
        last_attempt_at=row.last_attempt_at,
        changed_at=row.changed_at,
        lane=row.lane,
        **told,
    )
