"""`/overview`: what is going on, since when, and in which groups."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
from fastapi import Depends, Query, Request
from starlette.responses import Response

from redrive.access import Permission
from redrive.api.asking import Moment
from redrive.api.routes import AtDesk, Routes, answer
from redrive.insights import Arrivals, Endings, GroupArrivals, SeenGroup, Situation
from redrive.letter_query import MAX_PAGE, Count

overview = Routes("Overview")

USUAL_SPAN = timedelta(hours=24)
_MOST_STACKED = 20
_AT = datetime(2026, 5, 17, 12, tzinfo=UTC)


class SeenGroups(msgspec.Struct):
    items: list[SeenGroup]


async def _asked_span(
    request: Request,
    since: Annotated[Moment | None, Query(description="From that moment on; a day before `until`.")] = None,
    until: Annotated[Moment | None, Query(description="Before that moment; now.")] = None,
) -> tuple[datetime, datetime]:
    end = until or request.app.state.door.clock.now()
    try:
        return since or end - USUAL_SPAN, end
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC), end


Span = Annotated[tuple[datetime, datetime], Depends(_asked_span)]


@overview.at(
    "GET",
    "/overview",
    Permission.READ,
    answers=Situation,
    summary="What is pending, what arrives, what became of it",
    example=Situation(
        at=_AT,
        by_status={"PENDING": 12, "RESOLVED": 988},
        oldest_pending=_AT - timedelta(hours=3),
        last_5_minutes=Count(2, exact=True),
        last_hour=Count(9, exact=True),
        since=_AT - USUAL_SPAN,
        until=_AT,
        arrived={"PENDING": 12, "RESOLVED": 30},
        redriven=Endings(outcomes={"confirmed": 28, "came back": 2}, redrives=30, exact=True),
    ),
)
async def situation(desk: AtDesk, span: Span) -> Response:
    return answer(await desk.situation(*span))


@overview.at(
    "GET",
    "/overview/arrivals",
    Permission.READ,
    answers=Arrivals,
    summary="S1's query 3 by group: letters per hour, or per day beyond a week",
    example=Arrivals(
        step_hours=1,
        starts=(_AT - timedelta(hours=1), _AT),
        groups=(
            GroupArrivals(
                group_id="9f86d081884c7d65",
                title="TimeoutError: no answer",
                queue="orders",
                letters=9,
                counts=(7, 2),
            ),
        ),
        others=(1, 0),
        total=(8, 2),
    ),
)
async def arrivals(
    desk: AtDesk,
    span: Span,
    top: Annotated[int, Query(ge=1, le=_MOST_STACKED, description="So many groups; the others together.")] = 8,
) -> Response:
    return answer(await desk.arrivals(*span, groups=top))


@overview.at(
    "GET",
    "/overview/groups",
    Permission.READ,
    answers=SeenGroups,
    summary="Groups with letters of that time: new ones first, then those that return",
)
async def seen_groups(desk: AtDesk, span: Span, limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 20) -> Response:
    return answer(SeenGroups(await desk.seen_groups(*span, limit=limit)))
