"""Looks at a queue or a subscription with what belongs to it, and makes what is missing. What exists is never
changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive import servicebus_paths as paths
from redrive.errors import PublishRefused
from redrive.transports import setup
from redrive.transports.servicebus.entity_facts import Kind, QueueSpec, Spec, SubscriptionSpec, TopicSpec
from redrive.transports.setup import PlainDifference, PlainExamined, PlainFound, PlainStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.transports import Names
    from redrive.transports.servicebus.administration import Administration
    from redrive.transports.servicebus.entity_facts import EntityFacts

_KINDS = {QueueSpec: Kind.QUEUE, SubscriptionSpec: Kind.SUBSCRIPTION, TopicSpec: Kind.TOPIC}


def steps_for(
    name: str, names: Names, *, max_delivery_count: int, lock_duration: float, sessions: bool = False
) -> Iterator[PlainStep]:
    """Retries of a queue wait in the queue itself. Nothing can be sent to a subscription: it has one beside it."""
    where = paths.parse(name)
    held: dict[str, Any] = {"max_delivery_count": max_delivery_count, "lock_duration": lock_duration}
    dead = names.dead_of(where.beside)
    if not paths.parse(dead).subqueue:  # which every entity has
        yield PlainStep("dead letters", QueueSpec(name=dead, **held))
    if where.subscription:
        yield PlainStep("retries", QueueSpec(name=names.retry_of(where.beside), **held), delays=True)
        yield PlainStep("topic", TopicSpec(name=where.name))
        yield PlainStep("messages", SubscriptionSpec(name=where.parent, sessions=sessions, **held))
    else:
        yield PlainStep("messages", QueueSpec(name=where.name, sessions=sessions, **held))


async def examine(entities: Administration, name: str, steps: Iterator[PlainStep]) -> PlainExamined:
    return PlainExamined(name, tuple([_found(step, await entities.facts(step.thing.name)) for step in steps]))


async def complete(entities: Administration, examined: PlainExamined) -> PlainExamined:
    return await setup.complete(examined, entities.create, PublishRefused)


def _found(step: PlainStep, there: EntityFacts | None) -> PlainFound:
    return setup.found(step, None if there is None else _differences(step.thing, there))


def _differences(wanted: Spec, there: EntityFacts) -> Iterator[PlainDifference]:
    """How often a message is delivered, and how long a lock is, are its owner's to choose."""
    kind = _KINDS[type(wanted)]
    if there.kind is not kind:
        yield PlainDifference("kind", str(there.kind), str(kind), "choose another name, or delete it")
        return
    if not isinstance(wanted, TopicSpec) and wanted.sessions != there.sessions:
        remedy = "it cannot be changed: see broker.servicebus.sessions, or make it anew"
        yield PlainDifference("RequiresSession", there.sessions, wanted.sessions, remedy)
    if there.forwards_to:
        yield PlainDifference("ForwardTo", there.forwards_to, "none", "az servicebus queue update removes it")
    if kind is not Kind.TOPIC and there.lives is not None and not there.keeps_expired:
        remedy = "az servicebus queue update --enable-dead-lettering-on-message-expiration true, while it is used"
        yield PlainDifference("DeadLetteringOnMessageExpiration", False, True, remedy)  # noqa: FBT003  values of a setting
