"""What an edit did to a message, place by place, short enough for a screen.

Values are shown as they are: whoever shows them to somebody decides what that person may see.
"""

from __future__ import annotations

import json
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.header_class import HIDDEN, HeaderClass, header_class
from redrive.header_json import plain
from redrive.json_path import dotted
from redrive.message import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.message import Headers, Message

MAX_DIFFERENCES = 100
MAX_TEXT = 120

_Tokens = tuple[str, ...]
_NOTHING = object()


class Change(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    change: Change
    place: str
    """A path in the payload, empty for the whole of it; or the name of a header."""
    of_header: bool = False
    before: str | None = None
    """Short JSON, cut if it is long. None: nothing was there."""
    after: str | None = None
    of_sizes: bool = False
    """Nothing of the values is told but how long they are."""

    def line(self) -> str:
        """One line of text: `~ customer.id: 17 -> 18`. Values of sensitive headers are not in it."""
        place = f"header {self.place}" if self.of_header else self.place or "the whole payload"
        hidden = self.of_header and header_class(self.place) is HeaderClass.SENSITIVE
        texts = [HIDDEN if hidden else text for text in (self.before, self.after) if text is not None]
        return f"{_SIGNS[self.change]} {place}: {' -> '.join(texts)}"


_SIGNS = {Change.ADDED: "+", Change.REMOVED: "-", Change.CHANGED: "~"}


def diff(before: Message, after: Message) -> list[Difference]:
    """At most MAX_DIFFERENCES, the payload's first. A body that is not JSON, or differs in its spacing alone, is
    one difference that tells sizes.
    """
    found = list(islice(_of_payloads(before, after), MAX_DIFFERENCES))
    found += islice(_of_headers(before.headers, after.headers), MAX_DIFFERENCES - len(found))
    return found


def _of_payloads(before: Message, after: Message) -> Iterator[Difference]:
    if before.body == after.body:
        return
    try:
        found = list(islice(_of_values((), _read(before), _read(after)), MAX_DIFFERENCES))
    except (ValueError, RecursionError):
        found = []
    sizes = Difference(
        change=Change.CHANGED, place="", before=_size(before.body), after=_size(after.body), of_sizes=True
    )
    yield from found or [sizes]


def _of_values(place: _Tokens, old: Any, new: Any) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old | new:
            yield from _of_values((*place, key), old.get(key, _NOTHING), new.get(key, _NOTHING))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _of_arrays(place, old, new)
    elif type(old) is not type(new) or old != new:
        yield _difference(dotted(place), _short(old), _short(new))


def _of_arrays(place: _Tokens, old: list[Any], new: list[Any]) -> Iterator[Difference]:
    """Equal elements at the begin and at the end are left aside, so that one new element is one difference."""
    begin = _equal_at_begin(old, new)
    end = _equal_at_begin(old[begin:][::-1], new[begin:][::-1])
    left, right = old[begin : len(old) - end], new[begin : len(new) - end]
    for at in range(max(len(left), len(right))):
        one, other = (part[at] if at < len(part) else _NOTHING for part in (left, right))
        yield from _of_values((*place, str(begin + at)), one, other)


def _equal_at_begin(old: list[Any], new: list[Any]) -> int:
    pairs = zip(old, new, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if not _equal(one, other)), min(len(old), len(new)))


def _equal(one: Any, other: Any) -> bool:
    return next(_of_values((), one, other), None) is None


def _of_headers(before: Headers, after: Headers) -> Iterator[Difference]:
    for name in dict.fromkeys(name for name, _ in (*before, *after)):
        old, new = _values(before, name), _values(after, name)
        if old != new:
            yield _difference(name, old, new, of_header=True)


def _values(headers: Headers, name: str) -> str | None:
    """One value as it is, several as an array."""
    found = [plain(value) for known, value in headers if known == name]
    return None if not found else _short(found[0] if len(found) == 1 else found)


def _difference(place: str, before: str | None, after: str | None, *, of_header: bool = False) -> Difference:
    change = Change.ADDED if before is None else Change.REMOVED if after is None else Change.CHANGED
    return Difference(change=change, place=cut(place, MAX_TEXT), of_header=of_header, before=before, after=after)


def _short(value: Any) -> str | None:
    if value is _NOTHING:
        return None
    try:
        return cut(msgspec.json.encode(value).decode(), MAX_TEXT)
    except UnicodeEncodeError:  # lone surrogates, which only Python writes; numbers among them stand as texts
        return cut(json.dumps(value, default=lambda number: bytes(number).decode()), MAX_TEXT)


def _read(message: Message) -> Any:
    return _as_written.decode((message.payload or b"").decode())


def _size(body: bytes | None) -> str:
    return "no body" if body is None else f"{len(body):,} bytes"


# A number is its own text, so that 1.10 becoming 1.1 is seen.
_as_written = json.JSONDecoder(parse_int=msgspec.Raw, parse_float=msgspec.Raw, parse_constant=msgspec.Raw)
