"""What `redrive export` writes as JSON lines. With `--whole` a letter comes back as it was; without, it has one
failure that says what the list says, and the body that was current.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.dead_letter import DeadLetter, Revision
from redrive.failure import Failure, FailureKind, Raised
from redrive.imports.values import checked_name
from redrive.letter_json import letter_of

if TYPE_CHECKING:
    from redrive.imports.rows import Row

_OURS = {"id", "status", "group_id", "identity", "message", "changed_at"}
_LONGEST_TEXT = 10_000
_MOST_FAILURES = 10_000


def recognises(row: Row) -> bool:
    return row.values.keys() >= _OURS


def letter_of_row(row: Row) -> DeadLetter:
    return completed(letter_of(row.values))


def completed(letter: DeadLetter) -> DeadLetter:
    """A letter that a store can take. ValueError says what is wrong with one that contradicts itself."""
    checked_name("the queue", letter.queue)
    checked_name("the handler", letter.handler or "?")
    checked_name("the type", letter.type)
    _check_texts(letter)
    if not letter.failures:
        letter = msgspec.structs.replace(letter, failures=(_only_failure(letter),), generations=(1,))
    if not letter.revisions:
        letter = msgspec.structs.replace(letter, revisions=(_original(letter),), revision=0)
    _check_failures(letter)
    _check_revisions(letter)
    return letter


def _check_texts(letter: DeadLetter) -> None:
    told = [letter.text, letter.how or ""]
    told += [
        text for each in letter.history for text in (each.by, each.what, each.before, each.after, each.reason)
    ]
    told += [text for each in letter.revisions for text in (each.by, each.reason)]
    if any(len(text) > _LONGEST_TEXT for text in told):
        raise ValueError(f"a text of it is longer than {_LONGEST_TEXT} characters")


def _check_failures(letter: DeadLetter) -> None:
    numbers = [(each, failure.attempt) for each, failure in zip(letter.generations, letter.failures, strict=True)]
    if len(set(numbers)) != len(numbers) or len(numbers) > _MOST_FAILURES:
        raise ValueError("one attempt is told twice, or there are too many")


def _check_revisions(letter: DeadLetter) -> None:
    numbers = [each.number for each in letter.revisions]
    if numbers != list(range(len(numbers))) or letter.revision not in numbers:
        raise ValueError("its revisions do not follow one another, or the current one is missing")


def _only_failure(letter: DeadLetter) -> Failure:
    return Failure(
        attempt=max(1, min(letter.attempts, 2**31 - 1)),
        at=letter.last_attempt_at,
        kind=FailureKind(letter.kind),
        handler=letter.handler,
        chain=(Raised(letter.type, letter.text, ()),),
    )


def _original(letter: DeadLetter) -> Revision:
    return Revision(
        number=0,
        at=letter.created_at,
        by="import",
        reason="",
        message=letter.message,
        unreadable=letter.unreadable,
    )
