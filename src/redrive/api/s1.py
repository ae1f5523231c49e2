"""S1's own prefix: `/validation/dlq`, with its list as S1's controller gives it. The rest is `/dlq`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from redrive.access import Permission
from redrive.api import letter_wire as wire
from redrive.api import letters
from redrive.api.cursors import cursor, place_of
from redrive.api.routes import AtDesk, Routes, answer
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery, Place

s1 = Routes("S1")


@s1.at(
    "GET",
    "/validation/dlq",
    Permission.READ,
    answers=list[wire.DlqEvent],
    summary="List letters by status, under the names of S1's table; the header Link has the next page",
)
async def events(
    desk: AtDesk,
    status: Annotated[Status, Query()] = Status.PENDING,
    limit: letters.Limit = 50,
    after: Annotated[str | None, Query(description="Of the header Link of the page before.")] = None,
) -> Response:
    place = None if after is None else place_of(after)
    found = await desk.letters(LetterQuery(status=status, limit=limit, after=place))
    told = answer([wire.event(each) for each in found])
    if len(found) == limit:
        following = cursor(Place.of(found[-1]))
        told.headers["link"] = f'<?status={status}&limit={limit}&after={following}>; rel="next"'
    return told


for _method, _path, _permission, _status, _summary, _endpoint in (
    ("POST", "/{letter_id}/retry", Permission.REDRIVE, HTTPStatus.ACCEPTED, "Send a letter back", letters.retry),
    ("PUT", "/{letter_id}/resolve", Permission.DECIDE, HTTPStatus.OK, "Mark a letter as solved", letters.resolve),
    ("DELETE", "/{letter_id}", Permission.DECIDE, HTTPStatus.NO_CONTENT, "Discard a letter", letters.discard),
):
    s1.at(_method, f"/validation/dlq{_path}", _permission, status=_status, summary=_summary)(_endpoint)
