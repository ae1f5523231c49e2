"""Bare loops around confluent-kafka: record by record with `poll`, or in batches with `consume`.

Both commit what they have handled ten times a second, without waiting for the answer. A failing record is copied
to another topic with its error in a header; before a commit all copies have been acknowledged by the broker.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from bench.peers.kafka_habits import AT_ONCE, COMMIT_EVERY
from bench.peers.run import OrderFailed, Run

_WAIT = 0.1
_PATIENCE = 30.0


class Loop:
    def __init__(self, run: Run) -> None:
        self._take, self._dead = run.take, run.task.dead
        servers = {"bootstrap.servers": run.task.url}
        group = {"group.id": run.task.group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self.consumer = Consumer(servers | group)
        self.consumer.subscribe([run.task.queue])
        self._letters = Producer(servers)
        self._commit_at = 0.0

    def handle(self, record: Any) -> None:
        if record.error() is not None:
            raise KafkaException(record.error())
        try:
            self._take()
        except OrderFailed as error:
            headers: list[tuple[str, str | bytes | None]] = [("error", repr(error).encode())]
            self._letters.produce(
                self._dead, record.value(), record.key(), headers=headers, on_delivery=_delivered
            )
            self._letters.poll(0)

    def commit_now_and_then(self) -> None:
        now = time.monotonic()
        if now < self._commit_at:
            return
        self._commit_at = now + COMMIT_EVERY
        assert self._letters.flush(_PATIENCE) == 0, "dead letters are not acknowledged"
        try:
            self.consumer.commit(asynchronous=True)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:  # noqa: SLF001  librdkafka's own codes begin so
                raise


def poll(run: Run) -> None:
    loop = Loop(run)
    while True:
        record = loop.consumer.poll(_WAIT)
        if record is not None:
            loop.handle(record)
        loop.commit_now_and_then()


def consume(run: Run) -> None:
    loop = Loop(run)
    while True:
        for record in loop.consumer.consume(AT_ONCE, _WAIT):
            loop.handle(record)
        loop.commit_now_and_then()


def _delivered(error: KafkaError | None, _record: object) -> None:
    if error is not None:
        raise KafkaException(error)
