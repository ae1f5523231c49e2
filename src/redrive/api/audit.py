"""`/audit`: the ledger of every change, denial and reveal."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Depends, Query
from starlette.responses import Response

from redrive.access import Permission
from redrive.api.asking import Moment
from redrive.api.routes import AtDesk, Routes, answer
from redrive.ledger import LedgerEntry, LedgerQuery
from redrive.letter_query import MAX_PAGE

audit = Routes("Audit")


class LedgerLines(msgspec.Struct):
    """Newest first."""

    items: list[LedgerEntry]
    next: int | None
    """`before=` of the next page; `after=` where that was given."""


async def _asked_for(
    who: Annotated[str | None, Query(max_length=200)] = None,
    what: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[Moment | None, Query()] = None,
    until: Annotated[Moment | None, Query()] = None,
    denied: Annotated[bool, Query(description="Only denials.")] = False,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="`next` of the page before.")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=2**62, description="In their order, from behind that row on.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> LedgerQuery:
    return LedgerQuery(
        who=who,
        what=what,
        since=since,
        until=until,
        allowed=False if denied else None,
        before=before,
        after=after,
        limit=limit,
    )


@audit.at("GET", "/audit", Permission.AUDIT, answers=LedgerLines, summary="Who did what, to what, and why")
async def list_audit(
    desk: AtDesk,
    query: Annotated[LedgerQuery, Depends(_asked_for)],
) -> Response:
    found = await desk.ledger(query)
    return answer(LedgerLines(found, found[-1].seq if len(found) == query.limit else None))
