"""How much of a letter one answer tells: a body may have 16 MiB, and headers may be ten thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from fastapi import Depends, Query
from msgspec.structs import replace

from redrive.api.letter_wire import whole

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter
    from redrive.message import Message

_LONGEST_CHARACTER = 4


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    most_bytes: int | None = None
    most_headers: int | None = None

    def told(self, letter: DeadLetter) -> dict[str, Any]:
        """As `letter_wire.Letter`, to be encoded: each message cut, and how much of it there is."""
        found = whole(self._cut_letter(letter))
        found["message"] |= _sizes(letter.message)
        for told, revision in zip(found["revisions"], letter.revisions, strict=True):
            told["message"] |= _sizes(revision.message)
        return found

    def _cut_letter(self, letter: DeadLetter) -> DeadLetter:
        if self.most_bytes is None and self.most_headers is None:
            return letter
        revisions = tuple(replace(each, message=self._cut(each.message)) for each in letter.revisions)
        return replace(letter, message=self._cut(letter.message), revisions=revisions)

    def _cut(self, message: Message) -> Message:
        headers, most = message.headers[: self.most_headers], self.most_bytes
        properties = message.properties
        if most is not None and properties is not None and len(properties) > most:
            properties = None
        return replace(
            message,
            body=_beginning(message.body, most),
            key=_beginning(message.key, most),
            headers=headers,
            properties=properties,
        )


def _sizes(message: Message) -> dict[str, int]:
    return {"body_size": len(message.body or b""), "header_count": len(message.headers)}


def _beginning(raw: bytes | None, most: int | None) -> bytes | None:
    """Text is not cut inside of a character: half of one would make bytes of all of it."""
    if raw is None or most is None or len(raw) <= most:
        return raw
    cut = raw[:most]
    try:
        cut.decode()
    except UnicodeDecodeError as error:
        if error.start > most - _LONGEST_CHARACTER and error.reason == "unexpected end of data":
            return cut[: error.start]
    return cut


async def _asked_bounds(
    most_bytes: Annotated[
        int | None, Query(ge=0, le=2**31, description="Of each body; `body_size` tells how many it has.")
    ] = None,
    most_headers: Annotated[
        int | None, Query(ge=0, le=2**31, description="Of each message; `header_count` tells how many it has.")
    ] = None,
) -> Bounds:
    return Bounds(most_bytes=most_bytes, most_headers=most_headers)


AskedBounds = Annotated[Bounds, Depends(_asked_bounds)]
