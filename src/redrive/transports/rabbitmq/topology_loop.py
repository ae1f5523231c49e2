"""S4's native loop: queue, dead-letter exchange, `{queue}.deadletter` with a TTL, back; then `{queue}.limbu`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from redrive.transports import Names, filled_with
from redrive.transports.delays import rung
from redrive.transports.rabbitmq.queue_arguments import DeadLetterTarget, queue_arguments
from redrive.transports.rabbitmq.topology import (
    BindingSpec,
    ExchangeSpec,
    Extras,
    QueueSpec,
    Route,
    Topology,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Loop(msgspec.Struct, frozen=True):
    """How long a rejected message waits, in seconds, and how often."""

    ttl: float = 600.0
    cycles: int = 3

    @property
    def milliseconds(self) -> int:
        return round(self.ttl * 1e3)


class TtlLoop(Topology, frozen=True, kw_only=True):
    """Both exchanges route by the name of the queue. Quorum queues name that key for their dead letters: a message
    that was sent to several queues at once (CC, BCC) would else be dead-lettered to all of them. Classic ones are
    as S4 declares them, so that its queues match: a message keeps the key it came with. `route` tells the way into
    the loop, for by the default exchange no message would find its way out of it.

    A retry with another delay than the loop's waits in a delay queue, `{queue}.deadletter.5000`.
    """

    exchange: str
    dead_letter_exchange: str
    loops: Mapping[str, Loop] = msgspec.field(default_factory=dict)

    templates: ClassVar[Names] = Names(retry="{queue}.deadletter", dead="{queue}.limbu")
    rejects: ClassVar[bool] = True

    def loop(self, queue: str) -> Loop:
        return self.loops.get(queue, Loop())

    def waiting(self, queue: str, delay: float) -> QueueSpec:
        if round(delay * 1e3) == self.loop(queue).milliseconds:
            return self.spec(self.names.retry_of(queue))
        return self._delay_queue(queue, rung(delay))

    def all_waiting(self, queue: str) -> tuple[str, ...]:
        return self.names.retry_of(queue), *super().all_waiting(queue)

    def home_of_waiting(self, name: str) -> str | None:
        home = filled_with(self.names.retry, name)
        return super().home_of_waiting(name) if home is None else home

    def spec(self, name: str) -> QueueSpec:
        home = filled_with(self.names.retry, name)
        if home is None:
            return super().spec(name)
        ttl, back = self.loop(home).milliseconds, DeadLetterTarget(self.exchange, self._key(home))
        arguments = queue_arguments(self.queue_type or "quorum", self.version, ttl=ttl, dead_letters=back)
        return QueueSpec(name, arguments)

    def extras(self, name: str) -> Extras:
        back, away = ExchangeSpec(self.exchange), ExchangeSpec(self.dead_letter_exchange)
        home = filled_with(self.names.retry, name)
        if home is not None:
            return Extras((back, away), bindings=(BindingSpec(self.dead_letter_exchange, name, home),))
        if self.names.home_of_dead(name) is not None or self.home_of_waiting(name) is not None:
            return Extras()
        return Extras((back, away), bindings=(BindingSpec(self.exchange, name, name),))

    def route(self, name: str) -> Route:
        home = filled_with(self.names.retry, name)
        return super().route(name) if home is None else Route(self.dead_letter_exchange, home)

    def _standing(self, queue: str) -> Iterator[tuple[str, str]]:
        yield self.names.dead_of(queue), "limbo"
        yield self.names.retry_of(queue), self._wait_role(self.names.retry_of(queue))
        yield queue, "messages"

    def _exchange_role(self, exchange: ExchangeSpec) -> str:
        return "messages" if exchange.name == self.exchange else "rejected messages"

    def _arguments(self, name: str) -> dict[str, Any]:
        if self.names.home_of_dead(name) is not None:
            return queue_arguments(self.queue_type or "quorum", self.version)
        return queue_arguments(
            self.queue_type or "quorum",
            self.version,
            dead_letters=DeadLetterTarget(self.dead_letter_exchange, self._key(name)),
            max_priority=self.max_priority,
        )

    def _key(self, queue: str) -> str | None:
        return None if self.queue_type == "classic" else queue
