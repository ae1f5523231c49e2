"""What a request says about which letters it means, as parameters of a URL; `selection` is the same in a body."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import AwareDatetime, BeforeValidator

from redrive.api.selection import filter_of
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery

_LONGEST = 8192
_BEGINS_WITH_A_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _written(value: str) -> str:
    """A number, however it is written (2.2e-313), would be read as seconds since 1970, which nobody means."""
    if not _BEGINS_WITH_A_DAY.match(value):
        raise ValueError("should be written like 2026-05-17T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_written)]
_MOST_IDS = 200
_Name = Annotated[str | None, Query(max_length=1000)]


async def _asked_for(
    request: Request,
    q: Annotated[
        str | None,
        Query(description="A filter, such as `queue:orders age:>2d -handler:refund`.", max_length=_LONGEST),
    ] = None,
    status: Annotated[Status | None, Query(description="In this status.")] = None,
    queue: _Name = None,
    handler: _Name = None,
    type: Annotated[  # noqa: A002  the word of the filter language
        str | None, Query(description="Exception type: its full name or its last part.", max_length=1000)
    ] = None,
    group: Annotated[str | None, Query(description="A group's id, or its beginning.", max_length=64)] = None,
    ids: Annotated[
        list[str] | None, Query(description="These letters alone; repeatable.", max_length=_MOST_IDS)
    ] = None,
    created_before: Annotated[Moment | None, Query(description="Recorded before that.")] = None,
    created_after: Annotated[Moment | None, Query(description="Recorded after that.")] = None,
) -> LetterQuery:
    """Every one that is given must match."""
    return LetterQuery(
        where=filter_of(q, request.app.state.door.clock.now()),
        status=status,
        queue=queue,
        handler=handler,
        type=type,
        group=group,
        ids=None if ids is None else tuple(ids),
        created_before=created_before,
        created_after=created_after,
    )


AskedFor = Annotated[LetterQuery, Depends(_asked_for)]
