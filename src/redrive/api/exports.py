"""`/export`: every letter that matches, as JSON lines."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from redrive.access import Permission
from redrive.any_text_json import encoded
from redrive.api.asking import AskedFor
from redrive.api.routes import AtDesk, Routes, taken
from redrive.api.selection import ExportAsked
from redrive.letter_json import letter_values

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from redrive.dead_letter import DeadLetter

exports = Routes("Letters")

_LINES = "application/x-ndjson"


class UnmaskedExport(ExportAsked, kw_only=True):
    """Which letters, and why nothing of them is masked."""

    reason: str


@exports.at("GET", "/export", Permission.READ, media_type=_LINES, summary="Every letter that matches, masked")
async def export(
    desk: AtDesk,
    query: AskedFor,
    at_most: Annotated[int | None, Query(ge=1, le=2**31)] = None,
    whole: Annotated[bool, Query(description="With every attempt, revision and line of history.")] = False,
) -> Response:
    return await _lines(desk.export(query, at_most=at_most, whole=whole))


@exports.at(
    "POST",
    "/export",
    Permission.READ,
    takes=ExportAsked,
    media_type=_LINES,
    reads=True,
    summary="The same by a body: what is looked for stands in no URL",
)
async def export_by_body(
    request: Request, desk: AtDesk, asked: Annotated[ExportAsked, taken(ExportAsked)]
) -> Response:
    query = asked.selection.query(request.app.state.door.clock.now())
    return await _lines(desk.export(query, at_most=asked.at_most, whole=asked.whole))


@exports.at(
    "POST",
    "/export/unmasked",
    Permission.EXPORT,
    takes=UnmaskedExport,
    media_type=_LINES,
    summary="Every letter that matches, as it is; who asked, and why, is written down",
)
async def export_unmasked(
    request: Request, desk: AtDesk, asked: Annotated[UnmaskedExport, taken(UnmaskedExport)]
) -> Response:
    query = asked.selection.query(request.app.state.door.clock.now())
    return await _lines(desk.export(query, at_most=asked.at_most, whole=asked.whole, unmasked=asked.reason))


async def _lines(letters: AsyncGenerator[DeadLetter]) -> Response:
    """The first letter is awaited: what is wrong is told by the status, and not in the middle of the lines."""
    first = await anext(letters, None)

    async def told() -> AsyncIterator[bytes]:
        async with aclosing(letters):
            if first is not None:
                yield _line(first)
            async for letter in letters:
                yield _line(letter)

    return StreamingResponse(told(), media_type=_LINES)


def _line(letter: DeadLetter) -> bytes:
    return encoded(letter_values(letter)) + b"\n"
