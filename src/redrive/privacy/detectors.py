"""Finds in a text what is personal or secret, wherever it stands: numbers with check digits, addresses, keys.

google-re2 alone, for the text is the attacker's. `may_hold` looks through a text once for the signs that every
find has, escaped or not; only then is it worth its patterns.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Any, NamedTuple

import re2

from redrive.privacy import named_values, numbers
from redrive.privacy.check_digits import is_cnpj

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

E_MAIL, JWT, KEY, PRIVATE_KEY, TOKEN, PASSWORD = "e-mail", "jwt", "key", "private key", "token", "password"
CPF, CNPJ, CARD, PHONE = numbers.CPF, numbers.CNPJ, numbers.CARD, numbers.PHONE
MASKED = named_values.MASKED
KINDS = (PRIVATE_KEY, TOKEN, JWT, KEY, PASSWORD, MASKED, E_MAIL, CARD, CNPJ, CPF, PHONE)
"""Where two overlap, the earlier one names both."""

_RANK = {kind: rank for rank, kind in enumerate(KINDS)}
_LONG_TOKEN = 20


class Finding(NamedTuple):
    start: int
    end: int
    kind: str


def of_bytes(pattern: bytes) -> Any:
    """One that takes bytes for what they are, so that its places are places in the bytes."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern, options)


class _Detector(NamedTuple):
    kind: str
    hint: bytes
    """It is in every text that holds one, in small letters."""
    pattern: Any
    proves: Callable[[bytes], bool] | None = None
    inside: tuple[int, int] = (0, 0)
    """So much of a match's two ends is shown."""


def _authorizes(found: bytes) -> bool:
    """Whether it is no prose: `bearer certificates` and `basic subscription` are."""
    scheme, value = found.split(None, 1)
    if scheme.lower() == b"bearer":
        return len(value) >= _LONG_TOKEN or any(each in b"0123456789" for each in value)
    try:
        return b":" in b64decode(value + b"==")
    except (binascii.Error, ValueError):
        return False


def _holds_letters(found: bytes) -> bool:
    """A CNPJ of digits alone is found among the numbers."""
    signs = bytes(each for each in found if each not in b"./-")
    return not signs.isdigit() and is_cnpj(signs)


_KEY_SIGNS = (
    rb"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}|AIza[\w-]{30}|ya29\.[\w-]{20}|gh[pousr]_\w{30}|github_pat_\w{30}"
    rb"|xox[abceoprs]-[\w-]{10}|xapp-[\w-]{10}|hooks\.slack\.com/services/[\w/]{10}|[sr]k_(?:live|test)_\w{10}"
    rb"|whsec_[\w+/=]{16}|rdv_\w{4,}_[\w-]{20}|glpat-[\w-]{20}|SG\.[\w-]{10,}\.[\w-]{10}|npm_\w{30}|sk-[\w-]{20}"
)
_CNPJ_SIGNS = rb"[0-9A-Za-z]{2}\.[0-9A-Za-z]{3}\.[0-9A-Za-z]{3}/[0-9A-Za-z]{4}-\d\d|[0-9A-Z]{12}\d\d"

_DETECTORS = (
    _Detector(
        PRIVATE_KEY,
        b"private key",
        of_bytes(rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z ]{0,60}-----|\z)"),
    ),
    _Detector(TOKEN, b"", of_bytes(rb"(?i)\b(?:bearer|basic)\s{1,4}[\w.~+/=-]{6,}"), _authorizes),
    _Detector(TOKEN, b"cookie:", of_bytes(rb"(?i)\b(?:set-)?cookie:[^\r\n\[\]]{4,}")),
    _Detector(JWT, b"eyj", of_bytes(rb"eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]+){0,3}")),
    _Detector(
        KEY,
        b"",
        of_bytes(rb"(?:" + _KEY_SIGNS + rb")[\w+/=-]*"),
    ),
    _Detector(
        PASSWORD,
        b"://",
        of_bytes(rb"://[^\s/@:?#\"'<>\[\]]{0,256}:[^\s/\"'<>\[\]]{1,256}@"),
        None,
        (len("://"), len("@")),
    ),
    _Detector(
        E_MAIL,
        b"@",
        of_bytes(rb"[\w\x80-\xff][\w.+%'\x80-\xff-]*@(?:[\w\x80-\xff-]+\.)+[A-Za-z\x80-\xff][\w\x80-\xff-]+"),
    ),
    _Detector(CNPJ, b"", of_bytes(rb"\b(?:" + _CNPJ_SIGNS + rb")\b"), _holds_letters),
)

_SIGNS = (
    *(rb"@", rb"\\u00[2-7]", rb"%[2-7][0-9A-Fa-f]", rb"eyJ", rb"-----BEGIN", rb"(?i:bearer|basic)[\s\\]"),
    *(rb"(?i:cookie:)", numbers.SIGN),
    *(_KEY_SIGNS.replace(rb"com/services/", rb"com\\?/services"), _CNPJ_SIGNS.replace(b"/", rb"\\?/")),
)
_signs_of_others = of_bytes(b"|".join((*(each for each in _SIGNS if each != numbers.SIGN), named_values.SIGN)))
_signs = of_bytes(b"|".join((*_SIGNS, named_values.SIGN)))
signs_in_json = of_bytes(b"|".join((*_SIGNS, named_values.SIGN_IN_JSON)))
"""The same in a JSON text as it is written, but for the names of its fields."""


def may_hold(text: bytes) -> bool:
    """False: `find` finds nothing in it, nor in what its escapes mean."""
    return _signs.search(text) is not None


def find(text: bytes) -> list[Finding]:
    """What was found, from left to right, none over another."""
    found = [Finding(*each) for each in numbers.numbers_in(text)]
    if _signs_of_others.search(text) is None:
        return found
    small = text.lower()
    for detector in _DETECTORS:
        if detector.hint in small:
            found += _matches(detector, text)
    found += (Finding(*span, MASKED) for span in named_values.values_in(text))
    return _apart(found) if len(found) > 1 else found


def _matches(detector: _Detector, text: bytes) -> Iterator[Finding]:
    before, behind = detector.inside
    for match in detector.pattern.finditer(text):
        if detector.proves is None or detector.proves(match.group()):
            start, end = match.span()
            yield Finding(start + before, end - behind, detector.kind)


def _apart(found: list[Finding]) -> list[Finding]:
    """Two that overlap are one."""
    found.sort()
    kept = found[:1]
    for each in found[1:]:
        last = kept[-1]
        if each.start >= last.end:
            kept.append(each)
        else:
            kind = min(last.kind, each.kind, key=_RANK.__getitem__)
            kept[-1] = Finding(last.start, max(last.end, each.end), kind)
    return kept
