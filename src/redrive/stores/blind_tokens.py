"""What a letter gives to the search index for what is masked in it: a token for each such value, and one for each
value together with where it stands.

A value at a path is the whole text there: of "call 529.982.247-25 now" it is the sentence, while the number alone
is found by free text.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from redrive.message import Message
from redrive.privacy.blind_index import MOST
from redrive.search_document import document, header_text
from redrive.search_terms import MAX_SEGMENTS
from redrive.stores.search_tokens import blind_token, blind_token_at, data_path, header_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.privacy.blind_index import BlindIndex
    from redrive.privacy.masking import Masker

    Value = tuple[str, str]
    """A path, and the text that is masked there."""

_NO_MATTER = datetime(1970, 1, 1, tzinfo=UTC)


class _Members(list[tuple[str, Any]]):
    """Of an object: all of them, also those of one name."""


def _as_integer(number: str) -> str:
    """52998224725.0 is one too: spreadsheets write numbers so."""
    whole, _, fraction = number.partition(".")
    return number if fraction.strip("0") else whole


_reader = json.JSONDecoder(object_pairs_hook=_Members, parse_int=str, parse_float=_as_integer, parse_constant=str)
_WORDS_OF_JSON = {True: "true", False: "false", None: "null"}


def blind_tokens(message: Message, masked: Message, error: str, masker: Masker, index: BlindIndex) -> list[str]:
    """`masked` is the message with its masks, `error` the error's text without any."""
    hashes = frozenset[bytes]()
    if _is_masked(message, masked):
        hashes |= index.hashes(message, masker)
    if masker.text(error) != error:
        about = Message(id="", queue="", body=error.encode("utf-8", "surrogatepass"), sent_at=_NO_MATTER)
        hashes |= index.hashes(about, masker)
    found = {blind_token(each) for each in hashes}
    for path, value in islice(_values(message, masked), MOST):
        asked = index.query(value)
        # Of a value that is masked as a whole only those that it is known by: a phone is one without its country.
        found |= {blind_token_at(path, each) for each in asked & hashes or asked}
    return sorted(found)


def _is_masked(message: Message, masked: Message) -> bool:
    return (message.body, message.headers, message.key) != (masked.body, masked.headers, masked.key)


def _values(message: Message, masked: Message) -> Iterator[Value]:
    for (name, value), (_, shown) in zip(message.headers, masked.headers, strict=True):
        text = header_text(value)
        if text is not None and text != header_text(shown):
            yield header_path(name), text
    if message.payload != masked.payload and document(masked) is not UNSET:
        yield from _differing(_read(message), _read(masked), ())


def _read(message: Message) -> Any:
    try:
        return _reader.decode((message.payload or b"").decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _differing(exact: Any, shown: Any, path: tuple[str, ...]) -> Iterator[Value]:
    """Masks keep members and elements in their places. Arrays are passed through, as paths do."""
    if isinstance(exact, _Members) and isinstance(shown, _Members):
        for (name, value), (_, masked) in zip(exact, shown, strict=False):
            if len(path) < MAX_SEGMENTS:
                yield from _differing(value, masked, (*path, name))
    elif isinstance(exact, list) and isinstance(shown, list):
        for value, masked in zip(exact, shown, strict=False):
            yield from _differing(value, masked, path)
    elif not isinstance(exact, list) and exact != shown:
        yield data_path(path), exact if isinstance(exact, str) else _WORDS_OF_JSON[exact]
