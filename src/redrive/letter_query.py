"""Which letters: what lists, exports and checks ask for."""

from __future__ import annotations

from datetime import datetime

import msgspec

from redrive.dead_letter import Status

MAX_PAGE = 500


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
    after: str | None = None
    """A letter's id: the page goes on behind it (newest first, so: older ones)."""
    limit: int = 50
    """At most MAX_PAGE."""
    bodies: bool = False
    """Whether the message's body comes with it; lists do not need it. Without it `message.body` is None whatever
    the body is, which says nothing about it: a page must not hold hundreds of bodies of many megabytes (G7).
    """
