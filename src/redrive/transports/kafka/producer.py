"""Publishes records, each durable on all in-sync replicas when it is reported; idempotent, so that repetitions of
librdkafka make no copies.

librdkafka reports in a thread of ours, many records at once; they are handed to the event loop together.

Errors that it calls fatal (the broker has lost track of our numbers, or forbids idempotence) end a producer: all
that is under way is reported as failed, and whoever sends next needs a new one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from redrive.errors import PublishRefused, Unreachable
from redrive.transports.kafka.client_errors import away, error_in, not_published

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from redrive.transports.kafka.record import Record

    Done = Callable[[Exception | None], None]

log = logging.getLogger("redrive.kafka.client")

_POLL = 0.1
_FLUSH = 5.0
_ANY_PARTITION = -1


class RecordProducer:
    """For one event loop. `timeout`: seconds in which a record must have been reported."""

    def __init__(self, settings: Mapping[str, Any], *, timeout: float) -> None:
        self._settings = {
            **settings,
            "enable.idempotence": True,
            "acks": "all",
            "partitioner": "murmur2_random",  # as Java's clients have it: one key, one partition, whoever sends
            "linger.ms": 1,
            "topic.metadata.propagation.max.ms": 10_000,  # for one just made, of which not every broker knows
            "message.max.bytes": 1_000_000_000,  # the broker decides
            "delivery.timeout.ms": round(timeout * 1000),
        }
        self.broken = False
        """It will send nothing any more."""
        self._loop = asyncio.get_running_loop()
        self._reported: deque[tuple[Done, Exception | None]] = deque()
        self._told = False
        self._ending = threading.Event()
        self._producer = Producer(self._settings, logger=log)
        self._thread = threading.Thread(target=self._serve, name="redrive-kafka-producer", daemon=True)
        self._thread.start()

    async def send(self, topic: str, record: Record, *, partition: int | None = None) -> None:
        """Durable when it returns."""
        landed: asyncio.Future[None] = self._loop.create_future()

        def done(error: Exception | None) -> None:
            if landed.done():
                return
            if error is None:
                landed.set_result(None)
            else:
                landed.set_exception(error)

        self.begin(topic, record, done, partition=partition)
        await landed

    def begin(self, topic: str, record: Record, done: Done, *, partition: int | None = None) -> None:
        """`done` is called in the event loop, once, unless this raises."""
        if self._ending.is_set():
            raise Unreachable("the transport is closed", remedy="open a new one")

        def reported(error: Any, _: object) -> None:
            self._report(done, None if error is None else not_published(error, topic))

        try:
            self._producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=_ANY_PARTITION if partition is None else partition,
                on_delivery=reported,
            )
        except BufferError:
            raise away("too many records wait to be sent") from None
        except KafkaException as raised:
            raise not_published(error_in(raised), topic) from None
        except (TypeError, ValueError) as error:
            raise PublishRefused(str(error), permanent=True, remedy="change the header") from None

    async def close(self) -> None:
        """What is under way has a moment to arrive."""
        self._ending.set()
        await asyncio.to_thread(self._thread.join)
        self._hand_over()

    def _serve(self) -> None:
        try:
            while not self._ending.is_set():
                self._producer.poll(_POLL)
            self._producer.flush(_FLUSH)
        except KafkaException as raised:  # a fatal error, once; what is under way is reported all the same
            log.error("the producer has to be replaced: %s", error_in(raised).str())  # noqa: TRY400  it says all
            self.broken = True
        self._producer.purge()
        self._producer.flush(_FLUSH)

    def _report(self, done: Done, error: Exception | None) -> None:
        self._reported.append((done, error))
        if not self._told:
            self._told = True
            self._loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        self._told = False  # before they are taken: whatever comes now tells again
        while self._reported:
            done, error = self._reported.popleft()
            done(error)
