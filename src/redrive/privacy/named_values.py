"""Secrets that a text itself calls so: `password=hunter2`, `'senha': 'x'`, `?token=abc&`, `<senha>x</senha>`.

Error texts quote settings, addresses and dictionaries; there is no structure to go by, so a name, a sign and a
value are enough. Behind words that prose has too (`unexpected token: end`), an unquoted value needs a digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import re2

if TYPE_CHECKING:
    from collections.abc import Iterator

MASKED = "masked"

_STRICT = (
    rb"passw(?:or)?d|passphrase|senha|secret|segredo|pwd|api[_-]?key|access[_-]?key|private[_-]?key|account[_-]?key"
    rb"|credential|client[_-]?secret"
)
_LOOSE = (
    rb"token|session[_-]?id|signature|authorization|jwt"
    rb"|\b(?:[a-z]{1,20}[_-])?(?:cpf|cnpj|ssn|cvv|cvc|pin|otp|iban|pan)"
)
_NAME = rb"(?i:(?:" + _STRICT + rb"|" + _LOOSE + rb")[\w-]{0,24})"
SIGN = _NAME + rb"(?:\\?[\"']?\s{0,2}[:=]|>)"
SIGN_IN_JSON = _NAME + rb"(?:(?:\\\"|')?\s{0,2}[:=]|>)"
_named = re2.compile(_NAME + rb"(?:\\?[\"']?\s{0,2}[:=][=>]{0,2}\s{0,2}|>)")
_strictly = re2.compile(rb"(?i)^(?:" + _STRICT + rb")")
_value = re2.compile(rb"[^\s\"'&,;<>(){}\[\]\\]+")
_QUOTES = (b'\\"', b'"', b"'")
_LONGEST = 4096
_NOTHING = frozenset({b"", b"none", b"null", b"nil", b"true", b"false", b"undefined"})


def values_in(text: bytes) -> Iterator[tuple[int, int]]:
    """Where the values stand, without their quotes."""
    for match in _named.finditer(text):
        place, sign = match.end(), match.group()
        start, end = _element(text, place) if _opens(sign) else _quoted(text, place) or _bare(text, place)
        value = text[start:end]
        if value.lower() in _NOTHING or _is_mask(value):
            continue
        if start > place or b"=" in sign or _opens(sign) or _strictly.match(sign) or _has_digit(value):
            yield start, end


def _opens(sign: bytes) -> bool:
    """`<password>`; `password => x` is something else."""
    return sign.endswith(b">") and b"=" not in sign


def _element(text: bytes, place: int) -> tuple[int, int]:
    """Up to its closing tag; nothing if there is another tag before it."""
    end = text.find(b"<", place, place + _LONGEST)
    return (place, end) if text.startswith(b"</", end) else (place, place)


def _quoted(text: bytes, place: int) -> tuple[int, int] | None:
    for quote in _QUOTES:
        if text.startswith(quote, place):
            start = place + len(quote)
            end = text.find(quote, start, start + _LONGEST)
            return start, end if end >= 0 else min(len(text), start + _LONGEST)
    return None


def _bare(text: bytes, place: int) -> tuple[int, int]:
    found = _value.match(text, place, place + _LONGEST)
    return (place, place) if found is None else found.span()


def _has_digit(value: bytes) -> bool:
    return any(each in b"0123456789" for each in value)


def _is_mask(value: bytes) -> bool:
    return value.startswith(b"[") and value.endswith(b"]")
