"""Numbers that prove themselves: their last digits follow from the others. All are given without separators."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CPF, _CNPJ = 11, 14
_MAESTRO = (b"50", b"56", b"57", b"58", b"6")
_ISSUERS: dict[int, tuple[bytes, ...]] = {
    13: (b"4",),
    14: (b"30", b"36", b"38", b"39"),
    15: (b"34", b"37"),
    16: (b"3", b"4", b"5", b"6", *(b"%d" % each for each in range(2221, 2721))),
    17: _MAESTRO,
    18: _MAESTRO,
    19: (b"4", *_MAESTRO),
}
"""By the number of digits, how cards of that length begin."""
_ZERO = ord("0")
_CPF_WEIGHTS = (11, 10, 9, 8, 7, 6, 5, 4, 3, 2)
_CNPJ_WEIGHTS = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def is_cpf(digits: bytes) -> bool:
    """Eleven of one digit fit as well, and are nobody's."""
    if len(digits) != _CPF or not digits.isdigit() or digits.count(digits[:1]) == _CPF:
        return False
    return _ends_right([each - _ZERO for each in digits], _CPF_WEIGHTS)


def is_cnpj(signs: bytes) -> bool:
    """Fourteen digits; since 2026 the first twelve may be letters too, which count by their place behind 0."""
    signs = signs.upper()
    if len(signs) != _CNPJ or not signs.isalnum() or not signs[-2:].isdigit() or signs.count(signs[:1]) == _CNPJ:
        return False
    return _ends_right([each - _ZERO for each in signs], _CNPJ_WEIGHTS)


def _ends_right(values: list[int], weights: Sequence[int]) -> bool:
    """Two check digits of modulo 11; the first is made of all before it, with all weights but the first."""
    first = _check(values, weights[1:])
    return values[-2] == first and values[-1] == _check(values, weights)


def _check(values: list[int], weights: Sequence[int]) -> int:
    left = sum(value * weight for value, weight in zip(values, weights, strict=False)) % 11
    return 0 if left < 2 else 11 - left  # noqa: PLR2004  the rule of both numbers


def is_card(digits: bytes) -> bool:
    """By Luhn, and by the first digits that cards have."""
    if not digits.isdigit() or not digits.startswith(_ISSUERS.get(len(digits), ())):
        return False
    values = [each - _ZERO for each in reversed(digits)]
    return (sum(values[::2]) + sum(_DOUBLED[each] for each in values[1::2])) % 10 == 0
