"""Numbers about letters and handlers: S2's statistics and S0's monitor."""

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
