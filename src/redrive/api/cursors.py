"""Where a page begins, as one opaque word."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated, TypeVar

import msgspec

from redrive.errors import UsageError
from redrive.insights import GroupPlace
from redrive.letter_query import Place

T = TypeVar("T")

_LONGEST = 200


class _Written(msgspec.Struct, array_like=True):
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    id: str


_decoder = msgspec.json.Decoder(_Written)
_group_decoder = msgspec.json.Decoder(GroupPlace)
_NUMBERS = range(-(2**62), 2**62)


def cursor(place: Place) -> str:
    return _word(_Written(place.created_at, place.id))


def group_cursor(place: GroupPlace) -> str:
    return _word(place)


def _word(written: msgspec.Struct) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(written)).decode("ascii").rstrip("=")


def place_of(text: str) -> Place:
    written = _read(text, _decoder)
    return Place(written.at, written.id)


def group_place_of(text: str) -> GroupPlace:
    place = _read(text, _group_decoder)
    if place.value not in _NUMBERS or place.last_seen.tzinfo is None:
        raise _no_cursor()
    return place


def _read(text: str, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        padded = text[:_LONGEST] + "=" * (-len(text) % 4)
        return decoder.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise _no_cursor() from None


def _no_cursor() -> UsageError:
    return UsageError("that is no cursor", remedy="take `next` or `previous` of a page, unchanged")
