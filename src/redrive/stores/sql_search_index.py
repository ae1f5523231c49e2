"""Fills the search index behind the intake: letters that wait in `search_queue`, the newest first.

1. Rows of the queue are claimed; whoever comes meanwhile takes others. A letter may have several rows, one for
   each change. Somebody else may hold an older one: then the letter is left for later, so that nobody writes its
   parts at the same time, and none of its changes is forgotten.
2. The letters are read after that, so what is read is at least as new as what was queued.
3. Their parts are written anew and the rows leave the queue, in the same transaction.

Nothing here locks a letter: who records, changes or purges one never waits for this, except a purge that meets the
very letters of a batch, and whoever meets a letter whose columns are being masked (`sql_masking`).

In a store with privacy the index holds what is shown to everybody, and tokens of what is masked there. Parts that
were made without, by an older Redrive, are made anew when nothing else waits.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import ARRAY, BigInteger, Boolean, Text, and_, bindparam, case, delete, func, select, text

from redrive.dead_letter import Unreadable
from redrive.headers import decode_headers
from redrive.message import MAX_ENVELOPE_BYTES, Message
from redrive.search_document import MAX_SEARCHED
from redrive.stores.blind_tokens import blind_tokens
from redrive.stores.columns import escape, microseconds
from redrive.stores.private import private_of
from redrive.stores.schema import NOT_PRIVATE, failures, letters, revisions, search_parts, search_queue
from redrive.stores.sealing import sealing_of
from redrive.stores.search_parts import as_tokens, as_vector, parts_of
from redrive.stores.sql_failures import failure_of
from redrive.stores.sql_masking import mask_columns
from redrive.stores.sql_rows import held_by
from redrive.stores.sql_scope import inside, scope_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Connection, Row, Select

    from redrive.access import Scope
    from redrive.stores.expressions import Values
    from redrive.stores.sealing import Sealing
    from redrive.stores.search_parts import Part

BATCH = 250
"""Letters at once, at most: they are committed together, and nobody else writes to a file of SQLite meanwhile."""

_MOST_BYTES = 1024 * 1024
_NO_MATTER = datetime(1970, 1, 1, tzinfo=UTC)


def backlog(connection: Connection, within: Scope = None) -> int:
    """Letters that wait to be indexed; one that changed meanwhile may count twice."""
    waiting = select(func.count()).select_from(search_queue)
    if scope_terms(within):
        waiting = waiting.join(letters, letters.c.id == search_queue.c.letter_id)
        waiting = waiting.where(*inside(letters.c.queue, within))
    return connection.scalar(waiting) or 0


def outdated(connection: Connection, within: Scope = None) -> int:
    """Letters whose parts were made without masks."""
    plain = select(func.count(search_parts.c.letter_id.distinct())).where(NOT_PRIVATE)
    if scope_terms(within):
        plain = plain.join(letters, letters.c.id == search_parts.c.letter_id)
        plain = plain.where(*inside(letters.c.queue, within))
    return connection.scalar(plain) or 0


def is_outdated(connection: Connection) -> bool:
    return connection.scalar(select(search_parts.c.letter_id).where(NOT_PRIVATE).limit(1)) is not None


def queue_outdated(connection: Connection, at_most: int = BATCH) -> int:
    """So many of them wait to be indexed from now on. One that is queued by two processes is indexed twice."""
    plain = select(search_parts.c.letter_id).where(NOT_PRIVATE).limit(at_most)
    found = list(dict.fromkeys(connection.scalars(plain)))
    if found:
        connection.execute(search_queue.insert(), [{"letter_id": each} for each in found])
    return len(found)


def is_waiting(connection: Connection) -> bool:
    return connection.scalar(select(search_queue.c.id).limit(1)) is not None


def index_waiting(connection: Connection, at_most: int = BATCH) -> int:
    """How many letters were indexed: at most so many, fewer if they are large. 0: none waits, or others do it."""
    rows = _claim(connection, at_most)
    if not rows:
        return 0
    taken = _fitting(connection, rows)
    if private_of(connection) is not None:
        in_use = mask_columns(connection, taken)
        taken = [each for each in taken if each not in in_use]
    _write(connection, list(_read(connection, taken)), taken)
    done = [row.id for row in rows if row.letter_id in taken]
    connection.execute(delete(search_queue).where(search_queue.c.id.in_(done)))
    return len(taken)


def _claim(connection: Connection, at_most: int) -> list[Row[int, str]]:
    """The queue's rows of letters that nobody else is at."""
    queued = select(search_queue.c.id, search_queue.c.letter_id)
    newest = queued.order_by(search_queue.c.id.desc()).limit(at_most)
    held = connection.execute(newest.with_for_update(skip_locked=True)).all()
    of_these = search_queue.c.letter_id.in_(list({row.letter_id for row in held}))
    known = connection.execute(queued.where(of_these)).all() if held else []
    if len(known) != len(held):
        held = connection.execute(queued.where(of_these).with_for_update(skip_locked=True)).all()
    mine = {row.id for row in held}
    latest = {row.letter_id: row.id for row in sorted(held, key=lambda row: row.id)}
    elsewhere = {
        row.letter_id for row in known if row.id not in mine and row.id < latest.get(row.letter_id, row.id)
    }
    return [row for row in held if row.letter_id not in elsewhere]


def _fitting(connection: Connection, rows: Sequence[Row[int, str]]) -> list[str]:
    """As many letters as may be in memory together, at least one."""
    waiting = list(dict.fromkeys(row.letter_id for row in rows))
    sizes = _current(letters.c.id, func.length(revisions.c.body).label("size")).where(letters.c.id.in_(waiting))
    size_of = {row.id: row.size or 0 for row in connection.execute(sizes)}
    taken: list[str] = []
    total = 0
    for letter_id in waiting:
        total += min(size_of.get(letter_id, 0), MAX_ENVELOPE_BYTES)
        if taken and total > _MOST_BYTES:
            break
        taken.append(letter_id)
    return taken


def _read(connection: Connection, letter_ids: Sequence[str]) -> Iterator[Values]:
    """The parts of those that are still there."""
    # A body too large for an envelope is searched by its beginning only, so no more of it is read.
    size = func.length(revisions.c.body)
    beginning = func.substr(revisions.c.body, 1, MAX_SEARCHED + 1)
    is_long = and_(size > MAX_ENVELOPE_BYTES, revisions.c.data_key.is_(None))
    body = case((is_long, beginning), else_=revisions.c.body).label("body")
    columns = (letters.c.id, letters.c.queue, letters.c.created_at, letters.c.type, letters.c.text)
    exact = (revisions.c.letter_id, revisions.c.number, revisions.c.headers, revisions.c.key, body)
    query = _current(*columns, *exact, revisions.c.data_key).where(letters.c.id.in_(letter_ids))
    write = as_vector if connection.dialect.name == "postgresql" else as_tokens
    parts = _as_it_is if private_of(connection) is None else _with_masks(connection, letter_ids)
    rows, sealing = connection.execute(query).all(), sealing_of(connection)
    sealing.gather((row.data_key for row in rows), sure_of=connection)
    for row in rows:
        for part in parts(row, _searched(row, sealing)):
            own = {"letter_id": row.id, "created_at": row.created_at, "loose": part.loose}
            yield own | {"words": write(part), "facts": part.facts, "private": parts is not _as_it_is}


def _searched(row: Row[Any], sealing: Sealing) -> Message:
    """What of the message is searched for. Of one that cannot be read, nothing."""
    held = held_by(row, sealing)
    if isinstance(held, Unreadable):
        return Message(id="", queue="", body=None, sent_at=_NO_MATTER)
    body, headers = held["body"], decode_headers(held["headers"])
    if row.data_key is not None and body is not None and len(body) > MAX_ENVELOPE_BYTES:
        body = body[: MAX_SEARCHED + 1]
    return Message(id="", queue="", body=body, headers=headers, key=held["key"], sent_at=_NO_MATTER)


def _as_it_is(row: Row[Any], message: Message) -> Iterator[Part]:
    return parts_of(row.type, row.text, message)


def _with_masks(
    connection: Connection, letter_ids: Sequence[str]
) -> Callable[[Row[Any], Message], Iterator[Part]]:
    private = private_of(connection)
    index = None if private is None else private.index(connection)
    if private is None or index is None:
        raise LookupError("the key of the blind index is made before anything is indexed")
    errors = _errors(connection, letter_ids)

    def parts(row: Row[Any], message: Message) -> Iterator[Part]:
        masker = private.columns(row.queue).masker
        masked = masker.message(message)
        error = errors.get(row.id, row.text)
        blind = blind_tokens(message, masked, error, masker, index) if masker.enabled else []
        return parts_of(row.type, masker.text(row.text), masked, blind)

    return parts


def _errors(connection: Connection, letter_ids: Sequence[str]) -> dict[str, str]:
    """The exact text of each letter's newest failure, which the letter's own row has with masks."""
    number = (failures.c.generation, failures.c.attempt)
    newest = select(failures).where(failures.c.letter_id.in_(letter_ids))
    newest = newest.join(letters, and_(letters.c.id == failures.c.letter_id, letters.c.generation == number[0]))
    rows, sealing = connection.execute(newest.order_by(*number)).all(), sealing_of(connection)
    sealing.gather((row.data_key for row in rows), sure_of=connection)
    last = {row.letter_id: row for row in rows}
    return {letter_id: failure_of(row, sealing).text for letter_id, row in last.items()}


def _current(*columns: Any) -> Select[Any]:
    current = and_(revisions.c.letter_id == letters.c.id, revisions.c.number == letters.c.revision)
    return select(*columns).join(revisions, current)


def _write(connection: Connection, rows: Sequence[Values], replaced: list[str]) -> None:
    connection.execute(delete(search_parts).where(search_parts.c.letter_id.in_(replaced)))
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(_NEW_PARTS, _columns(rows))
    else:
        connection.execute(search_parts.insert(), rows)


_ARRAYS = {
    "letter_id": Text,
    "created_at": BigInteger,
    "loose": Boolean,
    "words": Text,
    "facts": Text,
    "private": Boolean,
}
_NEW_PARTS = text(
    "INSERT INTO search_parts (letter_id, created_at, loose, words, facts, private)"
    " SELECT new.letter_id, new.created_at, new.loose, new.words::tsvector, new.facts::jsonb, new.private"
    " FROM unnest(:letter_id, :created_at, :loose, :words, :facts, :private)"
    " AS new (letter_id, created_at, loose, words, facts, private)"
).bindparams(*(bindparam(name, type_=ARRAY(each)) for name, each in _ARRAYS.items()))
# Arrays in one statement: a row each would cost a message each.


def _columns(rows: Sequence[Values]) -> Values:
    return {
        "letter_id": [escape(row["letter_id"]) for row in rows],
        "created_at": [microseconds(row["created_at"]) for row in rows],
        "loose": [row["loose"] for row in rows],
        "words": [row["words"] for row in rows],
        "facts": [row["facts"] for row in rows],
        "private": [row["private"] for row in rows],
    }
