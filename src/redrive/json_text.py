"""Changes in a JSON text that leave every other character as it was (G2): spacing, key order, `1.10`, escapes.

A place is a tuple of tokens from the outside in: keys of objects, and numbers of array elements. The text is JSON
that `check` has let pass. `CannotEdit` says why a change is not possible, without a value of the text.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from redrive.search_terms import index_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Tokens = tuple[str, ...]

_END_OF_ARRAY = "-"
_SPACE = " \t\n\r"
# Numbers are only stepped over: as text they have no limit of digits and lose nothing.
_stepping = json.JSONDecoder(parse_int=str, parse_float=str)


class CannotEdit(ValueError):
    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


class Member(NamedTuple):
    """Where a member of an object, or an element of an array, stands."""

    name: str
    """Empty for an element."""
    begin: int
    name_end: int
    start: int
    """Of its value; so is `end`."""
    end: int


def check(text: str) -> None:
    """ValueError or RecursionError if it is no JSON value. NaN and Infinity pass, as they do in `read_json`."""
    _stepping.decode(text)


def find(text: str, tokens: Tokens) -> Member:
    found = _whole(text)
    for depth, token in enumerate(tokens):
        step = _step(text, found, token)
        if step is None:
            raise _nothing_there(depth, len(tokens))
        found = step
    return found


def _with_holder(text: str, tokens: Tokens) -> tuple[Member, Member]:
    """What `find` finds, behind what holds it."""
    holder = find(text, tokens[:-1])
    found = _step(text, holder, tokens[-1])
    if found is None:
        raise _nothing_there(len(tokens) - 1, len(tokens))
    return holder, found


def replace(text: str, tokens: Tokens, value: str) -> str:
    """Another value at a place that is there. An equal one leaves the old text."""
    return _exchange(text, find(text, tokens), value)


def add(text: str, tokens: Tokens, value: str) -> str:
    """A new member (an old one of that name gets the value), or a new element before the one of that number."""
    if not tokens:
        return replace(text, tokens, value)
    holder, token = find(text, tokens[:-1]), tokens[-1]
    members = list(_members(text, holder))
    if _is_array(text, holder):
        return _insert(text, holder, members, _index(token, len(members)), value)
    known = _named(members, token)
    if known is not None:
        return _exchange(text, known, value)
    return _insert(text, holder, members, len(members), f"{_quoted(token)}:{value}")


def put(text: str, tokens: Tokens, value: str) -> str:
    """The value at a place, there or not: objects that are missing on the way are made."""
    found = _whole(text)
    for depth, token in enumerate(tokens):
        step = _step(text, found, token)
        if step is None:
            return add(text, tokens[: depth + 1], _nested(tokens[depth + 1 :], value))
        found = step
    return _exchange(text, found, value)


def remove(text: str, tokens: Tokens) -> str:
    if not tokens:
        raise CannotEdit("the whole payload cannot be removed", "name a place in it, or replace it by null")
    holder, gone = _with_holder(text, tokens)
    members = list(_members(text, holder))
    at = members.index(gone)
    if at + 1 < len(members):
        return text[: gone.begin] + text[members[at + 1].begin :]
    begin = members[at - 1].end if at else gone.begin
    return text[:begin] + text[gone.end :]


def rename(text: str, tokens: Tokens, name: str) -> str:
    """Another key for a member, which keeps its place among the others. Refused if the object has that key."""
    if not tokens:
        raise CannotEdit("the whole payload has no key", "name a key in it")
    holder, found = _with_holder(text, tokens)
    if _is_array(text, holder):
        raise CannotEdit("an element of an array has no key", "move it instead")
    if name == found.name:
        return text
    if _named(_members(text, holder), name) is not None:
        raise CannotEdit("the object has the new key already", "remove that one first")
    return text[: found.begin] + _quoted(name) + text[found.name_end :]


def value_at(text: str, tokens: Tokens) -> str:
    found = find(text, tokens)
    return text[found.start : found.end]


def equal(one: str, other: str) -> bool:
    """As JSON values: numbers by what they are worth (1 is 1.0), objects whatever the order of their keys."""
    return bool(_by_worth.decode(one) == _by_worth.decode(other))


def _exchange(text: str, found: Member, value: str) -> str:
    old = text[found.start : found.end]
    if _as_written.decode(old) == _as_written.decode(value):
        return text
    return text[: found.start] + value + text[found.end :]


def _insert(text: str, holder: Member, members: list[Member], index: int, item: str) -> str:
    if index < len(members):
        at, item = members[index].begin, f"{item},"
    elif members:
        at, item = members[-1].end, f",{item}"
    else:
        at = holder.start + 1
    return text[:at] + item + text[at:]


def _step(text: str, holder: Member, token: str) -> Member | None:
    members = _members(text, holder)
    if not _is_array(text, holder):
        return _named(members, token)
    index = index_of(token)
    return None if index is None else next(islice(members, index, None), None)


def _named(members: Iterable[Member], name: str) -> Member | None:
    found = [member for member in members if member.name == name]
    if len(found) > 1:  # whichever is changed, some reader would still see the other
        raise CannotEdit("a key on the way comes twice in its object", "edit this letter's payload by hand")
    return found[0] if found else None


def _members(text: str, holder: Member) -> Iterator[Member]:
    if text[holder.start] not in "{[":
        raise CannotEdit("what should hold it is neither object nor array", "replace that value first")
    named = text[holder.start] == "{"
    at = _skip(text, holder.start + 1)
    while text[at] not in "}]":
        member = _member(text, at, named=named)
        yield member
        at = _skip(text, member.end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _member(text: str, begin: int, *, named: bool) -> Member:
    name, name_end, start = "", begin, begin
    if named:
        name, name_end = _stepping.raw_decode(text, begin)
        start = _skip(text, _skip(text, name_end) + 1)  # behind the colon
    return Member(name, begin, name_end, start, _stepping.raw_decode(text, start)[1])


def _whole(text: str) -> Member:
    start = _skip(text, 0)
    return Member("", start, start, start, len(text.rstrip(_SPACE)))


def _is_array(text: str, holder: Member) -> bool:
    return text[holder.start] == "["


def _index(token: str, length: int) -> int:
    index = length if token == _END_OF_ARRAY else index_of(token)
    if index is None:
        raise CannotEdit("an array has places, no keys", "name a place: 0 is the first, - is behind the last")
    if index > length:
        raise CannotEdit("the array is shorter than that", "use - for the place behind the last")
    return index


def _nested(tokens: Tokens, value: str) -> str:
    for token in reversed(tokens):
        value = f"{{{_quoted(token)}:{value}}}"
    return value


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:  # the end of the text is never reached: what is in hand is closed behind it
        at += 1
    return at


def _nothing_there(depth: int, length: int) -> CannotEdit:
    where = (
        "there is no such place" if depth + 1 == length else f"there is nothing at part {depth + 1} of its path"
    )
    return CannotEdit(where, "leave out the letters that do not have it, or use set, which makes what is missing")


def _worth(number: str) -> Any:
    try:
        return "number", Decimal(number)  # in a tuple, which equals neither text nor true
    except InvalidOperation:  # an exponent beyond every reason
        return "number", number


_by_worth = json.JSONDecoder(parse_int=_worth, parse_float=_worth)
_as_written = json.JSONDecoder(
    parse_int=lambda number: ("number", number), parse_float=lambda number: ("number", number)
)
