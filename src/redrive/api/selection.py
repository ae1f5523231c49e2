"""Which letters, as a part of a body: read by the server, written by whoever asks one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from redrive.dead_letter import Status
from redrive.letter_query import MAX_PAGE, LetterQuery
from redrive.search import Filter, parse, unparse

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


def filter_of(text: str | None, now: datetime) -> Filter:
    return Filter() if text is None else parse(text, now=now)


class LetterSelection(msgspec.Struct, kw_only=True):
    """Which letters: every field that is given must match."""

    q: str | None = None
    """A filter, such as `queue:orders age:>2d -handler:refund`."""
    ids: list[str] | None = None
    status: Status | None = None
    queue: str | None = None
    handler: str | None = None
    type: str | None = None
    group: str | None = None
    created_before: Moment | None = None
    created_after: Moment | None = None

    def query(self, now: datetime) -> LetterQuery:
        same = {name: getattr(self, name) for name in _SAME}
        ids = None if self.ids is None else tuple(self.ids)
        return LetterQuery(where=filter_of(self.q, now), ids=ids, **same)

    @classmethod
    def of(cls, query: LetterQuery) -> LetterSelection:
        same = {name: getattr(query, name) for name in _SAME}
        ids = None if query.ids is None else list(query.ids)
        return cls(q=unparse(query.where) or None, ids=ids, **same)


class LettersAsked(msgspec.Struct, kw_only=True):
    """A page of letters. What they are looked for by may be personal: here it stands in no URL."""

    selection: LetterSelection = msgspec.field(default_factory=LetterSelection)
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)] = 50
    after: str | None = None
    """`next` of the page before."""
    before: str | None = None
    """`previous` of the page behind."""
    count: bool = False
    """Count all that match as well."""
    count_at_most: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    """Counting may stop there. null: never."""


class ExportAsked(msgspec.Struct, kw_only=True):
    """Which letters to export, masked."""

    selection: LetterSelection = msgspec.field(default_factory=LetterSelection)
    at_most: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    whole: bool = False
    """With every attempt, revision and line of history."""


_SAME = ("status", "queue", "handler", "type", "group", "created_before", "created_after")
