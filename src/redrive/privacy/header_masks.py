"""Headers with their masks: values of any type, tables and lists in them included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive.privacy.detectors import MASKED
from redrive.privacy.masks import HIDDEN, Mask
from redrive.privacy.numbers import kind_of_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.privacy.field_names import FieldNames
    from redrive.privacy.texts import Texts

DEEPEST = 64
"""Tables and lists inside each other, as many as a stored header has at most."""
TOO_DEEP = "[masked: nests too deep]"
_NUMBERS = range(10**9, 10**19)
_MOST_BITS = 1024
"""Of a number that is written in decimal digits, of which Python writes no more than 4,300."""
_HIDDEN = HIDDEN.decode()


class HeaderMasks:
    def __init__(self, names: FieldNames, texts: Texts) -> None:
        self._names = names
        self._texts = texts

    def shown(self, name: str, value: Any, depth: int = 0) -> Any:
        """True, false, nothing and empty values are shown whatever their name is."""
        if self._names.is_sensitive(name):
            return _hidden(value)
        return self._shown(value, depth)

    def _shown(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._texts.text(value)
        if isinstance(value, bytes):
            return self._texts.body(value)
        if isinstance(value, dict | list | tuple):
            return TOO_DEEP if depth >= DEEPEST else self._shown_inside(value, depth + 1)
        kind = _kind(value)
        return value if kind is None else f"[{kind}]"

    def _shown_inside(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {self._shown(key, depth): self.shown(str(key), each, depth) for key, each in value.items()}
        return [self._shown(each, depth) for each in value]

    def masks(self, name: str, value: Any) -> Iterator[Mask]:
        """What `shown` masks, for whoever wants to find it again."""
        waiting = [(name, value, 0)]
        while waiting:
            name, value, depth = waiting.pop()
            if isinstance(value, dict):
                waiting += ((str(key), each, depth + 1) for key, each in value.items() if depth < DEEPEST)
            elif isinstance(value, list | tuple):
                waiting += ((name, each, depth + 1) for each in value if depth < DEEPEST)
            else:
                yield from self._masks_of_leaf(name, value)

    def _masks_of_leaf(self, name: str, value: Any) -> Iterator[Mask]:
        raw = _bytes_of(value)
        if self._names.is_sensitive(name):
            if _hidden(value) is not value:
                yield Mask(0, len(raw), HIDDEN, MASKED, raw)
        elif isinstance(value, str | bytes):
            yield from self._texts.masks(raw)
        elif (kind := _kind(value)) is not None:
            yield Mask(0, len(raw), f"[{kind}]".encode(), kind, raw)


def _hidden(value: Any) -> Any:
    if value is None or isinstance(value, bool) or value in ("", b"", [], {}):
        return value
    return HIDDEN if isinstance(value, bytes) else _HIDDEN


def _kind(value: Any) -> str | None:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value in _NUMBERS
    return kind_of_integer(str(value).encode()) if is_number else None


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return b"%x" % abs(value)
    return str(value).encode("utf-8", "surrogatepass")
