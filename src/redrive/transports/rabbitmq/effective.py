"""What holds for a queue when its arguments and its policies are weighed as the broker weighs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from redrive.transports.rabbitmq.broker_facts import OverviewFacts, QueueFacts

AT_LEAST_ONCE = "at-least-once"
REJECT_PUBLISH = "reject-publish"
_LIMITED_SINCE = (4, 0)
_DEFAULT_LIMIT = 20


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    dead_letter_exchange: str | None = None
    """The empty one is the default exchange; None: no dead-lettering."""
    dead_letter_key: str | None = None
    """None: a dead letter keeps the routing key it was published with."""
    asks_at_least_once: bool = False
    overflow: str = "drop-head"
    message_ttl: int | None = None
    """Milliseconds, as is `expires`."""
    expires: int | None = None
    max_length: int | None = None
    max_bytes: int | None = None
    delivery_limit: int | None = None
    """None: no limit."""
    is_quorum: bool = False

    @property
    def at_least_once(self) -> bool:
        """In force. Quorum queues fall back to at-most-once unless a full queue refuses publishers."""
        return self.is_quorum and self.asks_at_least_once and self.overflow == REJECT_PUBLISH

    @property
    def is_limited(self) -> bool:
        return self.max_length is not None or self.max_bytes is not None


def effective(queue: QueueFacts, overview: OverviewFacts) -> Effective:
    is_quorum = queue.type == "quorum"
    return Effective(
        dead_letter_exchange=_text(_argument_first(queue, "dead-letter-exchange")),
        dead_letter_key=_text(_argument_first(queue, "dead-letter-routing-key")),
        asks_at_least_once=_argument_first(queue, "dead-letter-strategy") == AT_LEAST_ONCE,
        overflow=_text(_overflow(queue, is_quorum=is_quorum)) or "drop-head",
        message_ttl=_smallest(queue, "message-ttl"),
        expires=_smallest(queue, "expires"),
        max_length=_smallest(queue, "max-length"),
        max_bytes=_smallest(queue, "max-length-bytes"),
        delivery_limit=_delivery_limit(queue, overview) if is_quorum else None,
        is_quorum=is_quorum,
    )


def waits(queue: QueueFacts, rules: Effective) -> bool:
    """Its messages go on when their time is over, and nobody takes them before."""
    return rules.message_ttl is not None and rules.dead_letter_exchange is not None and not queue.consumers


def name_without_delay(queue: QueueFacts, rules: Effective) -> str:
    """`orders_retry` of `orders_retry.5000` where messages wait for 5 s; every other queue's own name."""
    return queue.name.removesuffix(f".{rules.message_ttl}") if waits(queue, rules) else queue.name


def _argument_first(queue: QueueFacts, name: str) -> Any:
    argument = queue.arguments.get(f"x-{name}")
    return queue.policy.get(name) if argument is None else argument


def _overflow(queue: QueueFacts, *, is_quorum: bool) -> Any:
    """Here the policy wins on quorum queues, and only here."""
    told = queue.policy.get("overflow")
    return told if is_quorum and told is not None else _argument_first(queue, "overflow")


def _smallest(queue: QueueFacts, name: str) -> int | None:
    return min(_numbers(queue, name), default=None)


def _delivery_limit(queue: QueueFacts, overview: OverviewFacts) -> int | None:
    if queue.delivery_limit is not None:
        limit = queue.delivery_limit
    else:
        told = _numbers(queue, "delivery-limit")
        release = overview.release
        default = _DEFAULT_LIMIT if release is not None and release >= _LIMITED_SINCE else -1
        weigh = max if any(each < 0 for each in told) else min  # -1, which means none, beats nothing but itself
        limit = weigh(told, default=default)
    return limit if limit >= 0 else None


def _numbers(queue: QueueFacts, name: str) -> list[int]:
    told = (queue.arguments.get(f"x-{name}"), queue.policy.get(name))
    return [each for each in told if isinstance(each, int) and not isinstance(each, bool)]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
