"""What the settings say, without what is secret: see `redrive.loaded`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.loaded import Loaded, LoadedQueue, LoadedRetention, LoadedRule

if TYPE_CHECKING:
    from redrive.run_policy import RunPolicy
    from redrive.settings import QueueSettings, RuleSettings, Settings


def loaded_of(settings: Settings, policy: RunPolicy) -> Loaded:
    return Loaded(
        retention=LoadedRetention(keep=settings.retention.keep, archives=settings.retention.archive is not None),
        approval=policy.approval,
        rules=tuple(_rule(name, rule) for name, rule in settings.rules.items()),
        queues={name: _queue(settings.for_queue(name)) for name in settings.queues},
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


def _queue(queue: QueueSettings) -> LoadedQueue:
    return LoadedQueue(
        expire_after=queue.dead_letters.expire_after,
        assume_after=queue.dead_letters.assume_after,
        redrive_rate=queue.redrive_rate,
        ordered_by=queue.ordered_by,
    )
