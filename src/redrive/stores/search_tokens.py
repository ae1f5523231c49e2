"""Data and headers as tokens of the full-text index: one per path that exists, one per value at its path.

A token is a digest, marked by a sign that no word has. So equality is answered by the same index as words are, and
by statistics of how frequent each token is; PostgreSQL keeps nothing of the kind about what is inside JSON.

Tokens say what a path means that names no place in an array: arrays are passed through. A document with arrays in
arrays, where that would not be exact, or with very many values, has the token LOOSE instead, and whoever finds
that looks into the document itself.
"""

from __future__ import annotations

from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from redrive.search_document import header_text
from redrive.search_terms import MAX_SEGMENTS, DataTerm, HeaderTerm, Op, index_of, number_of
from redrive.stores.columns import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from redrive.message import Headers
    from redrive.privacy.blind_index import BlindIndex

MARK = "\u00b7"
LOOSE = MARK + "loose"
MOST_TOKENS = 4000

_DATA, _HEADER = "data", "header"
_NEXT, _EQUALS = "\x00.", "\x00="  # neither data nor escaped headers hold a NUL, so no key can look like these
_WORDS_OF_JSON = {True: "true", False: "false", None: "null"}


class _TooLoose(Exception):
    pass


def tokens_of(data: Any, headers: Headers) -> list[str]:
    """What is there; LOOSE alone if tokens cannot tell it. `data` is UNSET where there is none."""
    found: set[str] = set()
    try:
        for name, value in headers:
            _add_header(found, name, value)
        if data is not UNSET:
            _add(found, data, _DATA, MAX_SEGMENTS)
        _check_number(found)  # headers may be many as well
    except _TooLoose:
        return [LOOSE]
    return [_token(each) for each in sorted(found)]


def tokens_for(term: DataTerm | HeaderTerm) -> list[str]:
    """Any of these (or LOOSE) is on every letter that the term matches."""
    if isinstance(term, HeaderTerm):
        path = header_path(term.name)
        wanted = [path + _EQUALS + _text(escape(value)) for value in term.values] if term.op is Op.IS else [path]
    else:
        paths = [data_path(path) for path in _meanings(term.path)]
        values = [value for each in term.values for value in _wanted(each)]
        wanted = [path + _EQUALS + value for path in paths for value in values] if term.op is Op.IS else paths
    return [_token(each) for each in wanted]


def blind_token(hashed: bytes) -> str:
    """Of a value that is masked wherever in the letter."""
    return f"{MARK}h{hashed.hex()}"


def blind_tokens_for(term: DataTerm | HeaderTerm, index: BlindIndex) -> list[str]:
    """Any of these is on every letter that has one of the term's values under a mask where the term asks for it.
    A segment that can be a place in an array is any place.
    """
    if isinstance(term, HeaderTerm):
        paths = [header_path(term.name)]
    else:
        paths = [data_path(path) for path in _meanings(term.path)]
    hashes = sorted({hashed for value in term.values for hashed in index.query(value)})
    return [blind_token_at(path, hashed) for path in paths for hashed in hashes]


def blind_token_at(path: str, hashed: bytes) -> str:
    """Of a value that is masked at that path."""
    return _token(f"{path}{_EQUALS}b{hashed.hex()}")


def data_path(segments: Iterable[str]) -> str:
    return _NEXT.join((_DATA, *segments))


def header_path(name: str) -> str:
    return _HEADER + _NEXT + escape(name)


def are_exact(term: DataTerm | HeaderTerm) -> bool:
    """Whether every letter with one of these tokens matches."""
    plain = isinstance(term, HeaderTerm) or all(index_of(segment) is None for segment in term.path)
    return plain and term.op in {Op.IS, Op.EXISTS}


def _add_header(found: set[str], name: str, value: Any) -> None:
    path = header_path(name)
    found.add(path)
    if (text := header_text(value)) is not None:
        found.add(path + _EQUALS + _text(escape(text)))


def _add(found: set[str], value: Any, path: str, segments: int) -> None:
    """What the path leads to, and all that so many further segments lead to."""
    found.add(path)
    for each in value if isinstance(value, list) else (value,):
        if isinstance(each, dict):
            if segments:
                for key, member in each.items():
                    _add(found, member, path + _NEXT + key, segments - 1)
        elif isinstance(each, list):
            raise _TooLoose
        else:
            found.add(path + _EQUALS + _written(each))
    _check_number(found)


def _check_number(found: set[str]) -> None:
    if len(found) > MOST_TOKENS:
        raise _TooLoose


def _written(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return f"w{_WORDS_OF_JSON[value]}"
    return f"n{_canonical(value)}"


def _wanted(value: str) -> Iterator[str]:
    """What a value in a filter can be equal to."""
    yield _text(value)
    number = number_of(value)
    if number is not None:
        yield f"n{_canonical(number)}"
    if value in _WORDS_OF_JSON.values():
        yield f"w{value}"


def _text(value: str) -> str:
    return f"s{value}"


def _canonical(number: int | Decimal) -> str:
    """The same for 100, 100.0 and 1e2, exact at any length."""
    sign, digits, exponent = Decimal(number).as_tuple()
    written = "".join(map(str, digits))
    kept = written.rstrip("0")
    if not kept or not isinstance(exponent, int):
        return "0"
    return f"{'-' * sign}{kept.lstrip('0')}e{exponent + len(written) - len(kept)}"


def _meanings(path: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A segment that can be a place in an array can be a key too; a place is nothing in a token."""
    if not path:
        yield ()
        return
    for rest in _meanings(path[1:]):
        yield (path[0], *rest)
        if index_of(path[0]) is not None:
            yield rest


def _token(told: str) -> str:
    return MARK + blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
