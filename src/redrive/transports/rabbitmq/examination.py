"""What is wrong with a broker, by what it tells of itself: no I/O, the same facts give the same findings.

Every place where RabbitMQ may drop a message without a word is a problem here; what makes it less safe than it
could be is a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.finding import ok, problem
from redrive.transports.rabbitmq.binding_routes import Routes
from redrive.transports.rabbitmq.effective import effective, name_without_delay
from redrive.transports.rabbitmq.examined_broker import examine_broker, examine_permissions
from redrive.transports.rabbitmq.examined_dead_letters import dead_letter_keys
from redrive.transports.rabbitmq.examined_memory import examine_memory
from redrive.transports.rabbitmq.examined_queue import ExaminedQueue, examine_queue
from redrive.transports.rabbitmq.examined_timeout import examine_timeout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from redrive.finding import Finding
    from redrive.transports.inspection import Expected
    from redrive.transports.rabbitmq.broker_facts import BrokerFacts, QueueFacts
    from redrive.transports.rabbitmq.effective import Effective

CONSUMER_TIMEOUT = 1800.0
"""RabbitMQ's own default, in seconds."""


def examine(
    facts: BrokerFacts, expected: Expected, *, consumer_timeout: float | None = CONSUMER_TIMEOUT
) -> list[Finding]:
    """The broker first, then queue by queue; a queue with nothing to say about it gets one finding that says so,
    and all such delay queues of one retry name get one together.
    """
    picture = _Picture(facts, expected)
    names = [each.name for each in expected.queues]
    found = [*examine_broker(facts), *examine_permissions(facts, names, expected.names)]
    found += [missing(name) for name in names if name not in picture.queues]
    found += examine_handling(expected, consumer_timeout)
    clean: list[str] = []
    for name in picture.chosen():
        told = [*examine_queue(picture.queue(name)), *picture.memory(name)]
        found += told
        clean += [] if told else [name]
    return found + picture.nothing_found(clean)


def examine_handling(expected: Expected, consumer_timeout: float | None) -> list[Finding]:
    """What settings and code alone can tell."""
    handled = [each for each in expected.queues if each.handled]
    return [found for each in handled for found in examine_timeout(each.name, each.longest, consumer_timeout)]


class _Picture:
    """The queues, what holds for each, and who sends dead letters where."""

    def __init__(self, facts: BrokerFacts, expected: Expected) -> None:
        self._overview, self._expected = facts.overview, expected
        self._routes = Routes(facts)
        self.queues: dict[str, QueueFacts] = {each.name: each for each in facts.queues}
        self._rules: dict[str, Effective] = {each.name: effective(each, facts.overview) for each in facts.queues}
        self._targets = {name: self._dead_letters_of(name) for name in self.queues}
        self._sources = {target for name in self.queues if self._rejects(name) for target in self._targets[name]}

    def chosen(self) -> list[str]:
        """Those expected and what belongs to them. None expected: all that are not one connection's own."""
        if not self._expected.queues:
            return sorted(name for name, queue in self.queues.items() if not queue.exclusive)
        found: set[str] = set()
        waiting = [name for each in self._expected.queues for name in self._beside(each.name)]
        while waiting:
            name = waiting.pop()
            if name in self.queues and name not in found:
                found.add(name)
                waiting += self._targets[name]
        return sorted(found)

    def queue(self, name: str) -> ExaminedQueue:
        return ExaminedQueue(
            facts=self.queues[name],
            rules=self._rules[name],
            routes=self._routes,
            overview=self._overview,
            keeps_dead_letters=self._keeps_dead_letters(name),
        )

    def memory(self, name: str) -> Iterator[Finding]:
        for each in self._expected.queues:
            if each.name == name:
                yield from examine_memory(each, self.queues[name])

    def nothing_found(self, clean: Iterable[str]) -> list[Finding]:
        alike: dict[str, list[str]] = {}
        for name in clean:
            shared = name_without_delay(self.queues[name], self._rules[name])
            alike.setdefault(name if shared == name else f"{shared}.*", []).append(name)
        return [_nothing_found(shown, names) for shown, names in alike.items()]

    def _beside(self, name: str) -> Iterator[str]:
        names = self._expected.names
        yield from (name, names.retry_of(name), names.dead_of(name))
        delays = f"{names.retry_of(name)}."
        yield from (each for each in self.queues if each.startswith(delays))

    def _dead_letters_of(self, name: str) -> frozenset[str]:
        rules = self._rules[name]
        if rules.dead_letter_exchange is None:
            return frozenset()
        keys = dead_letter_keys(name, rules, self._routes)
        reached = (self._routes.reach(rules.dead_letter_exchange, key).queues for key in keys)
        return frozenset().union(*reached) - {name}

    def _rejects(self, name: str) -> bool:
        """Its dead letters are failures. Those of a queue with a TTL have only waited."""
        return self._rules[name].message_ttl is None

    def _keeps_dead_letters(self, name: str) -> bool:
        home = self._expected.names.home_of_dead(name)
        known = home in self.queues or any(each.name == home for each in self._expected.queues)
        return self._rules[name].dead_letter_exchange is None and (known or name in self._sources)


def _nothing_found(shown: str, names: list[str]) -> Finding:
    told = "nothing found that may lose a message"
    if len(names) == 1:
        return ok("queue", told, queue=names[0])
    return ok("queue", f"{len(names)} delay queues, {told}", queue=shown)


def missing(name: str) -> Finding:
    return problem(
        "queue",
        "does not exist: what others publish for it is dropped",
        "run `redrive setup`; a worker makes it when it starts",
        queue=name,
    )
