"""RabbitMQ, looked at: through the management API where it is enabled, else by what AMQP can tell."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec.structs import replace

from redrive.errors import NotFound, Refused, Unreachable
from redrive.finding import ok, problem, warn
from redrive.transports.inspection import Figures, QueueFigures
from redrive.transports.rabbitmq.administration import DeclarationRefused
from redrive.transports.rabbitmq.broker_facts import BrokerFacts
from redrive.transports.rabbitmq.examination import examine, examine_handling, missing
from redrive.transports.rabbitmq.management import Management, NotAllowed
from redrive.transports.rabbitmq.management_address import ManagementAddress
from redrive.transports.rabbitmq.queue_figures import figures_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Collection, Iterable

    from redrive.finding import Finding
    from redrive.transports import QueueDepth, Transport
    from redrive.transports.inspection import Expected
    from redrive.transports.rabbitmq.administration import Administration, QueueLook
    from redrive.transports.rabbitmq.broker_facts import QueueFacts

    class RabbitTransport(Transport, Protocol):
        async def administration(self) -> Administration: ...


T = TypeVar("T")

_FEW_QUEUES = 500


class RabbitInspector:
    def __init__(
        self,
        url: str,
        transport: RabbitTransport,
        *,
        management_url: str | None = None,
        security: ssl.SSLContext | None = None,
        consumer_timeout: float | None = None,
    ) -> None:
        self._address = ManagementAddress(url, management_url)
        self._management = Management(self._address, security=security)
        self._transport = transport
        self._consumer_timeout = consumer_timeout

    async def findings(self, expected: Expected) -> list[Finding]:
        """Unreachable only if AMQP is: without the management API less can be told, which is a warning."""
        administration = await self._transport.administration()
        try:
            facts = await self._facts()
        except (Unreachable, Refused, NotFound) as error:
            return [_without(error), *await self._by_amqp(administration, expected)]
        silent = await _silent(administration, sorted({each.name for each in facts.queues} & _names(expected)))
        return [ok("broker", f"{self._address} answers"), *silent, *self._examined(facts, expected)]

    async def figures(self, queues: Collection[str] = (), *, known: Collection[str] = ()) -> Figures:
        try:
            facts = await self._management.queues()
        except (Unreachable, Refused, NotFound) as error:
            shown = await self._figures_by_amqp(queues or known)
            named = "only queues that are named are looked at, by --queue, by an app or in the settings"
            return Figures(queues=tuple(shown), incomplete=f"{error}: {named}")
        counted, incomplete = await self._counted_now(facts)
        shown = figures_of(counted, queues, self._transport.names)
        return Figures(queues=tuple(shown), incomplete=incomplete)

    async def close(self) -> None:
        await self._management.close()

    async def _counted_now(self, queues: Collection[QueueFacts]) -> tuple[list[QueueFacts], str]:
        """The management API counts every few seconds, and a new queue not before; AMQP tells at once. Of many
        queues only those are asked for that were never counted: each one takes a while. With why it could not.
        """
        try:
            administration = await self._transport.administration()
        except (Unreachable, Refused) as error:
            return list(queues), f"{error}: what the management API tells may be some seconds old"
        every = len(queues) <= _FEW_QUEUES
        chosen = {each.name for each in queues if every or not _counted(each)}
        found = [await _looked_at(each, administration) if each.name in chosen else each for each in queues]
        return found, ""

    def _examined(self, facts: BrokerFacts, expected: Expected) -> list[Finding]:
        return examine(facts, expected, consumer_timeout=self._consumer_timeout)

    async def _facts(self) -> BrokerFacts:
        ask = self._management
        overview = await ask.overview()
        return BrokerFacts(
            overview=overview,
            queues=tuple(await ask.queues()),
            exchanges=tuple(await ask.exchanges()),
            bindings=tuple(await ask.bindings()),
            nodes=await _if_allowed(ask.nodes()),
            permissions=await _if_allowed(ask.permissions()),
            connections=await _if_allowed(ask.connections()),
            user=self._address.user,
            vhost=self._address.vhost,
        )

    async def _by_amqp(self, administration: Administration, expected: Expected) -> list[Finding]:
        version = ".".join(map(str, administration.version))
        found = [ok("broker", f"RabbitMQ {version} answers")]
        for each in expected.queues:
            look = await administration.look(each.name)
            if look is None:
                found.append(missing(each.name))
            elif look.silent:
                found.append(_does_not_answer(each.name))
            else:
                found.append(ok("queue", f"is there, with {look.messages:,} messages", queue=each.name))
        return found + examine_handling(expected, self._consumer_timeout)

    async def _depths(self, queues: Collection[str]) -> dict[str, QueueDepth]:
        """Without those of queues that do not answer."""
        found: dict[str, QueueDepth] = {}
        for queue in queues:
            with suppress(Unreachable):
                found |= await self._transport.depths((queue,))
        return found

    async def _figures_by_amqp(self, queues: Collection[str]) -> list[QueueFigures]:
        depths = await self._depths(queues)
        administration = await self._transport.administration()
        shown: list[QueueFigures] = []
        for name in sorted({*depths, *queues}):
            look = await administration.look(name)
            if look is not None or name in depths:
                shown.append(_figures(name, depths.get(name), look))
        return shown


async def _silent(administration: Administration, queues: Iterable[str]) -> list[Finding]:
    looks = {name: await administration.look(name) for name in queues}
    return [_does_not_answer(name) for name, look in looks.items() if look is not None and look.silent]


def _does_not_answer(queue: str) -> Finding:
    what = "does not answer: what is in it cannot be told, received or added to"
    return problem("state", what, "a quorum queue needs most of its nodes: start those that hold it", queue=queue)


def _counted(queue: QueueFacts) -> bool:
    return queue.ready is not None and queue.consumers is not None


def _names(expected: Expected) -> set[str]:
    return {each.name for each in expected.queues}


async def _looked_at(queue: QueueFacts, administration: Administration) -> QueueFacts:
    try:
        look = await administration.look(queue.name)
    except DeclarationRefused:  # one connection's own, or not for this user
        return queue
    if look is None:
        return queue
    if look.silent:
        return replace(queue, ready=None, unacked=None, consumers=None)
    return replace(queue, ready=look.messages, consumers=look.consumers)


async def _if_allowed(asked: Awaitable[list[T]]) -> tuple[T, ...] | None:
    try:
        return tuple(await asked)
    except NotAllowed:
        return None


def _figures(name: str, depth: QueueDepth | None, look: QueueLook | None) -> QueueFigures:
    # A passive look counts what is ready alone, and so does the depth: what is in hand is told by nobody.
    if look is not None and look.silent:
        return QueueFigures(name=name)
    return QueueFigures(
        name=name,
        ready=depth.ready if depth else 0,
        delayed=depth.delayed if depth else 0,
        consumers=look.consumers if look else None,
    )


def _without(error: Exception) -> Finding:
    remedy = getattr(error, "remedy", "")
    return warn("management", f"{error}: what AMQP does not tell is not checked", remedy)
