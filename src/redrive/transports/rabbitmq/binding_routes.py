"""Which queues a message would reach, by what the broker's exchanges and bindings say."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from redrive.transports.rabbitmq.broker_facts import BindingFacts, BrokerFacts, ExchangeFacts


class Reach(msgspec.Struct, frozen=True):
    queues: frozenset[str] = frozenset()
    certain: bool = True
    """False: an exchange on the way decides by more than the routing key."""


class Routes:
    """Of one vhost, at one moment."""

    def __init__(self, facts: BrokerFacts) -> None:
        self._queues = frozenset(each.name for each in facts.queues)
        self._exchanges = {each.name: each for each in facts.exchanges}
        self._bindings: dict[str, list[BindingFacts]] = defaultdict(list)
        for each in facts.bindings:
            self._bindings[each.source].append(each)
        self._keys: dict[str, set[str]] = defaultdict(set)
        for each in facts.bindings:
            if each.to_queue and each.source:
                self._keys[each.destination].add(each.key)

    def has_exchange(self, name: str) -> bool:
        return name == "" or name in self._exchanges

    def keys_of(self, queue: str) -> list[str]:
        """Routing keys that a queue is bound with. A pattern is none."""
        return sorted(key for key in self._keys[queue] if key and not {"*", "#"} & set(key.split(".")))

    def reach(self, exchange: str, key: str) -> Reach:
        """Nothing if the exchange does not exist."""
        return self._reach(exchange, key, set())

    def _reach(self, name: str, key: str, seen: set[str]) -> Reach:
        if name == "":
            return Reach(self._queues & {key})
        exchange = self._exchanges.get(name)
        if exchange is None or name in seen:
            return Reach()
        seen.add(name)
        bindings = self._bindings[name]
        taking = [each for each in bindings if _takes(exchange, each, key)]
        if not taking:
            return self._instead(exchange, key, seen)
        found = _joined(self._onward(each, key, seen) for each in taking)
        return found if _is_readable(exchange) else Reach(found.queues, certain=False)

    def _onward(self, binding: BindingFacts, key: str, seen: set[str]) -> Reach:
        if binding.to_queue:
            return Reach(frozenset({binding.destination}))
        return self._reach(binding.destination, key, seen)

    def _instead(self, exchange: ExchangeFacts, key: str, seen: set[str]) -> Reach:
        """Where it sends what no binding takes."""
        if exchange.alternate is not None:
            return self._reach(exchange.alternate, key, seen)
        return Reach(certain=not exchange.has_policy)


def matches(pattern: str, key: str) -> bool:
    """As a topic exchange does: `*` is one word, `#` any number of them, none included."""
    return _match(pattern.split(".") if pattern else [], key.split(".") if key else [])


def _match(pattern: Sequence[str], words: Sequence[str]) -> bool:
    # `possible[i]`: the pattern so far can have taken exactly the first i words. No backtracking: any pattern is
    # as cheap as it is long.
    possible = [True] + [False] * len(words)
    for part in pattern:
        if part == "#":
            first = possible.index(True) if True in possible else len(possible)
            possible = [index >= first for index in range(len(possible))]
        else:
            taken = [before and part in {"*", word} for before, word in zip(possible, words, strict=False)]
            possible = [False, *taken]
    return possible[-1]


def _takes(exchange: ExchangeFacts, binding: BindingFacts, key: str) -> bool:
    if exchange.type == "direct":
        return binding.key == key
    return exchange.type != "topic" or matches(binding.key, key)


def _is_readable(exchange: ExchangeFacts) -> bool:
    return exchange.type in {"direct", "fanout", "topic"}


def _joined(parts: Iterable[Reach]) -> Reach:
    found = list(parts)
    return Reach(frozenset().union(*(each.queues for each in found)), all(each.certain for each in found))
