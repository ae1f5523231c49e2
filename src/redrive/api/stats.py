"""`/stats`: S2's statistics and S1's five analyses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import Query
from starlette.responses import Response

from redrive.access import Permission
from redrive.api.asking import AskedFor
from redrive.api.letter_wire import LetterPage, page
from redrive.api.problems import Unprocessable
from redrive.api.routes import AtDesk, Routes, answer
from redrive.dead_letter import Status
from redrive.duration import seconds
from redrive.letter_query import MAX_PAGE, Count, LetterQuery
from redrive.search_terms import Field
from redrive.statistics import EventTypeCount, HourlyRate, KnownValue, ResolutionTime, Statistics, TopError

stats = Routes("Statistics")

Within = Annotated[str, Query(description="So long until now: 24h, 7d.", max_length=20)]


class HandlerRate(msgspec.Struct):
    handler: str
    succeeded: int
    failed: int
    rate: float


class StatisticsJson(msgspec.Struct, kw_only=True):
    """S2's statistics, at one moment."""

    total: int
    by_status: dict[str, int]
    by_queue: dict[str, int]
    """Open letters (PENDING and QUARANTINED) per queue; the next two count the same letters."""
    by_type: dict[str, int]
    reasons: list[tuple[str, int]]
    failure_rates: list[HandlerRate]
    oldest: datetime | None
    older: int


class TopErrors(msgspec.Struct):
    items: list[TopError]


class HourlyRates(msgspec.Struct):
    items: list[HourlyRate]


class EventTypes(msgspec.Struct):
    items: list[EventTypeCount]


class KnownValues(msgspec.Struct):
    items: list[KnownValue]


class SearchBacklog(msgspec.Struct):
    letters: int


def _seconds(text: str) -> float:
    try:
        return seconds(text)
    except ValueError as error:
        raise Unprocessable(str(error), remedy="write it like 24h or 7d") from None


@stats.at(
    "GET", "/stats", Permission.READ, answers=StatisticsJson, summary="Letters by status, queue, type, reason"
)
async def statistics(
    desk: AtDesk,
    older_than: Annotated[
        str | None, Query(description="Count those older than this: 24h.", max_length=20)
    ] = None,
) -> Response:
    return answer(_json(await desk.statistics(older_than=None if older_than is None else _seconds(older_than))))


def _json(found: Statistics) -> StatisticsJson:
    return StatisticsJson(
        total=found.total,
        by_status=dict(found.by_status),
        by_queue=dict(found.by_queue),
        by_type=dict(found.by_type),
        reasons=list(found.reasons),
        failure_rates=[
            HandlerRate(each.handler, each.succeeded, each.failed, each.rate) for each in found.failure_rates
        ],
        oldest=found.oldest,
        older=found.older,
    )


@stats.at("GET", "/stats/pending", Permission.READ, answers=LetterPage, summary="S1's query 1: what is pending")
async def pending(desk: AtDesk, limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50) -> Response:
    found = await desk.letters(LetterQuery(status=Status.PENDING, limit=limit))
    return answer(page(found, limit, begun=False))


@stats.at("GET", "/stats/top-errors", Permission.READ, answers=TopErrors, summary="S1's query 2: frequent errors")
async def top_errors(desk: AtDesk, limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 10) -> Response:
    return answer(TopErrors(await desk.top_errors(limit=limit)))


@stats.at("GET", "/stats/rate", Permission.READ, answers=HourlyRates, summary="S1's query 3: letters per hour")
async def rate(desk: AtDesk, within: Within = "24h") -> Response:
    return answer(HourlyRates(await desk.error_rate(_seconds(within))))


@stats.at("GET", "/stats/event-types", Permission.READ, answers=EventTypes, summary="S1's query 4: by event type")
async def event_types(desk: AtDesk) -> Response:
    return answer(EventTypes(await desk.by_event_type()))


@stats.at(
    "GET", "/stats/resolution", Permission.READ, answers=ResolutionTime, summary="S1's query 5: time to resolution"
)
async def resolution(desk: AtDesk) -> Response:
    return answer(await desk.time_to_resolve())


@stats.at(
    "GET",
    "/stats/search-backlog",
    Permission.READ,
    answers=SearchBacklog,
    summary="Letters that a filter cannot find yet",
)
async def search_backlog(desk: AtDesk, query: AskedFor) -> Response:
    return answer(SearchBacklog(await desk.search_backlog(query if query.where.terms else None)))


@stats.at("GET", "/stats/count", Permission.READ, answers=Count, summary="How many letters match")
async def count(
    desk: AtDesk,
    query: AskedFor,
    at_most: Annotated[int | None, Query(ge=1, le=10_000_000, description="Counting may stop there.")] = None,
) -> Response:
    return answer(await desk.count(query, at_most=at_most))


@stats.at(
    "GET", "/stats/values/{field}", Permission.READ, answers=KnownValues, summary="What a field is known to be"
)
async def values(
    desk: AtDesk,
    field: Field,
    beginning: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> Response:
    return answer(KnownValues(await desk.known_values(field, beginning, limit)))
