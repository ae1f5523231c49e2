"""Looks at a queue and its dead letters, and makes what is missing. What exists is never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from redrive.errors import PublishRefused
from redrive.transports import setup
from redrive.transports.setup import PlainDifference, PlainExamined, PlainStep
from redrive.transports.sqs.queue_facts import LONGEST_RETENTION, POLICY, RETENTION, DeadLetterRule, QueueSpec

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
    things = (
        setup.found(of_dead, None if theirs is None else _kept_too_short(own, theirs)),
        setup.found(of_own, None if own is None else _astray(own, rule)),
    )
    return PlainExamined(name, things)


async def complete(queues: Queues, examined: PlainExamined) -> PlainExamined:
    async def create(spec: QueueSpec) -> None:
        await queues.create(await _with_target(queues, spec))

    return await setup.complete(examined, create, PublishRefused)


def _kept_too_short(own: QueueFacts | None, dead: QueueFacts) -> Iterator[PlainDifference]:
    """SQS counts from when a message was first sent: what comes late would be gone early."""
    needed = LONGEST_RETENTION if own is None else min(own.retention + 1, LONGEST_RETENTION)
    if dead.retention < needed:
        yield _difference(RETENTION, dead.retention, LONGEST_RETENTION)


def _astray(own: QueueFacts, rule: DeadLetterRule | None) -> Iterator[PlainDifference]:
    """How often a message is received before is its owner's to choose."""
    if rule is not None and (own.rule is None or own.rule.queue != rule.queue):
        yield _difference(POLICY, own.rule or "none", rule)


def _difference(argument: str, current: object, wanted: object) -> PlainDifference:
    remedy = f"aws sqs set-queue-attributes changes {argument} while it is used"
    return PlainDifference(argument, current, wanted, remedy)


async def _with_target(queues: Queues, spec: QueueSpec) -> QueueSpec:
    """Where its dead letters go has an ARN only since it was made."""
    if spec.rule is None:
        return spec
    dead = await queues.ensured(spec.rule.queue)
    return replace(spec, rule=replace(spec.rule, target=dead.arn))
