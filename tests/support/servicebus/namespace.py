"""The entities of the emulator by their paths. They are made by the test, or over the administration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from support.servicebus.entity import Entity, Rules, with_subqueues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from support.servicebus.sections import Content

    Filter = Callable[[Mapping[Any, Any]], bool]
    """Whether a subscription wants a message with these application properties. Azure has SQL for it."""

SUBSCRIPTIONS = "Subscriptions"


def everything(properties: Mapping[Any, Any]) -> bool:  # noqa: ARG001  the rule that a new subscription has
    return True


class Namespace:
    """Names are compared without their case, as Azure does."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._receivable: dict[str, Entity] = {}
        self._sendable: dict[str, Entity] = {}
        """A queue itself; for a topic, what is scheduled there and in no subscription yet."""
        self._subscriptions: dict[str, list[tuple[Filter, Entity]]] = {}

    def queue(self, name: str, rules: Rules | None = None) -> Entity:
        made = self._sendable[name.lower()] = self._add(name, rules or Rules())
        return made

    def topic(self, name: str) -> None:
        self._subscriptions[name.lower()] = []
        self._sendable[name.lower()] = Entity(name, Rules(), self._now, when_due=partial(self._fan_out, name))

    def subscription(
        self, topic: str, name: str, *, wants: Filter = everything, rules: Rules | None = None
    ) -> Entity:
        made = self._add(f"{topic}/{SUBSCRIPTIONS}/{name}", rules or Rules())
        self._subscriptions[topic.lower()].append((wants, made))
        return made

    def receivable(self, path: str) -> Entity | None:
        return self._receivable.get(path.lower())

    def sendable(self, path: str) -> Entity | None:
        return self._sendable.get(path.lower())

    def queues(self) -> list[str]:
        return [each.path for each in self._sendable.values() if each.path.lower() not in self._subscriptions]

    def topics(self) -> list[str]:
        """In lower case."""
        return list(self._subscriptions)

    def subscriptions(self, topic: str) -> list[str]:
        return [entity.path.rpartition("/")[2] for _, entity in self._subscriptions.get(topic.lower(), ())]

    def send(self, path: str, content: Content, *, due_at: float | None = None) -> int:
        """To a queue, or to every subscription of a topic that wants it. 0 if it is in no queue of that number."""
        entity = self._sendable[path.lower()]
        if entity.when_due is None or (due_at is not None and due_at > self._now()):
            return entity.enqueue(content, due_at=due_at)
        self._fan_out(path, content)
        return 0

    def __iter__(self) -> Iterator[Entity]:
        """Everything that has something to sweep."""
        found = {id(each): each for each in (*self._receivable.values(), *self._sendable.values())}
        return iter(found.values())

    def _fan_out(self, topic: str, content: Content) -> None:
        properties = content.application_properties
        for wants, subscription in self._subscriptions[topic.lower()]:
            if wants(properties):
                subscription.enqueue(content)

    def _add(self, path: str, rules: Rules) -> Entity:
        made = with_subqueues(path, rules, self._now)
        for each in (made, *made.subqueues.values()):
            self._receivable[each.path.lower()] = each
        return made
