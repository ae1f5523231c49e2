"""The erasure of what is kept about a person (LGPD, art. 18): asked for by one, approved by a second one.

Whom it is about is kept as keyed hashes alone, which tell whether somebody else means the same value and nothing
more. What is left of an erased letter is a tombstone: its id, when, by whom and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.errors import UsageError
from redrive.privacy.blind_index import BlindIndex
from redrive.search_document import body_words, error_words, header_text
from redrive.search_match import text_matches
from redrive.search_terms import TextTerm
from redrive.words import LONGEST_PHRASE, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.dead_letter import DeadLetter
    from redrive.message import Message
    from redrive.privacy.maskers import Maskers
    from redrive.privacy.masking import Masker

SHORTEST = 5
"""Characters of a value: shorter ones stand in letters of anybody."""


class ErasureStatus(StrEnum):
    REQUESTED = "REQUESTED"
    APPROVED = "APPROVED"
    """It is being carried out, or was interrupted: whoever approves it again goes on."""
    DONE = "DONE"
    REJECTED = "REJECTED"


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    status: ErasureStatus
    subject: frozenset[str]
    """Keyed hashes of the value that the person is known by, in its forms."""
    requested_by: str
    reason: str
    requested_at: datetime
    expires_at: datetime
    """Not approved by then, it has to be asked for anew."""
    found: int
    """Letters, when it was asked for."""
    approved_by: str | None = None
    erased: int = 0
    ended_at: datetime | None = None


class Person:
    """A value that somebody is known by: a CPF, an address, a customer's number. It never shows itself."""

    def __init__(self, value: str) -> None:
        self._value = value.strip()
        count = len(words(self._value))
        if len(self._value) < SHORTEST or not 0 < count <= LONGEST_PHRASE:
            raise UsageError(
                f"a value of {SHORTEST} characters or more is needed, with at most {LONGEST_PHRASE} words",
                remedy="give what tells the person from all others, such as a CPF or an address",
            )

    def __repr__(self) -> str:
        return "Person(***)"

    @property
    def term(self) -> TextTerm:
        """What finds it in a store: by its words where they are plain, by its keyed hash where they are masked."""
        return TextTerm(text=self._value)

    def hashes(self, key: bytes) -> frozenset[str]:
        return frozenset(each.hex() for each in BlindIndex(key).query(self._value))

    def is_in(self, letter: DeadLetter, maskers: Maskers) -> bool:
        """Anywhere in it: the message as it is and as it was before every edit, its headers and key included, and
        what it failed with.
        """
        raised = [each for failure in letter.failures for each in failure.chain]
        told = [(each.type, each.text) for each in raised] or [(letter.type, letter.text)]
        if any(text_matches(self.term, error_words(*each)) for each in told):
            return True
        masker = maskers.for_queue(letter.queue)
        return any(self._is_in_message(message, masker) for message in _messages(letter))

    def _is_in_message(self, message: Message, masker: Masker) -> bool:
        index = BlindIndex(_ANY_KEY)
        wanted = index.query(self._value)
        if wanted & index.hashes(message, masker) or text_matches(self.term, body_words(message.body)):
            return True
        # However it is written where it stands alone, and as words where it stands among others.
        texts = list(_texts_beside_the_body(message))
        return any(wanted & index.query(text) or text_matches(self.term, words(text)) for text in texts)


_ANY_KEY = b"compared in memory, never kept"
_DEEPEST = 20


def _messages(letter: DeadLetter) -> Iterator[Message]:
    yield letter.message
    yield from (revision.message for revision in letter.revisions)


def _texts_beside_the_body(message: Message) -> Iterator[str]:
    yield from (text for text in (message.id, message.source) if text)
    yield from (data.decode("utf-8", "replace") for data in (message.key, message.properties) if data)
    for name, value in message.headers:
        yield name
        yield from _texts_in(value, _DEEPEST)


def _texts_in(value: Any, depth: int) -> Iterator[str]:
    """Of a header, and of what stands inside it: AMQP has lists and tables."""
    if isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, Mapping) and depth:
        for name, inner in value.items():
            yield str(name)
            yield from _texts_in(inner, depth - 1)
    elif isinstance(value, list | tuple) and depth:
        for inner in value:
            yield from _texts_in(inner, depth - 1)
    elif (text := header_text(value)) is not None:
        yield text
