"""`/search`: writing a filter, and what the letters that match it are. Filters may say something personal, so they
stand in bodies.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Request
from starlette.responses import Response

from redrive.access import Permission
from redrive.api.routes import AtDesk, Routes, answer, taken
from redrive.api.selection import LetterSelection, filter_of
from redrive.errors import FilterError
from redrive.insights import Facets, FacetValue
from redrive.search_completion import Suggestion
from redrive.search_terms import MAX_TEXT
from redrive.search_writing import unparse

filters = Routes("Search")

_Written = Annotated[str, msgspec.Meta(max_length=2 * MAX_TEXT)]


class Cursor(msgspec.Struct, kw_only=True):
    """A filter that is being written."""

    q: _Written
    at: Annotated[int, msgspec.Meta(ge=0, le=2 * MAX_TEXT)]
    """How many characters (Unicode code points) stand before the cursor."""


class Suggestions(msgspec.Struct):
    items: list[Suggestion]


class Written(msgspec.Struct):
    q: _Written


class FilterProblem(msgspec.Struct):
    detail: str
    remedy: str
    column: int
    """From 1 on; one behind the last character if something is missing there."""


class Checked(msgspec.Struct, kw_only=True):
    problem: FilterProblem | None
    """null: it can be read."""
    canonical: str
    """The same filter as we write it, moments absolute; empty if it cannot be read."""


class FacetsAsked(msgspec.Struct):
    selection: LetterSelection = msgspec.field(default_factory=LetterSelection)


@filters.at(
    "POST",
    "/search/complete",
    Permission.READ,
    takes=Cursor,
    answers=Suggestions,
    reads=True,
    summary="What could be written next in a filter",
    example=Suggestions([Suggestion("orders", (6, 8))]),
)
async def complete(desk: AtDesk, begun: Annotated[Cursor, taken(Cursor)]) -> Response:
    return answer(Suggestions(await desk.suggestions(begun.q, begun.at)))


@filters.at(
    "POST",
    "/search/check",
    Permission.READ,
    takes=Written,
    answers=Checked,
    reads=True,
    summary="Whether a filter can be read, and what is wrong with it where",
    example=Checked(problem=None, canonical="queue:orders"),
)
async def check(request: Request, written: Annotated[Written, taken(Written)]) -> Response:
    try:
        found = filter_of(written.q, request.app.state.door.clock.now())
    except FilterError as error:
        return answer(Checked(problem=FilterProblem(str(error), error.remedy, error.column), canonical=""))
    return answer(Checked(problem=None, canonical=unparse(found)))


@filters.at(
    "POST",
    "/search/facets",
    Permission.READ,
    takes=FacetsAsked,
    answers=Facets,
    reads=True,
    summary="Letters that match, by status, queue, type and handler",
    example=Facets(
        status=(FacetValue("PENDING", 3),),
        queue=(FacetValue("orders", 3),),
        type=(FacetValue("TimeoutError", 3),),
        handler=(FacetValue("charge", 3),),
        counted=3,
        exact=True,
    ),
)
async def facets(request: Request, desk: AtDesk, asked: Annotated[FacetsAsked, taken(FacetsAsked)]) -> Response:
    return answer(await desk.facets(asked.selection.query(request.app.state.door.clock.now())))
