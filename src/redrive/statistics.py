"""Numbers about letters and handlers: S2's statistics, S0's monitor and S1's analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec


class HandlerTally(msgspec.Struct, frozen=True):
    """Attempts of one handler that ended since the last tally."""

    handler: str
    queue: str
    succeeded: int
    failed: int


class FailureRate(msgspec.Struct, frozen=True):
    """S2's FailureRate."""

    handler: str
    succeeded: int
    failed: int

    @property
    def rate(self) -> float:
        attempts = self.succeeded + self.failed
        return self.failed / attempts if attempts else 0.0


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """S2's DeadLetterStatistics and S0's monitor, at one moment."""

    total: int
    by_status: Mapping[str, int]
    by_queue: Mapping[str, int]
    """Open letters (PENDING and QUARANTINED) per queue; the next two count the same letters."""
    by_type: Mapping[str, int]
    reasons: Sequence[tuple[str, int]]
    """Error texts with everything that varies taken out, most frequent first."""
    failure_rates: Sequence[FailureRate]
    oldest: datetime | None
    """When the oldest open letter was recorded."""
    older: int
    """Open letters recorded before the moment asked for; 0 if none was given."""


class TransitionCount(msgspec.Struct, frozen=True):
    """How often letters of a queue have changed from one status to another since the store began: never fewer."""

    queue: str
    before: str
    """Empty: they were recorded."""
    after: str
    number: int
    within: int | None = None
    """Of resolutions: at most so many seconds after the failure; None if it took longer than any of these."""
    seconds: float = 0.0
    """What the resolutions took, added up."""


REDRIVE_OUTCOMES = ("sent", "not_sent", "confirmed", "assumed", "by_hand", "came_back")
"""What redrives are counted as: sent or not; and of those sent what became of them, once it is known. One that
came back after its letter was resolved is counted as both.
"""


class RedriveCount(msgspec.Struct, frozen=True):
    """How often that became of letters of a queue since the store began: never fewer."""

    queue: str
    outcome: str
    """One of REDRIVE_OUTCOMES."""
    number: int


class StoreNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What the metrics of a store are made of, all of one moment."""

    by_status: Mapping[str, int]
    open_by_queue: Mapping[str, int]
    """PENDING and QUARANTINED."""
    oldest: datetime | None
    """When the oldest open letter was recorded."""
    transitions: Sequence[TransitionCount]
    """Of the queues that were seen first come first."""
    redrives: Sequence[RedriveCount]
    runs_by_status: Mapping[str, int]
    unindexed: int
    """Letters that search does not know yet."""


class TopError(msgspec.Struct, frozen=True):
    title: str
    """The error's type and text, without what varies from letter to letter."""
    pending: int


class HourlyRate(msgspec.Struct, frozen=True):
    hour: datetime
    """When it began, in UTC."""
    letters: int
    """How many failed for good in it, whatever has become of them."""


class EventTypeCount(msgspec.Struct, frozen=True):
    event_type: str
    """What the message says it is; else its queue."""
    total: int
    pending: int
    resolved: int


class ResolutionTime(msgspec.Struct, frozen=True):
    """From the failure to the resolution, of the letters that are RESOLVED."""

    resolved: int
    mean_hours: float | None
    """None: none is resolved."""


class KnownValue(msgspec.Struct, frozen=True):
    """What a field of letters is known to be, for completion."""

    value: str
    letters: int
    title: str = ""
    """Of a group."""
