"""Rows into nouns: messages, letters, revisions, and what a letter's row says about a failure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, null, select

from redrive.dead_letter import DeadLetter, Revision, Status
from redrive.headers import decode_headers, encode_headers
from redrive.message import Message, cut
from redrive.stores.schema import letters, revisions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row, Select

    from redrive.failure import Failure
    from redrive.stores.expressions import Values

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
    apart = (revisions.c.body, _properties) if bodies else (null().label("body"), null().label("properties"))
    told = (*columns, *apart, revisions.c.headers, revisions.c.key)
    return select(*told, *more).select_from(letters).join(revisions, current)


_first = revisions.alias("first")
_properties = (
    select(_first.c.properties)
    .where(_first.c.letter_id == letters.c.id, _first.c.number == 0)
    .correlate(letters)
    .scalar_subquery()
    .label("properties")
)


def message_of(row: Row[Any]) -> Message:
    """The message of a letter's row."""
    return _message(row, row, row.properties)


def _message(row: Row[Any], held: Row[Any], properties: bytes | None) -> Message:
    return Message(
        id=row.message_id,
        queue=row.message_queue,
        body=held.body,
        sent_at=row.sent_at,
        headers=decode_headers(held.headers),
        key=held.key,
        source=row.source,
        properties=properties,
    )


def revisions_of(letter: Row[Any], rows: Sequence[Row[Any]]) -> tuple[Revision, ...]:
    """All revisions of a letter, from its row and theirs, in order."""
    properties = rows[0].properties if rows else None
    return tuple(
        Revision(
            number=row.number,
            at=row.at,
            by=row.by,
            reason=row.reason,
            message=_message(letter, row, properties),
        )
        for row in rows
    )


def letter_of(row: Row[Any], message: Message | None = None, **told: Any) -> DeadLetter:
    """`message` is the current one, if the row does not hold its body."""
    return DeadLetter(
        id=row.id,
        status=Status(row.status),
        how=row.how,
        message=message or message_of(row),
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
