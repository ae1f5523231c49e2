"""What the settings say, without what is secret: see `redrive.loaded`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.dead_letter import Status
from redrive.loaded import Loaded, LoadedQueue, LoadedRetention, LoadedRule
from redrive.retention_wiring import keep_rules

if TYPE_CHECKING:
    from redrive.keeping import KeepRules
    from redrive.run_policy import RunPolicy
    from redrive.settings import QueueSettings, RuleSettings, Settings


def loaded_of(settings: Settings, policy: RunPolicy) -> Loaded:
    rules = keep_rules(settings)
    return Loaded(
        retention=LoadedRetention(
            keep=rules.otherwise.resolved,
            keep_discarded=rules.otherwise.discarded,
            every=settings.retention.every,
            archives=settings.retention.archive is not None,
        ),
        approval=policy.approval,
        rules=tuple(_rule(name, rule) for name, rule in settings.rules.items()),
        queues={name: _queue(name, settings.for_queue(name), rules) for name in settings.queues},
        masking=settings.masking.enabled,
        encryption=settings.encryption.enabled,
    )


def _rule(name: str, rule: RuleSettings) -> LoadedRule:
    return LoadedRule(
        name=name,
        enabled=rule.enabled,
        when=rule.when,
        wait=rule.wait,
        at_most=rule.at_most,
        rate=rule.rate,
        window=rule.window,
        time_zone=rule.time_zone,
    )


def _queue(name: str, queue: QueueSettings, rules: KeepRules) -> LoadedQueue:
    return LoadedQueue(
        expire_after=queue.dead_letters.expire_after,
        assume_after=queue.dead_letters.assume_after,
        redrive_rate=queue.redrive_rate,
        ordered_by=queue.ordered_by,
        keep=rules.of(name, Status.RESOLVED),
        keep_discarded=rules.of(name, Status.DISCARDED),
    )
