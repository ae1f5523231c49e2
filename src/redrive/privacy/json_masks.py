"""What is masked in a JSON text, so that every other byte stays: spacing, order, `1.10`, big integers, escapes.

The text is cut at its quotes and walked through once, with a stack of its own, so no depth breaks it. Of a text
that is no JSON after all, as much is masked as can be made out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.privacy.detectors import MASKED, signs_in_json
from redrive.privacy.escapes import without_json_escapes
from redrive.privacy.masks import HIDDEN, Mask, masks_in_json_string
from redrive.privacy.numbers import kind_of_integer
from redrive.privacy.rules import Places, step

if TYPE_CHECKING:
    from redrive.privacy.field_names import FieldNames

_MOST_NESTED = 3
"""JSON in a string of JSON in a string: what is inside of more is looked at as text."""
_OPENERS = frozenset({b"{", b"["})
_OBJECT, _ARRAY, _OBJECT_END, _ARRAY_END, _COMMA, _COLON = b"{[}],:"
_STRUCTURE = frozenset(b"{}[],: \t\r\n")
_EMPTY = frozenset({b"null", b'""'})
_SAYS_LITTLE = frozenset({b"null", b"true", b"false"})
_COLONS, _COMMAS = frozenset({b":", b": "}), frozenset({b",", b", "})
_SHORTEST_NUMBER = 10

_KEPT, _SHOWN, _BY_NAME, _BY_PATH = -1, 0, 1, 2
"""What is done with a value: left alone, looked through, hidden but for true and false, hidden."""
_Holder = tuple[bool, int, Places, int]
"""Whether it is an object, what is done with what it holds, its paths, and which element is next."""


def masks_in_json(body: bytes, names: FieldNames, places: Places = (), level: int = 0) -> list[Mask]:
    """From left to right, none over another."""
    walk = _Walk(body, names, places, level)
    walk.through()
    return walk.masks


class _Walk:
    def __init__(self, body: bytes, names: FieldNames, places: Places, level: int) -> None:
        self.masks: list[Mask] = []
        self._body = body
        self._names = names
        self._level = level
        self._holders: list[_Holder] = []
        self._awaits_key = False
        self._places = places
        self._doing = _BY_PATH if any(each.hidden for each in places) else _SHOWN

    def through(self) -> None:
        """Pieces at even places stand between strings, those at odd ones are strings."""
        body = self._body
        signs = signs_in_json.finditer(body)
        sign = _next(signs)
        at, is_string = 0, False
        for piece in _without_escaped_quotes(body).split(b'"'):
            end = at + len(piece)
            if not is_string:
                self._between(piece, at)
            elif self._awaits_key:
                self._key(at, end, looked_for=sign < end)
            elif self._doing or sign < end or piece[:1] in _OPENERS:
                self._string(at, end)
            while sign < end:
                sign = _next(signs)
            at, is_string = end + 1, not is_string

    def _between(self, piece: bytes, at: int) -> None:
        if piece in _COLONS:
            self._awaits_key = False
            return
        if piece in _COMMAS:
            self._next_value()
            return
        if self._doing == _SHOWN and piece[:1] == b":" and len(piece) < _SHORTEST_NUMBER and _is_member(piece):
            self._next_value()
            return
        scalar = -1
        for place, byte in enumerate(piece):
            if byte not in _STRUCTURE:
                scalar = place if scalar < 0 else scalar
                continue
            if scalar >= 0:
                self._scalar(piece[scalar:place], at + scalar)
                scalar = -1
            self._structure(byte)
        if scalar >= 0:
            self._scalar(piece[scalar:], at + scalar)

    def _structure(self, byte: int) -> None:
        if byte == _COMMA:
            self._next_value()
        elif byte == _COLON:
            self._awaits_key = False
        elif byte in (_OBJECT, _ARRAY):
            self._holders.append((byte == _OBJECT, self._doing, self._places, 0))
            self._awaits_key = byte == _OBJECT
            if byte == _ARRAY:
                self._element(0)
        elif byte in (_OBJECT_END, _ARRAY_END) and self._holders:
            self._holders.pop()
            self._awaits_key = False

    def _next_value(self) -> None:
        if not self._holders:
            self._doing = _SHOWN
            return
        is_object, doing, places, number = self._holders[-1]
        if is_object:
            self._awaits_key = True
        elif not places:
            self._doing, self._places = doing, places
        else:
            self._holders[-1] = (is_object, doing, places, number + 1)
            self._element(number + 1)

    def _element(self, number: int) -> None:
        _, doing, places, _ = self._holders[-1]
        self._doing = doing
        self._places = step(places, str(number)) if places else ()
        self._judge_place()

    def _key(self, at: int, end: int, *, looked_for: bool) -> None:
        raw = self._body[at:end]
        _, self._doing, places, _ = self._holders[-1]
        if self._doing == _SHOWN and self._names.is_sensitive_key(raw):
            self._doing = _BY_NAME
        if places:
            name = without_json_escapes(raw).text if b"\\" in raw else raw
            self._places = step(places, name.decode("utf-8", "replace"))
            self._judge_place()
        else:
            self._places = ()
        if looked_for:
            self._hide_parts(at, masks_in_json_string(raw))

    def _judge_place(self) -> None:
        for place in self._places:
            if place.hidden:
                self._doing = _BY_PATH
                return
            if place.shown or place.kept:
                self._doing = _KEPT if place.kept else _SHOWN

    def _string(self, at: int, end: int) -> None:
        raw = self._body[at:end]
        if self._doing in (_BY_NAME, _BY_PATH):
            if raw and raw != HIDDEN:
                value = without_json_escapes(raw).text if b"\\" in raw else raw
                self.masks.append(Mask(at, end, HIDDEN, MASKED, value))
        elif self._doing == _SHOWN:
            nested = self._nested(raw)
            self._hide_parts(at, masks_in_json_string(raw) if nested is None else nested)

    def _hide_parts(self, at: int, masks: list[Mask]) -> None:
        self.masks += (mask._replace(start=at + mask.start, end=at + mask.end) for mask in masks)

    def _nested(self, raw: bytes) -> list[Mask] | None:
        """Of a string that holds JSON again."""
        if raw[:1] not in _OPENERS or self._level >= _MOST_NESTED:
            return None
        read = without_json_escapes(raw)
        if not is_json(read.text):
            return None
        masks = masks_in_json(read.text, self._names, self._places, self._level + 1)
        return [_written_as_string(mask, *read.span(mask.start, mask.end)) for mask in masks]

    def _scalar(self, token: bytes, at: int) -> None:
        if self._doing == _SHOWN:
            kind = kind_of_integer(_integer(token)) if len(token) >= _SHORTEST_NUMBER else None
        elif self._doing == _KEPT or token in (_SAYS_LITTLE if self._doing == _BY_NAME else _EMPTY):
            kind = None
        else:
            kind = MASKED
        if kind is not None:
            self.masks.append(Mask(at, at + len(token), f'"[{kind}]"'.encode(), kind, token))


def is_json(text: bytes) -> bool:
    """Also if it nests deeper than can be told."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except RecursionError:
        return True
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


def _without_escaped_quotes(body: bytes) -> bytes:
    """Of the same length; every quote that is left begins or ends a string."""
    if b"\\" not in body:
        return body
    return body.replace(b"\\\\", b"\0\0").replace(b'\\"', b"\0\0")


def _is_member(piece: bytes) -> bool:
    """A short scalar between a key and the next one, the most usual piece of all."""
    return piece.rstrip().endswith(b",") and piece.strip(b" \t\r\n:,").replace(b".", b"").isalnum()


def _next(signs: object) -> int:
    found = next(signs, None)  # type: ignore[call-overload]
    return 1 << 62 if found is None else int(found.start())


def _integer(token: bytes) -> bytes:
    """52998224725.0 is one too: spreadsheets write numbers so."""
    whole, _, fraction = token.partition(b".")
    return token if fraction.strip(b"0") else whole


def _written_as_string(mask: Mask, start: int, end: int) -> Mask:
    written = mask.written.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return mask._replace(start=start, end=end, written=written)
