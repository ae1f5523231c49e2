"""`/dlq/{id}/...`: parts of a letter that pages ask for one by one."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import Query
from starlette.responses import Response

from redrive.access import Permission
from redrive.api.letter_wire import LetterLine, Reason, line
from redrive.api.letters import LetterId
from redrive.api.routes import AtDesk, Routes, answer, taken
from redrive.insights import LetterRedrive
from redrive.letter_query import MAX_PAGE

letter_parts = Routes("Letters")

BINARY = "application/octet-stream"
SIZE = "redrive-body-size"
_LARGEST = 2**31

Offset = Annotated[int, Query(ge=0, le=_LARGEST, description="Bytes to leave out.")]
MostBytes = Annotated[int, Query(ge=1, le=_LARGEST, description="Bytes to give, at most.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]


class RelatedLetters(msgspec.Struct):
    items: list[LetterLine]


class LetterRedrives(msgspec.Struct):
    items: list[LetterRedrive]


@letter_parts.at(
    "GET",
    "/dlq/{letter_id}/related",
    Permission.READ,
    answers=RelatedLetters,
    also=(HTTPStatus.NOT_FOUND,),
    summary="Other letters with the same correlation id, newest first",
)
async def related(letter_id: LetterId, desk: AtDesk, limit: Limit = 50) -> Response:
    return answer(RelatedLetters([line(each) for each in await desk.related(letter_id, limit=limit)]))


@letter_parts.at(
    "GET",
    "/dlq/{letter_id}/redrives",
    Permission.READ,
    answers=LetterRedrives,
    also=(HTTPStatus.NOT_FOUND,),
    summary="When a letter was sent back, by whom, and how that ended; newest first",
)
async def redrives(letter_id: LetterId, desk: AtDesk, limit: Limit = 50) -> Response:
    return answer(LetterRedrives(await desk.letter_redrives(letter_id, limit=limit)))


@letter_parts.at(
    "GET",
    "/dlq/{letter_id}/body",
    Permission.READ,
    media_type=BINARY,
    also=(HTTPStatus.NOT_FOUND,),
    summary="The current body as a file, masked, or some bytes of it; Redrive-Body-Size tells how many it has",
)
async def body(letter_id: LetterId, desk: AtDesk, offset: Offset = 0, limit: MostBytes = _LARGEST) -> Response:
    return _file(letter_id, await desk.body(letter_id), offset, limit)


@letter_parts.at(
    "POST",
    "/dlq/{letter_id}/body/reveal",
    Permission.REVEAL,
    takes=Reason,
    media_type=BINARY,
    summary="The current body as a file, as it is; who looked, and why, is written down",
)
async def reveal_body(
    letter_id: LetterId,
    desk: AtDesk,
    why: Annotated[Reason, taken(Reason)],
    offset: Offset = 0,
    limit: MostBytes = _LARGEST,
) -> Response:
    return _file(letter_id, await desk.reveal_body(letter_id, why.reason), offset, limit)


def _file(letter_id: str, found: bytes | None, offset: int, limit: int) -> Response:
    """A message without a body is a file without bytes."""
    whole = found or b""
    named = "".join(each for each in letter_id.lower() if each in "0123456789abcdef-")
    headers = {
        SIZE: str(len(whole)),
        "content-disposition": f'attachment; filename="{named}.bin"',
    }
    return Response(whole[offset : offset + limit], HTTPStatus.OK.value, headers, BINARY)
