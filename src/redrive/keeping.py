"""How long settled letters stay in the store: by status, and by queue where a queue has a word of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from redrive.dead_letter import Status, Version

SETTLED = (Status.RESOLVED, Status.DISCARDED)
"""Nothing else ever leaves the store by its age."""


class Keep(msgspec.Struct, frozen=True):
    """Seconds since the status changed last."""

    resolved: float
    discarded: float

    @classmethod
    def alike(cls, seconds: float) -> Keep:
        return cls(seconds, seconds)

    def of(self, status: Status) -> float:
        return self.resolved if status is Status.RESOLVED else self.discarded


class KeepRules(msgspec.Struct, frozen=True):
    otherwise: Keep
    queues: Mapping[str, Keep] = {}
    """Those that differ."""

    @classmethod
    def alike(cls, seconds: float) -> KeepRules:
        """The same for every letter."""
        return cls(Keep.alike(seconds))

    def of(self, queue: str, status: Status) -> float:
        return self.queues.get(queue, self.otherwise).of(status)

    @property
    def shortest(self) -> float:
        return min(each.of(status) for each in (self.otherwise, *self.queues.values()) for status in SETTLED)

    def limits(self, now: datetime) -> Limits:
        queues = {name: _limit(keep, now) for name, keep in self.queues.items()}
        return Limits(_limit(self.otherwise, now), queues)


class Limit(msgspec.Struct, frozen=True):
    """What changed before is old."""

    resolved: datetime
    discarded: datetime

    def of(self, status: Status) -> datetime:
        return self.resolved if status is Status.RESOLVED else self.discarded


class Limits(msgspec.Struct, frozen=True):
    """The rules, at one moment."""

    otherwise: Limit
    queues: Mapping[str, Limit] = {}

    @classmethod
    def alike(cls, before: datetime) -> Limits:
        return cls(Limit(before, before))

    def of(self, queue: str, status: Status) -> datetime:
        return self.queues.get(queue, self.otherwise).of(status)

    @property
    def latest(self) -> datetime:
        """What changed since is young, whatever it is."""
        return max(each.of(status) for each in (self.otherwise, *self.queues.values()) for status in SETTLED)


class Ended(msgspec.Struct, frozen=True):
    """A letter that is old enough to go, as it was seen."""

    version: Version
    queue: str
    status: Status


class EndedCount(msgspec.Struct, frozen=True):
    """Letters of one queue and status that are old enough to go."""

    queue: str
    status: Status
    letters: int
    bytes: int | None = None
    """Of their bodies, as they lie in the store; None: nobody asked."""


def _limit(keep: Keep, now: datetime) -> Limit:
    return Limit(_before(now, keep.resolved), _before(now, keep.discarded))


def _before(now: datetime, seconds: float) -> datetime:
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)  # nothing is that old
