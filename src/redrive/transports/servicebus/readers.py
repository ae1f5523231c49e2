"""The subscriptions of topics: who of them would get a message that is marked for one. They are asked for over
HTTP, and so only now and then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.errors import PublishRefused
from redrive.transports.servicebus.topics import gets

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from redrive.clock import Clock
    from redrive.servicebus_paths import EntityPath
    from redrive.transports.servicebus.topics import Rule, Topics

_HOLD = 10.0


class Readers:
    """`topics` None: nobody can tell."""

    def __init__(self, topics: Topics | None, clock: Clock) -> None:
        self._topics = topics
        self._clock = clock
        self._rules: dict[str, tuple[float, Mapping[str, Collection[Rule]] | None]] = {}
        """And when they were asked for."""

    async def of(self, where: EntityPath) -> tuple[str, ...] | None:
        """The subscriptions that get what is marked for this one, or may: it can depend on the message."""
        rules = await self._rules_of(where.name)
        if rules is None:
            return None
        return tuple(sorted(name for name, each in rules.items() if gets(each, where.subscription) is not False))

    async def is_alone(self, where: EntityPath) -> bool:
        """For certain: no other gets what is marked for it."""
        readers = await self.of(where)
        return readers is not None and [each.casefold() for each in readers] == [where.subscription.casefold()]

    async def check(self, where: EntityPath) -> None:
        """A topic takes what no subscription wants, and it is gone (ServiceBusExplorer#476). PublishRefused if it
        is known; who may not ask for the rules is told nothing.
        """
        readers = await self.of(where)
        wanted = where.subscription
        if readers is not None and wanted.casefold() not in {each.casefold() for each in readers}:
            raise PublishRefused(
                f"subscription {wanted!r} of topic {where.name!r} would not get the message",
                permanent=True,
                remedy="make the subscription, or a rule of it that lets the message through",
            )

    async def _rules_of(self, topic: str) -> Mapping[str, Collection[Rule]] | None:
        """As they were a moment ago: a run sends many messages."""
        now = self._clock.monotonic()
        if topic not in self._rules or now - self._rules[topic][0] > _HOLD:
            self._rules[topic] = (now, None if self._topics is None else await self._topics.rules(topic))
        return self._rules[topic][1]
