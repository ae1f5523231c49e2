"""Messages that the broker has taken back often.

A quorum queue counts every message that is given back, and with a delivery limit (RabbitMQ 4: 20, unless the queue
says otherwise) drops or dead-letters the one that was given back too often. AMQP does not tell the limit. So a
message that comes near the usual one is not given back while its receiver lives: it stays in hand, and is handed
out again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import structlog

from redrive.transports.rabbitmq import properties as props
from redrive.transports.rabbitmq import table as tables
from redrive.transports.rabbitmq.settling import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.transports import Delivery

log = structlog.get_logger("redrive.rabbitmq")

OFTEN = 10
"""Half of what RabbitMQ 4 allows: what is left is for processes that stop."""
_AGAIN = 5.0
_COUNT = b"x-delivery-count"


class OftenReturned(Receipt):
    """Of a message that is given back only if there is no other way."""

    __slots__ = ()


def times_returned(properties: bytes) -> int:
    """As the broker has counted; 0 where it does not count."""
    try:
        table = props.glance(properties).table
        found = [] if table is None else tables.entries(table)
        counts = [tables.value_of(entry.value) for entry in found if entry.name == _COUNT]
    except ValueError:
        return 0
    return next((count for count in counts if isinstance(count, int)), 0)


class Returns:
    """Knows the queues whose messages are taken back often, and tells each of them once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def weighed(self, receipt: Receipt, properties: bytes, queue: str) -> Receipt:
        """The receipt that tells how the message may be given back."""
        times = times_returned(properties)
        if times < OFTEN:
            return receipt
        if queue not in self._told:
            self._told.add(queue)
            log.error(
                "messages of this queue were given back often: one with a delivery limit may drop them",
                queue=queue,
                times=times,
                remedy="see `redrive doctor`; a policy delivery-limit -1 or a dead-letter exchange keeps them",
            )
        return OftenReturned(receipt.tags, receipt.tag)


class Held:
    """Deliveries of one receiver that wait in hand until they are handed out again; `wake` is called then."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._held: deque[Delivery] = deque()
        self._due = 0

    def add(self, delivery: Delivery) -> None:
        """Once, however often it is given back meanwhile."""
        if any(each.receipt is delivery.receipt for each in self._held):
            return
        self._held.append(delivery)
        asyncio.get_running_loop().call_later(_AGAIN, self._one_is_due)

    @property
    def due(self) -> bool:
        return self._due > 0

    def next(self) -> Delivery:
        """Only if one is due."""
        self._due -= 1
        return self._held.popleft()

    def give_back(self) -> None:
        """All of them, the latest first: each takes its old place before the one behind it."""
        while self._held:
            receipt: Receipt = self._held.pop().receipt
            if receipt.tags.holds(receipt.tag):
                receipt.tags.reject(receipt.tag, requeue=True)

    def _one_is_due(self) -> None:
        if self._due < len(self._held):
            self._due += 1
            self._wake()
