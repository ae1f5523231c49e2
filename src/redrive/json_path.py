"""How a place in a payload is written: a JSON Pointer (`/customer/id`, RFC 6901), or keys with dots between them
as in the filter language (`customer.id`, `"unit.price".amount`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from redrive.errors import FilterError
from redrive.search_scanner import Scanner

MAX_TOKENS = 64
MAX_CHARACTERS = 4096
_plain = re.compile(r"[\w-]+")


@lru_cache(maxsize=1024)  # a run reads the same few paths for every letter
def tokens_of(path: str) -> tuple[str, ...]:
    """The keys and numbers from the outside in; of `""`, the whole payload, none. What begins with a slash is a
    pointer. ValueError says what is wrong with it.
    """
    if len(path) > MAX_CHARACTERS:
        raise ValueError(f"a path has more than {MAX_CHARACTERS:,} characters")
    if not _is_unicode(path):
        raise ValueError("a path is not valid Unicode text")
    found = _of_pointer(path) if path[:1] in ("", "/") else _of_dotted(path)
    if len(found) > MAX_TOKENS:
        raise ValueError(f"a path has more than {MAX_TOKENS} parts")
    return found


def dotted(tokens: tuple[str, ...]) -> str:
    """As people write it; what `tokens_of` reads."""
    return ".".join(token if _plain.fullmatch(token) else _in_quotes(token) for token in tokens)


def _of_pointer(path: str) -> tuple[str, ...]:
    if "~" in path.replace("~0", "").replace("~1", ""):
        raise ValueError("in a JSON Pointer, ~ is written ~0 (and / in a key ~1)")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:])


def _of_dotted(path: str) -> tuple[str, ...]:
    scanner = Scanner(path)
    found = [_segment(scanner)]
    while scanner.next:
        if not scanner.take("."):
            raise ValueError('something follows a closing quote: write a path like "a.b".c')
        found.append(_segment(scanner))
    return tuple(found)


def _segment(scanner: Scanner) -> str:
    if scanner.next == '"':
        return _quoted(scanner)
    start = scanner.at
    while scanner.next and scanner.next not in '."':
        scanner.at += 1
    if scanner.next == '"':
        raise ValueError('a quote in the middle of a key: quote it whole, like "a.b".c')
    if scanner.at == start:
        raise ValueError('a key is missing in a path: write it like customer.id; "" is the empty key')
    return scanner.text[start : scanner.at]


def _quoted(scanner: Scanner) -> str:
    try:
        return scanner.quoted()
    except FilterError:
        raise ValueError("a quote in a path is never closed") from None


def _in_quotes(token: str) -> str:
    escaped = token.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
