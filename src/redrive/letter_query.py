"""Which letters: what lists, exports and checks ask for."""

from __future__ import annotations

from datetime import datetime

import msgspec

from redrive.access import Scope
from redrive.dead_letter import DeadLetter, Status
from redrive.search_terms import Filter

MAX_PAGE = 500


class Place(msgspec.Struct, frozen=True):
    """Where a letter stands in the order of pages: newest failure first, letters of one moment by their ids."""

    created_at: datetime
    id: str

    @classmethod
    def of(cls, letter: DeadLetter) -> Place:
        return cls(letter.created_at, letter.id)


class LetterQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which letters: every field that is set must match."""

    ids: tuple[str, ...] | None = None
    status: Status | None = None
    queue: str | None = None
    handler: str | None = None
    type: str | None = None
    """Exception type: its full name or its last part."""
    group: str | None = None
    """A group's id or the beginning of one."""
    created_before: datetime | None = None
    created_after: datetime | None = None
    where: Filter = Filter()
    """In the filter language: `redrive.search.parse` reads it."""
    within: Scope = None
    """Letters of these queues only: what whoever asks may know of. It is not theirs to say."""
    after: Place | None = None
    """The page goes on behind it (newest first, so: older ones)."""
    before: Place | None = None
    """The page ends just before it: the nearest newer ones, newest first like every page."""
    limit: int = 50
    """At most MAX_PAGE."""
    bodies: bool = False
    """Whether the message's body and properties come with it; lists do not need them. Without them `message.body`
    and `message.properties` are None whatever they are, which says nothing about them: a page must not hold
    hundreds of bodies of many megabytes (G7).
    """


class Count(msgspec.Struct, frozen=True):
    """How many letters match."""

    number: int
    exact: bool
    """False: there are more than `number`; counting stopped there."""
