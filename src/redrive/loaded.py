"""What the process works by, as it was loaded: nothing secret, no address and no path."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from redrive.approvals import ApprovalRules


class LoadedRule(msgspec.Struct, frozen=True, kw_only=True):
    """An automatic rule."""

    name: str
    enabled: bool
    when: str
    """A filter."""
    wait: float
    """Seconds that a letter has been PENDING, unchanged."""
    at_most: int
    """Redrives of one letter."""
    rate: float | None
    window: str | None
    time_zone: str


class LoadedRetention(msgspec.Struct, frozen=True, kw_only=True):
    keep: float = 90 * 86400.0
    """Seconds that RESOLVED letters are kept, since their status changed last."""
    keep_discarded: float = 90 * 86400.0
    every: float | None = None
    """Seconds after which servers take out what is older, by themselves. None: never."""
    archives: bool = True
    """What is taken out of the store goes into archives."""


class LoadedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue has of its own."""

    expire_after: float | None
    """Seconds after which its letters are discarded. None: never."""
    assume_after: float | None
    """Seconds of silence after which a redrive is assumed to have succeeded. None: never."""
    redrive_rate: float | None
    ordered_by: str | None
    keep: float
    """Seconds that its RESOLVED letters are kept."""
    keep_discarded: float


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    retention: LoadedRetention = LoadedRetention()
    approval: ApprovalRules = ApprovalRules()
    rules: tuple[LoadedRule, ...] = ()
    queues: Mapping[str, LoadedQueue] = {}
    masking: bool = True
    encryption: bool = False
    partial: bool = False
    """What is about queues that are not whoever asks' own, and rules, which may be about any, are left out."""
