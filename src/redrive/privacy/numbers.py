"""Numbers of people in a text: CPF, CNPJ, cards and phones, with and without what stands between their digits.

A run of digits and separators is cut into groups; groups beside each other that have a known shape are proved by
their check digits. Numbers without any (phones) need a `+`, brackets or a hyphen, so that order numbers and times
are left alone.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import re2

from redrive.privacy.check_digits import is_card, is_cnpj, is_cpf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CPF, CNPJ, CARD, PHONE = "cpf", "cnpj", "card", "phone"

SIGN = rb"\d(?:[ .\-/()\\]{0,3}\d){8,}"
"""What every text that holds one holds, escapes or not."""

_run = re2.compile(rb"[+(]{0,2}\d(?:[ .\-/()]{0,2}\d){8,}")
_TO_SPACE = bytes.maketrans(b".-/()+", b"      ")
_MOST_GROUPS = 6
_E164, _BRAZIL = range(8, 16), range(12, 14)
_INTEGERS = range(10, 20)
_ALONE = frozenset({11, *range(13, 20)})
_DDD = frozenset(
    b"11 12 13 14 15 16 17 18 19 21 22 24 27 28 31 32 33 34 35 37 38 41 42 43 44 45 46 47 48 49 51 53 54 55 61 62"
    b" 63 64 65 66 67 68 69 71 73 74 75 77 79 81 82 83 84 85 86 87 88 89 91 92 93 94 95 96 97 98 99".split()
)
_SECONDS = range(1_000_000_000, 2_200_000_000)
"""Unix times of our days, which ten digits of a number are more often than a CPF that begins with 0."""


class Number(NamedTuple):
    start: int
    end: int
    kind: str


class _Window(NamedTuple):
    """Groups beside each other."""

    digits: bytes
    gaps: tuple[bytes, ...]
    """What stands between them."""
    before: bytes
    """What stands before them, in the run."""


def numbers_in(text: bytes) -> Iterator[Number]:
    for match in _run.finditer(text):
        start, end = match.span()
        if end - start not in _ALONE or not text[start:end].isdigit():
            yield from _in_run(text, start, end)
        elif kind := _alone_in(text, start, end):
            yield Number(start, end, kind)


def kind_of_integer(digits: bytes) -> str | None:
    """Of an integer, which has lost its zeros in front and whatever stood between its digits."""
    if len(digits) not in _INTEGERS or not digits.isdigit():
        return None
    if kind := _alone(digits):
        return kind
    if len(digits) == len("1234567890"):
        return CPF if int(digits) not in _SECONDS and is_cpf(b"0" + digits) else None
    is_company = digits[-6:-3] == b"000"  # the branch, which is seldom above nine
    return CNPJ if is_company and is_cnpj(digits.rjust(14, b"0")) else None


def _alone_in(text: bytes, start: int, end: int) -> str | None:
    touched = text[end : end + 1].isalpha() or (start and text[start - 1 : start].isalpha())
    return None if touched else _alone(text[start:end])


def _in_run(text: bytes, start: int, end: int) -> Iterator[Number]:
    groups = _groups(text[start:end], start)
    first = int(text[start - 1 : start].isalpha() and groups[0][0] == start)
    stop = len(groups) - int(text[end : end + 1].isalpha())
    sizes = [last - begin for begin, last in groups]
    while first < stop:
        number = _at(text, groups, sizes, first, stop, start)
        if number is None:
            first += 1
            continue
        yield number
        while first < stop and groups[first][0] < number.end:
            first += 1


def _groups(run: bytes, offset: int) -> list[tuple[int, int]]:
    groups, at = list[tuple[int, int]](), 0
    for digits in run.translate(_TO_SPACE).split():
        at = run.index(digits, at)
        groups.append((offset + at, offset + at + len(digits)))
        at += len(digits)
    return groups


def _at(  # noqa: PLR0917  one place of a run, called for each of its groups
    text: bytes, groups: list[tuple[int, int]], sizes: list[int], first: int, stop: int, start: int
) -> Number | None:
    """The longest that begins with that group."""
    begins = groups[first][0]
    before = text[groups[first - 1][1] if first else start : begins]
    for count in range(min(_MOST_GROUPS, stop - first), 0, -1):
        judge = _judge(sizes, first, count, before)
        if judge is None:
            continue
        taken = groups[first : first + count]
        kind = judge(_window(text, taken, before))
        if kind is not None:
            return Number(begins - _prefix(kind, before), taken[-1][1], kind)
    return None


def _window(text: bytes, groups: list[tuple[int, int]], before: bytes) -> _Window:
    digits = b"".join([text[begin:end] for begin, end in groups])
    gaps = tuple(text[one[1] : other[0]] for one, other in pairwise(groups))
    return _Window(digits, gaps, before)


def _prefix(kind: str, before: bytes) -> int:
    """How much of what stands before is part of it."""
    return len(before) - len(before.rstrip(b"+(")) if kind == PHONE else 0


def _judge(sizes: list[int], first: int, count: int, before: bytes) -> Callable[[_Window], str | None] | None:
    if b"+" in before and sum(sizes[first : first + count]) in _E164:
        return _international
    if count == 1:
        return _one_group if sizes[first] in _ALONE else None
    if sizes[first] not in _FIRST_SIZES:
        return None
    return _SHAPES.get(tuple(sizes[first : first + count]))


def _international(window: _Window) -> str | None:
    if window.digits.startswith(b"55") and len(window.digits) not in _BRAZIL:
        return None
    return None if window.digits.startswith(b"0") else PHONE


def _one_group(window: _Window) -> str | None:
    return None if window.before.endswith(b".") else _alone(window.digits)  # digits behind a decimal point


def _alone(digits: bytes) -> str | None:
    if is_cpf(digits):
        return CPF
    if is_cnpj(digits) and not _is_time(digits):
        return CNPJ
    if is_card(digits):
        return CARD
    mobile = digits.startswith(b"55") and len(digits) == len("5511987654321") and _is_mobile(digits[2:])
    return PHONE if mobile else None


def _is_time(digits: bytes) -> bool:
    """20260301120000 is a second of a day, and a CNPJ of a thousand branches at most."""
    year, month, day, hour = digits[:4], digits[4:6], digits[6:8], digits[8:10]
    return (
        digits[:2] in {b"19", b"20"}
        and not digits[8:].startswith(b"000")
        and b"1900" <= year <= b"2099"
        and b"01" <= month <= b"12"
        and b"01" <= day <= b"31"
        and hour < b"24"
    )


def _is_mobile(digits: bytes) -> bool:
    return digits[:2] in _DDD and digits[2:3] == b"9"


def _cpf(window: _Window) -> str | None:
    return CPF if _close(window) and is_cpf(window.digits) else None


def _cnpj(window: _Window) -> str | None:
    return CNPJ if _close(window) and is_cnpj(window.digits) else None


def _card(window: _Window) -> str | None:
    return CARD if _close(window) and is_card(window.digits) else None


def _close(window: _Window) -> bool:
    return all(len(gap) == 1 for gap in window.gaps)


def _area_and_mobile(window: _Window) -> str | None:
    return PHONE if _is_mobile(window.digits.removeprefix(b"0")) else None


def _area_and_fixed(window: _Window) -> str | None:
    apart = window.gaps[-1] == b"-" and window.gaps[0] in {b" ", b") ", b")"}
    return PHONE if apart and window.digits[:2] in _DDD and window.digits[2:3] in b"2345" else None


def _area_in_brackets(window: _Window) -> str | None:
    return PHONE if window.before.endswith(b"(") and window.gaps[0].startswith(b")") else None


def _mobile(window: _Window) -> str | None:
    return PHONE if window.gaps == (b"-",) and window.digits[:1] == b"9" else None


_SHAPES: dict[tuple[int, ...], Callable[[_Window], str | None]] = {
    (3, 3, 3, 2): _cpf,
    (9, 2): _cpf,
    (2, 3, 3, 4, 2): _cnpj,
    (8, 4, 2): _cnpj,
    (12, 2): _cnpj,
    (4, 4, 4, 4): _card,
    (4, 4, 4, 4, 3): _card,
    (4, 4, 4, 4, 2): _card,
    (4, 4, 4, 4, 1): _card,
    (4, 4, 4, 1): _card,
    (4, 3, 3, 3): _card,
    (4, 6, 5): _card,
    (4, 6, 4): _card,
    (6, 13): _card,
    (8, 8): _card,
    (2, 5, 4): _area_and_mobile,
    (3, 5, 4): _area_and_mobile,
    (2, 9): _area_in_brackets,
    (2, 8): _area_in_brackets,
    (2, 4, 4): _area_and_fixed,
    (3, 3, 4): _area_in_brackets,
    (5, 4): _mobile,
}
_FIRST_SIZES = frozenset(shape[0] for shape in _SHAPES)
