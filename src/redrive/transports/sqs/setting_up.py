"""Looks at a queue and its dead letters, and makes what is missing. Of what exists nothing is changed, but that a
queue without a RedrivePolicy gets one: SQS would else give a message for ever to consumers that never delete it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from redrive.errors import PublishRefused
from redrive.transports import setup
from redrive.transports.setup import PlainDifference, PlainExamined, PlainStep
from redrive.transports.sqs.queue_facts import (
    LONGEST_RETENTION,
    POLICY,
    RETENTION,
    DeadLetterRule,
    QueueSpec,
    RouteSpec,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.transports.sqs.queue_facts import QueueFacts
    from redrive.transports.sqs.queues import Queues


async def examine(queues: Queues, name: str, dead: str, *, most: int | None) -> PlainExamined:
    """`most`: after so many receptions SQS itself shall move a message to `dead`; None: it shall not."""
    own, theirs = await queues.facts(name), await queues.facts(dead)
    target = dead if theirs is None else theirs.arn
    rule = None if most is None else DeadLetterRule(target, most)
    of_dead = PlainStep("dead letters", QueueSpec(dead))
    of_own = PlainStep("messages", QueueSpec(name, rule))
    things = [
        setup.found(of_dead, None if theirs is None else _kept_too_short(own, theirs)),
        setup.found(of_own, None if own is None else _astray(own, rule)),
    ]
    if own is not None and own.rule is None and rule is not None:
        things.append(setup.found(PlainStep("moved by SQS", RouteSpec(name, rule)), None))
    return PlainExamined(name, tuple(things))


async def complete(queues: Queues, examined: PlainExamined) -> PlainExamined:
    async def create(spec: QueueSpec | RouteSpec) -> None:
        if isinstance(spec, RouteSpec):
            await queues.set_rule(spec.queue, await _with_target(queues, spec.rule))
        elif spec.rule is None:
            await queues.create(spec)
        else:
            await queues.create(replace(spec, rule=await _with_target(queues, spec.rule)))

    return await setup.complete(examined, create, PublishRefused)


def _kept_too_short(own: QueueFacts | None, dead: QueueFacts) -> Iterator[PlainDifference]:
    """SQS counts from when a message was first sent: what comes late would be gone early."""
    needed = LONGEST_RETENTION if own is None else min(own.retention + 1, LONGEST_RETENTION)
    if dead.retention < needed:
        yield _difference(RETENTION, dead.retention, LONGEST_RETENTION)


def _astray(own: QueueFacts, rule: DeadLetterRule | None) -> Iterator[PlainDifference]:
    """How often a message is received before is its owner's to choose."""
    if rule is not None and own.rule is not None and own.rule.queue != rule.queue:
        yield _difference(POLICY, own.rule, rule)


def _difference(argument: str, current: object, wanted: object) -> PlainDifference:
    remedy = f"aws sqs set-queue-attributes changes {argument} while it is used"
    return PlainDifference(argument, current, wanted, remedy)


async def _with_target(queues: Queues, rule: DeadLetterRule) -> DeadLetterRule:
    """Where its dead letters go has an ARN only since it was made."""
    dead = await queues.ensured(rule.queue)
    return replace(rule, target=dead.arn)
