"""What is worth telling somebody: rules, each of one kind, with its own threshold and window.

Depth alone is a bad alarm. A failure that nobody has seen before, one that is back, and one that grows faster than
it used to are told as what they are.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from redrive.alerts.alert import Severity


class RuleKind(StrEnum):
    PENDING = "pending"
    """More than `threshold` letters are PENDING, all through the window."""
    GROWTH = "growth"
    """There are more than `threshold` PENDING letters more than a window ago."""
    RATE = "rate"
    """More than `threshold` letters per minute, on the average of the window."""
    AGE = "age"
    """The oldest open letter has waited longer than the window."""
    FAILURE_RATE = "failure_rate"
    """Of a handler's attempts in the window, at least `at_least`, more than the share `threshold` failed."""
    NEW_GROUP = "new_group"
    """A cause that was never seen before, not longer ago than the window, until none of its letters is open."""
    RETURNING_GROUP = "returning_group"
    """A cause that had been quiet or settled, or whose letters were sent back, fails again."""
    ACCELERATING_GROUP = "accelerating_group"
    """A known cause has `at_least` so many letters in the window, and `threshold` times as many as the day before
    had on average.
    """
    FAILED_RUN = "failed_run"
    """A redrive run has failed, or was stopped by a brake, not longer ago than the window."""
    SPOOL = "spool"
    """Letters lie in a worker's spool, for longer than the window."""
    COLLECTOR_DOWN = "collector_down"
    """A queue that a collector looked after has had none for as long as the window."""
    WORKER_DOWN = "worker_down"
    """The same for workers; those that were stopped in good order are not missed."""
    STORE_DOWN = "store_down"
    """The store has not answered for as long as the window."""
    CRITICAL = "critical"
    """A critical failure: told at once, until none of its letters is open."""


OF_GROUPS = frozenset(
    {RuleKind.NEW_GROUP, RuleKind.RETURNING_GROUP, RuleKind.ACCELERATING_GROUP, RuleKind.CRITICAL}
)
OF_PROCESSES = frozenset({RuleKind.SPOOL, RuleKind.COLLECTOR_DOWN, RuleKind.WORKER_DOWN})
"""What processes report of themselves, or do not."""
BY_QUEUE = frozenset({RuleKind.PENDING, RuleKind.GROWTH, RuleKind.RATE})
"""What can be looked at for each queue by itself."""
SAMPLED = frozenset({*BY_QUEUE, RuleKind.FAILURE_RATE})
"""What is seen by comparing numbers with those of before."""

_EVERY_KIND = frozenset(RuleKind)
MEANT_FOR: dict[str, frozenset[RuleKind]] = {
    "threshold": SAMPLED | {RuleKind.ACCELERATING_GROUP},
    "at_least": frozenset({RuleKind.FAILURE_RATE, RuleKind.ACCELERATING_GROUP}),
    "window": _EVERY_KIND - {RuleKind.CRITICAL},
    "queues": _EVERY_KIND - {RuleKind.STORE_DOWN, RuleKind.FAILED_RUN},
    "each_queue": BY_QUEUE,
    # Whether the store is away is known by each server for itself, and by no incident.
    "remind": _EVERY_KIND - {RuleKind.STORE_DOWN},
    "at_most": _EVERY_KIND - {RuleKind.STORE_DOWN},
}
"""What of a rule says something about which kinds; the rest about all."""


class AlertRule(msgspec.Struct, frozen=True, kw_only=True):
    """`window` and all other times are seconds."""

    name: str
    kind: RuleKind
    severity: Severity
    window: float
    threshold: float = 0.0
    at_least: int = 0
    cooldown: float = 3600.0
    """From one beginning that was told to the next one about the same thing; 0: each is told."""
    remind: float | None = None
    """Told again after so long, unless somebody has acknowledged it. None: once is enough."""
    at_most: int = 10
    """Beginnings told one by one within the cooldown (an hour, if there is none); more are one message that counts
    them.
    """
    queues: tuple[str, ...] = ()
    """Only these, by name or `beginning*`. Empty: all."""
    each_queue: bool = False
    """False: all queues together."""
    channels: tuple[str, ...] = ()
    """Only these. Empty: all."""

    @property
    def flood(self) -> float:
        """How long a flood is bounded for: also if each thing is told as often as it begins."""
        return self.cooldown or _HOUR


RESERVED = frozenset({"merged", "test"})
"""Names under which messages are told that are of no rule (outbox_sql.py, trial.py)."""

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0

DEFAULTS: dict[RuleKind, AlertRule] = {
    rule.kind: rule
    for rule in (
        AlertRule(
            name="pending", kind=RuleKind.PENDING, severity=Severity.WARNING, threshold=1000, window=5 * _MINUTE
        ),
        AlertRule(name="growth", kind=RuleKind.GROWTH, severity=Severity.WARNING, threshold=100, window=_HOUR),
        AlertRule(name="rate", kind=RuleKind.RATE, severity=Severity.ERROR, threshold=10, window=5 * _MINUTE),
        AlertRule(name="age", kind=RuleKind.AGE, severity=Severity.WARNING, window=_DAY),
        AlertRule(
            name="failure_rate",
            kind=RuleKind.FAILURE_RATE,
            severity=Severity.ERROR,
            threshold=0.1,
            at_least=20,
            window=5 * _MINUTE,
        ),
        AlertRule(name="new_group", kind=RuleKind.NEW_GROUP, severity=Severity.WARNING, window=_HOUR),
        AlertRule(name="returning_group", kind=RuleKind.RETURNING_GROUP, severity=Severity.WARNING, window=_HOUR),
        AlertRule(
            name="accelerating_group",
            kind=RuleKind.ACCELERATING_GROUP,
            severity=Severity.ERROR,
            threshold=3,
            at_least=20,
            window=15 * _MINUTE,
        ),
        AlertRule(name="failed_run", kind=RuleKind.FAILED_RUN, severity=Severity.ERROR, window=_DAY),
        AlertRule(name="spool", kind=RuleKind.SPOOL, severity=Severity.ERROR, window=_MINUTE),
        AlertRule(
            name="collector_down", kind=RuleKind.COLLECTOR_DOWN, severity=Severity.ERROR, window=2 * _MINUTE
        ),
        AlertRule(name="worker_down", kind=RuleKind.WORKER_DOWN, severity=Severity.ERROR, window=2 * _MINUTE),
        AlertRule(
            name="store_down",
            kind=RuleKind.STORE_DOWN,
            severity=Severity.CRITICAL,
            window=_MINUTE,
            cooldown=10 * _MINUTE,
        ),
        AlertRule(name="critical", kind=RuleKind.CRITICAL, severity=Severity.CRITICAL, window=_HOUR, cooldown=0.0),
    )
}
"""The seeds' five thresholds, and ours."""
