"""S2's topology: a dead-letter exchange of the app, `dlx.<app>`, that routes to `dlq.{queue}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from redrive.transports import Names, filled_with
from redrive.transports.rabbitmq.queue_arguments import DeadLetterTarget, queue_arguments
from redrive.transports.rabbitmq.topology import (
    DEFAULT_EXCHANGE,
    BindingSpec,
    ExchangeSpec,
    Extras,
    Topology,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPIRED = ".expired"


class DeadLetterExchange(Topology, frozen=True, kw_only=True):
    """What the broker itself dead-letters goes to `dlq.{queue}` too. Each queue has a routing key of its own: with
    one key for all, every letter would go to every dead-letter queue. Retries wait in delay queues.
    """

    exchange: str
    routing_key: str = "deadletter"
    automatic: bool = True
    """The queues name the exchange in their arguments. If not, it is there for those who publish to it."""
    dead_letter_ttl: float | None = None
    """Seconds. What is older leaves `dlq.{queue}` for `dlq.{queue}.expired`: never away (SD8)."""

    templates: ClassVar[Names] = Names(dead="dlq.{queue}")

    def extras(self, name: str) -> Extras:
        exchange = ExchangeSpec(self.exchange)
        home = self._home_of_dead(name)
        if home is not None:
            expired = () if self.dead_letter_ttl is None else (self.spec(name + EXPIRED),)
            return Extras((exchange,), expired, (BindingSpec(self.exchange, name, self._key(home)),))
        if self._expired(name) or self.home_of_waiting(name) is not None:
            return Extras()
        return Extras((exchange,))

    def _standing(self, queue: str) -> Iterator[tuple[str, str]]:
        dead = self.names.dead_of(queue)
        if self.dead_letter_ttl is not None:
            yield dead + EXPIRED, "expired dead letters"
        yield dead, "dead letters"
        yield queue, "messages"

    def _arguments(self, name: str) -> dict[str, Any]:
        kind = self.queue_type or "quorum"
        if self._expired(name):
            return queue_arguments(kind, self.version)
        if self._home_of_dead(name) is not None:
            return self._dead_arguments(name)
        letters = DeadLetterTarget(self.exchange, self._key(name)) if self.automatic else None
        return queue_arguments(kind, self.version, dead_letters=letters, max_priority=self.max_priority)

    def _dead_arguments(self, name: str) -> dict[str, Any]:
        kind = self.queue_type or "quorum"
        if self.dead_letter_ttl is None:
            return queue_arguments(kind, self.version)
        ttl, away = round(self.dead_letter_ttl * 1e3), DeadLetterTarget(DEFAULT_EXCHANGE, name + EXPIRED)
        return queue_arguments(kind, self.version, ttl=ttl, dead_letters=away)

    def _expired(self, name: str) -> bool:
        """Asked first: `dlq.orders.expired` could be the dead-letter queue of `orders.expired` as well."""
        return self.dead_letter_ttl is not None and filled_with(self.names.dead + EXPIRED, name) is not None

    def _home_of_dead(self, name: str) -> str | None:
        return None if self._expired(name) else self.names.home_of_dead(name)

    def _key(self, queue: str) -> str:
        return f"{self.routing_key}.{queue}"
