"""What could be written next in a filter: fields, comparisons, and known values."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from redrive.dead_letter import Status
from redrive.failure import FailureKind
from redrive.search_fields import FIELDS, OPEN_FIELDS
from redrive.search_scanner import ESCAPABLE
from redrive.search_writing import value_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_SUGGESTIONS = 50
_BUILT_IN = {"status": tuple(map(str, Status)), "kind": tuple(map(str, FailureKind))}
_AGES = {"1h": "an hour", "1d": "a day", "7d": "a week"}
_AMOUNTS = {">": "more than", "<": "fewer than", ">=": "at least", "<=": "at most"}
_CONDITIONS: dict[str, dict[str, str]] = {
    "age": {f">{age}": f"older than {told}" for age, told in _AGES.items()}
    | {f"<{age}": f"younger than {told}" for age, told in _AGES.items()},
    "before": {age: f"more than {told} ago" for age, told in _AGES.items()},
    "after": {age: f"less than {told} ago" for age, told in _AGES.items()},
    "created": {">": "later than", "<": "earlier than", ">=": "not earlier than", "<=": "not later than"},
    "attempts": _AMOUNTS,
    "generation": _AMOUNTS,
    "revision": _AMOUNTS,
}
_NAMES = {f"{name}:": field.what for name, field in FIELDS.items()} | {
    name.partition(".")[0] + ".": what for name, (what, _) in OPEN_FIELDS.items()
}


class Suggestion(msgspec.Struct, frozen=True):
    text: str
    """To be put in place of `replaces`."""
    replaces: tuple[int, int]
    """Where it goes in the filter's text: from, and up to but not including."""
    what: str = ""
    """For people: what it means."""


class _Begun(NamedTuple):
    """The term that the cursor is in, as far as it is written."""

    start: int
    """Behind its minus."""
    colon: int | None
    value: int
    """Where its current value starts."""
    quoted: bool
    """Whether the cursor stands in quotes."""


def complete(text: str, cursor: int, known: Mapping[str, Iterable[str]] | None = None) -> list[Suggestion]:
    """What could stand at `cursor`, best first: names of fields where a term begins, values and comparisons behind
    its colon; nothing in a phrase. `known` has the values that fields are known to have (`queue`, `type`, `owner`,
    `header.tenant`). Any text and any cursor will do.
    """
    at = max(0, min(cursor, len(text)))
    begun = _begun(text, at)
    if begun.colon is None:
        found = iter(()) if begun.quoted else _beginning_with(_NAMES, text[begun.start : at])
        end = _end(text, at, stops=":") + text.startswith(":", _end(text, at, stops=":"))
        return _suggestions(found, begun.start, end)
    name, value = text[begun.start : begun.colon].lower(), text[begun.value : at].lstrip('"')
    end = at if begun.quoted else _end(text, at, stops=",")
    return _suggestions(_values(name, value, known or {}, only=begun.value == begun.colon + 1), begun.value, end)


def field_at(text: str, cursor: int) -> tuple[str, str]:
    """The field whose value the cursor is in, and what of that is written; two empty texts if it is in none."""
    at = max(0, min(cursor, len(text)))
    begun = _begun(text, at)
    if begun.colon is None:
        return "", ""
    return text[begun.start : begun.colon].lower(), text[begun.value : at].lstrip('"')


def _begun(text: str, cursor: int) -> _Begun:
    start, colon, value, quoted, escaped = 0, None, 0, False, False
    for at, each in enumerate(text[:cursor]):
        if escaped:
            escaped = False
        elif each == "\\":
            escaped = text[at + 1 : at + 2] in tuple(ESCAPABLE)
        elif each == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif each.isspace():
            start, colon = at + 1, None
        elif each == "-" and at == start:
            start = at + 1
        elif each == ":" and colon is None:
            colon, value = at, at + 1
        elif each == "," and colon is not None:
            value = at + 1
    return _Begun(start, colon, value, quoted)


def _end(text: str, at: int, *, stops: str) -> int:
    while at < len(text) and not text[at].isspace() and text[at] not in stops:
        at += 1
    return at


def _values(name: str, begun: str, known: Mapping[str, Iterable[str]], *, only: bool) -> Iterator[tuple[str, str]]:
    if name in _CONDITIONS:
        if only:
            yield from _beginning_with(_CONDITIONS[name], begun)
        return
    values = _BUILT_IN.get(name) or sorted(set(known.get(name, ())))
    beginning = [each for each in values if each.casefold().startswith(begun.casefold())]
    inside = [each for each in values if begun.casefold() in each.casefold() and each not in beginning]
    for each in (*beginning, *inside):
        yield value_text(each), ""


def _beginning_with(candidates: Mapping[str, str], begun: str) -> Iterator[tuple[str, str]]:
    return ((text, what) for text, what in candidates.items() if text.startswith(begun.lower()))


def _suggestions(found: Iterable[tuple[str, str]], start: int, end: int) -> list[Suggestion]:
    return [Suggestion(text, (start, end), what) for text, what in islice(found, MAX_SUGGESTIONS)]
