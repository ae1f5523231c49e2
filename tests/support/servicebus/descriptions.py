"""An entity of the emulator as the administration describes it, and back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from isodate import duration_isoformat, parse_duration

from support.servicebus.entity import Rules
from support.servicebus.held import ACTIVE, SCHEDULED

if TYPE_CHECKING:
    from support.servicebus.entity import Entity

_NEVER = "P10675199DT2H48M5.4775807S"
_USUAL = {
    "DefaultMessageTimeToLive": _NEVER,
    "AutoDeleteOnIdle": _NEVER,
    "Status": "Active",
    "EnableBatchedOperations": "true",
}
_OF_QUEUES = {
    "RequiresDuplicateDetection": "false",
    "DuplicateDetectionHistoryTimeWindow": "PT10M",
    "MaxSizeInMegabytes": "1024",
}
_OF_SUBSCRIPTIONS = {"DeadLetteringOnFilterEvaluationExceptions": "true"}


def rules_of(values: dict[str, str]) -> Rules:
    """How the emulator behaves then. Forwarding, a queue's own time to live and duplicates it does not know."""
    made = Rules()
    if "LockDuration" in values:
        made = replace(made, lock=parse_duration(values["LockDuration"]).total_seconds())
    if "MaxDeliveryCount" in values:
        made = replace(made, max_deliveries=int(values["MaxDeliveryCount"]))
    return replace(
        made,
        sessions=values.get("RequiresSession", "false") == "true",
        dead_letter_expired=values.get("DeadLetteringOnMessageExpiration", "false") == "true",
    )


def values_of(entity: Entity, given: dict[str, str], *, subscription: bool) -> dict[str, str]:
    rules = entity.rules
    own = {
        "LockDuration": duration_isoformat(timedelta(seconds=rules.lock)),
        "MaxDeliveryCount": str(rules.max_deliveries),
        "RequiresSession": str(rules.sessions).lower(),
        "DeadLetteringOnMessageExpiration": str(rules.dead_letter_expired).lower(),
    }
    return {**_USUAL, **(_OF_SUBSCRIPTIONS if subscription else _OF_QUEUES), **own, **given}


def counts_of(entity: Entity) -> dict[str, int]:
    states = [held.state for held in entity.messages.values()]
    return {
        "ActiveMessageCount": states.count(ACTIVE),
        "DeadLetterMessageCount": len(entity.dead_letters.messages),
        "ScheduledMessageCount": states.count(SCHEDULED),
        "TransferMessageCount": 0,
        "TransferDeadLetterMessageCount": len(entity.transfer_dead_letters.messages),
    }
