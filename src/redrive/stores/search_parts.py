"""What one letter gives to the search index: its words in parts that every database can hold, and its facts.

A tsvector of PostgreSQL keeps a word's first 256 places, and no place beyond 16,383. So a part ends before any of
that is reached, and the next one begins a phrase earlier: no phrase is lost at a border, and none is cut short.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from redrive.search_document import body_words, document, error_words, header_text
from redrive.stores.columns import escape
from redrive.stores.search_tokens import LOOSE, MARK, tokens_of
from redrive.words import LONGEST_PHRASE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from redrive.message import Headers, Message

BORDER = MARK
"""Stands between the error's words and the body's, so that no phrase spans both. No word is equal to it."""

_MOST_WORDS = 10_000
_MOST_REPEATS = 255
_MOST_CHARACTERS = 50_000  # of at most four bytes each: a tsvector holds a megabyte

_encoder = msgspec.json.Encoder(decimal_format="number")


class Part(msgspec.Struct, frozen=True):
    words: list[str]
    """And borders, in order."""
    tokens: list[str] = []
    """Of the facts (search_tokens). The first part has all of them."""
    facts: str | None = None
    """Of the first part."""

    @property
    def loose(self) -> bool:
        """Whether the tokens do not tell what is in the facts."""
        return LOOSE in self.tokens


def parts_of(type_: str, text: str, message: Message, blind: Sequence[str] = ()) -> Iterator[Part]:
    """The error, the body, the data and the headers; at least one part. `blind`: tokens of what is masked."""
    data = document(message)
    found = [*error_words(type_, text), BORDER, *body_words(message.body)]
    end = _end(found, 0)
    yield Part(found[:end], [*tokens_of(data, message.headers), *blind], _facts(data, message.headers))
    while end < len(found):
        start = end - LONGEST_PHRASE
        end = _end(found, start)
        yield Part(found[start:end])


def _facts(data: Any, headers: Headers) -> str:
    """As JSON, with exact numbers."""
    facts: dict[str, Any] = {}
    if headers:
        facts["headers"] = _texts(headers)
    if data is not UNSET:
        facts["data"] = data
    return _encoder.encode(facts).decode()


def _texts(headers: Headers) -> dict[str, list[str]]:
    """Every text under its name; a header whose value has none is there, and has none."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        texts = found.setdefault(escape(name), [])
        if (text := header_text(value)) is not None:
            texts.append(escape(text))
    return found


def _end(found: Sequence[str], start: int) -> int:
    """Where the part that begins at `start` must end."""
    if len(found) - start <= _MOST_REPEATS:
        return len(found)
    repeats: Counter[str] = Counter()
    characters = 0
    for place in range(start, min(len(found), start + _MOST_WORDS)):
        word = found[place]
        repeats[word] += 1
        characters += len(word)
        if repeats[word] > _MOST_REPEATS or characters > _MOST_CHARACTERS:
            return place
    return min(len(found), start + _MOST_WORDS)


def as_vector(part: Part) -> str:
    """As PostgreSQL writes a tsvector: each word with its places, tokens without. Neither holds a quote."""
    placed: dict[str, str] = {}
    for place, word in enumerate(part.words, 1):
        if word in placed:
            placed[word] += f",{place}"
        elif word != BORDER:
            placed[word] = f"'{word}':{place}"
    return " ".join((*(f"'{token}'" for token in part.tokens), *placed.values()))


def as_tokens(part: Part) -> str:
    """As SQLite's FTS5 is given it: between spaces."""
    return " ".join((*part.tokens, *part.words))
