"""What a person looks at first: what is going on, since when, in which groups, and what became of redrives."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from redrive.dead_letter import FailureGroup, Verdict
from redrive.epoch import EPOCH
from redrive.letter_query import Count


class Endings(msgspec.Struct, frozen=True, kw_only=True):
    """How redrives ended: `confirmed`, `assumed`, `came back`, `refused` and so on; else they are `under way`."""

    outcomes: Mapping[str, int]
    redrives: int
    """How many were counted: the newest ones."""
    exact: bool
    """False: there are more in that time, which were not counted."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What is going on at one moment, and in a span of time."""

    at: datetime
    by_status: Mapping[str, int]
    """All letters, now."""
    oldest_pending: datetime | None
    last_5_minutes: Count
    """Letters that failed for good in them."""
    last_hour: Count
    since: datetime
    until: datetime
    arrived: Mapping[str, int]
    """Letters that failed for good in the span, by what they are now."""
    redriven: Endings
    """Redrives that began in the span."""


class GroupArrivals(msgspec.Struct, frozen=True, kw_only=True):
    group_id: str
    title: str
    queue: str
    letters: int
    counts: tuple[int, ...]
    """One for each of `starts`."""


class Arrivals(msgspec.Struct, frozen=True, kw_only=True):
    """Letters by when they failed for good, whatever has become of them: one stack per step of time."""

    step_hours: int
    starts: tuple[datetime, ...]
    """Where each step begins, in UTC; the first and the last are whole, even if the span is not."""
    groups: tuple[GroupArrivals, ...]
    """Those with the most letters in the span, most first."""
    others: tuple[int, ...]
    """All other groups together."""
    total: tuple[int, ...]


class Appearance(StrEnum):
    NEW = "new"
    """Seen for the first time in the span."""
    RETURNING = "returning"
    KNOWN = "known"


class Return(StrEnum):
    QUIET = "quiet"
    """Nothing of it had failed for days before."""
    SETTLED = "settled"
    """All of its letters had been settled."""
    CAME_BACK = "came back"
    """Letters of it were sent back and failed again."""


class SeenGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group that has letters of a span of time."""

    group: FailureGroup
    letters: int
    """Of the span."""
    appearance: Appearance
    why: Return | None = None
    """Of one that is returning."""


class GroupOrder(StrEnum):
    """The most first, or the latest."""

    PENDING = "pending"
    TOTAL = "total"
    LAST_SEEN = "last_seen"
    FIRST_SEEN = "first_seen"


class GroupPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a group stands in an order: what it is ordered by, when it was seen last, its id."""

    value: int
    last_seen: datetime
    id: str

    @classmethod
    def of(cls, group: FailureGroup, order: GroupOrder) -> GroupPlace:
        value = getattr(group, order)
        number = value if isinstance(value, int) else (value - EPOCH) // timedelta(microseconds=1)
        return cls(number, group.last_seen, group.id)


class GroupQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which groups that have letters: every field that is given must match."""

    queue: str | None = None
    owner: str | None = None
    verdict: Verdict | None = None
    text: str | None = None
    """Stands in its title; capitals of ASCII do not count."""
    order: GroupOrder = GroupOrder.PENDING
    after: GroupPlace | None = None
    limit: int = 50


class AttemptCount(msgspec.Struct, frozen=True):
    attempt: int
    kind: str
    failed: int


class GroupAttempts(msgspec.Struct, frozen=True, kw_only=True):
    """Which attempts failed, of the group's newest letters in their current generation."""

    letters: int
    attempts: tuple[AttemptCount, ...]


class GroupRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one run, or all redrives of no run, did to letters of a group."""

    run_id: str | None
    """None: letters that were sent one by one."""
    by: str
    first_at: datetime
    last_at: datetime
    outcomes: Mapping[str, int]


class GroupRedrives(msgspec.Struct, frozen=True, kw_only=True):
    letters: int
    """The group's newest ones, which these are of."""
    runs: tuple[GroupRun, ...]
    """The last one first."""


class FacetValue(msgspec.Struct, frozen=True):
    value: str
    letters: int


class Facets(msgspec.Struct, frozen=True, kw_only=True):
    """What the letters that match are, by field, most first."""

    status: tuple[FacetValue, ...]
    queue: tuple[FacetValue, ...]
    type: tuple[FacetValue, ...]
    handler: tuple[FacetValue, ...]
    counted: int
    """How many letters that is."""
    exact: bool
    """False: more match, and any `counted` of them were looked at."""


class LetterRedrive(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a letter was sent back, or taken to be."""

    redrive_id: str
    run_id: str | None
    by: str
    """Who asked for it."""
    generation: int
    revision: int
    target: str | None
    claimed_at: datetime
    sent_at: datetime | None
    outcome: str
    """`under way` if it has not ended."""
    outcome_at: datetime | None
    returned_as: int | None
    """The generation it came back as."""
