"""Where a page begins, as one opaque word."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated

import msgspec

from redrive.errors import UsageError
from redrive.letter_query import Place

_LONGEST = 200


class _Written(msgspec.Struct, array_like=True):
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    id: str


_decoder = msgspec.json.Decoder(_Written)


def cursor(place: Place) -> str:
    raw = msgspec.json.encode(_Written(place.created_at, place.id))
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def place_of(text: str) -> Place:
    try:
        padded = text[:_LONGEST] + "=" * (-len(text) % 4)
        written = _decoder.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise UsageError("that is no cursor", remedy="take `next` or `previous` of a page, unchanged") from None
    return Place(written.at, written.id)
