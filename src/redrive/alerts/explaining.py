"""One cause is one alert: what numbers and other rules say of it, the alert about the cause tells.

`pending`, `growth` and `rate` do not begin for letters of causes that somebody was told of already. Where that was
with less severity than theirs, the alert about the one cause with the most letters becomes as severe and is told
once more. Rules about causes (`new_group` and its like) do not begin for one that was told as critical. What has
begun stays until it is over by itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from redrive.alerts.conditions import is_meant
from redrive.alerts.observed import MOST_RECENT
from redrive.alerts.rule import RuleKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from redrive.alerts.conditions import Condition
    from redrive.alerts.incident import Incident
    from redrive.alerts.observed import Observed
    from redrive.alerts.rule import AlertRule

SLACK = 120.0
"""Seconds: a letter is recorded a little after it failed, and samples are not taken at every moment."""


def is_explained(
    rule: AlertRule, condition: Condition, causes: Iterable[Incident], observed: Observed
) -> tuple[bool, Incident | None]:
    """Whether alerts about causes tell of it, and which of them has to be told as worse for that."""
    letters = _counting(rule, condition, observed)
    told = _worst_by_group(_telling(rule, condition, causes, observed))
    enough = [each for each in told if each.severity.rank >= rule.severity.rank]
    left = condition.beyond - sum(map(letters, enough))
    if left <= 0:
        return True, None
    # One that was told among many has no message of its own that could be worse.
    lesser = [each for each in told if each not in enough and each.is_firing and not each.told_as]
    worst = max(lesser, key=letters, default=None)
    return (True, worst) if worst is not None and letters(worst) >= left else (False, None)


def is_told_as_critical(rule: AlertRule, critical: Incident | None, at: datetime) -> bool:
    """Whether whoever this rule would tell of a cause knows of it already, as a critical failure."""
    return (
        critical is not None
        and rule.kind is not RuleKind.CRITICAL
        and (critical.is_firing or critical.held)
        and (critical.told or critical.held or critical.is_snoozed(at))
        and critical.severity.rank >= rule.severity.rank
        and _hears_all(critical, rule)
    )


def _telling(
    rule: AlertRule, condition: Condition, causes: Iterable[Incident], observed: Observed
) -> Iterator[Incident]:
    """What somebody was told of, or does not want to hear of, where this one would be told too."""
    since = observed.at - timedelta(seconds=rule.window + SLACK)
    for each in causes:
        lately = each.is_firing or (each.ended_at is not None and each.ended_at >= since and not each.held)
        same_queue = not rule.each_queue or each.queue == condition.subject
        if (
            lately
            and (each.told or each.is_snoozed(observed.at))
            and same_queue
            and is_meant(rule, each.queue)
            and _hears_all(each, rule)
        ):
            yield each


def _hears_all(cause: Incident, rule: AlertRule) -> bool:
    if not cause.channels:
        return True
    return bool(rule.channels) and set(rule.channels) <= set(cause.channels)


def _worst_by_group(causes: Iterable[Incident]) -> list[Incident]:
    found: dict[str, Incident] = {}
    for each in causes:
        known = found.get(each.group_id)
        if known is None or each.severity.rank > known.severity.rank:
            found[each.group_id] = each
    return list(found.values())


def _counting(rule: AlertRule, condition: Condition, observed: Observed) -> Callable[[Incident], float]:
    """How many of the letters that a condition is about are a cause's."""
    lately = observed.lately.get(rule.window, {})
    counted = sum(lately.values())
    # Of more than that only the newest were counted: their shares are taken for those of all.
    scale = condition.weighed / counted if counted >= MOST_RECENT else 1.0

    def letters(cause: Incident) -> float:
        group = observed.groups.get(cause.group_id)
        pending = 0 if group is None else group.pending
        recent = lately.get(cause.group_id, 0) * scale
        if rule.kind is RuleKind.PENDING:
            return pending
        return recent if rule.kind is RuleKind.RATE else min(recent, pending)

    return letters
