"""Service Bus, looked at. Nothing is made, received or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from redrive import servicebus_paths as paths
from redrive.finding import ok
from redrive.transports.inspection import ExpectedQueue, Figures, QueueFigures
from redrive.transports.servicebus.examination import Looked, examine

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from redrive.finding import Finding
    from redrive.transports import Transport
    from redrive.transports.inspection import Expected
    from redrive.transports.servicebus.administration import Administration
    from redrive.transports.servicebus.entity_facts import EntityFacts

    class ServiceBusTransport(Transport, Protocol):
        entities: Administration


class ServiceBusInspector:
    """Asks the administration: who may only send and listen is told nothing. `sessions`: what is read in them."""

    def __init__(self, _url: str, transport: ServiceBusTransport, *, sessions: Collection[str] = ()) -> None:
        self._sessions = frozenset(name.casefold() for name in sessions)
        self._entities = transport.entities
        self._names = transport.names

    async def findings(self, expected: Expected) -> list[Finding]:
        looked = [await self._looked(each) for each in expected.queues] or [
            Looked(expected=ExpectedQueue(name=each.path, handled=False), own=each)
            for each in await self._entities.queues()
        ]
        count = len(looked)
        said = ok("broker", f"Service Bus answers; {count} queue{'' if count == 1 else 's'} looked at")
        return [said, *(finding for each in looked for finding in examine(each))]

    async def figures(self, queues: Collection[str] = (), *, known: Collection[str] = ()) -> Figures:
        """Without names: all queues, and subscriptions that are known."""
        if queues:
            named = {each for name in queues for each in self._belonging(name)}
            found = [facts for name in sorted(named) if (facts := await self._entities.facts(name)) is not None]
        else:
            subscriptions = [name for name in known if paths.parse(name).subscription]
            told = [await self._entities.facts(name) for name in subscriptions]
            found = [*await self._entities.queues(), *(each for each in told if each is not None)]
        incomplete = "" if queues else "of subscriptions only those of the settings and of the app are looked at"
        rows = sorted((row for facts in found for row in _rows(facts)), key=lambda row: row.name)
        return Figures(queues=tuple(rows), incomplete=incomplete)

    async def close(self) -> None:
        """The transport is its caller's."""

    async def _looked(self, queue: ExpectedQueue) -> Looked:
        dead = self._names.dead_of(paths.parse(queue.name).beside)
        return Looked(
            expected=queue,
            own=await self._entities.facts(queue.name),
            in_sessions=queue.name.casefold() in self._sessions,
            dead=None if paths.parse(dead).subqueue else await self._entities.facts(dead),
        )

    def _belonging(self, name: str) -> tuple[str, str]:
        home = paths.parse(self._names.home_of_dead(name) or name)
        return home.parent, paths.parse(self._names.dead_of(home.beside)).parent


def _rows(facts: EntityFacts) -> Iterator[QueueFigures]:
    """What is locked counts as active: Service Bus does not tell them apart."""
    kind = f"{facts.kind}, sessions" if facts.sessions else str(facts.kind)
    yield QueueFigures(name=facts.path, type=kind, ready=facts.active, delayed=facts.scheduled)
    for count, subqueue in ((facts.dead, paths.DEAD_LETTERS), (facts.transfer_dead, paths.TRANSFER_DEAD_LETTERS)):
        if count:
            yield QueueFigures(name=f"{facts.path}/{subqueue}", type="subqueue", ready=count)
