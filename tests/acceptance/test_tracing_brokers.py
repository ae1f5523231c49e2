"""The trace of another program's message on real brokers: kept through retry, dead letter and redrive."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from redrive import App, Message, Retry
from redrive.dead_letter import Status
from redrive.headers import header
from redrive.transports.kafka.transport import KafkaTransport
from support.patience import until
from support.plain_client import PlainClient
from support.traced import PRODUCER, TRACE, TRACEPARENT, Traced, facts, parent_of, trace_of
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.dead_letter import DeadLetter
    from support.kafka_server import KafkaServer


def failing_twice(queue: str) -> tuple[App, list[Message]]:
    app, seen = App("shop", retry=Retry(2, ["50ms"])), []

    @app.handler(queue, name="charge")
    async def charge(message: Message) -> None:
        seen.append(message)
        if len(seen) <= 2:
            raise ConnectionError("nobody there")

    return app, seen


async def dead_and_back(shop: Workshop) -> DeadLetter:
    """The letter as it was before it was sent back, and confirmed."""
    letters: list[DeadLetter] = await until(partial(shop.letters, status=Status.PENDING))
    await shop.redrive(*letters)
    await until(partial(shop.letters, status=Status.RESOLVED))
    await shop.stop()
    return letters[0]


def check_story(traced: Traced) -> None:
    steps = [span.name.split()[0] for span in traced.exported()]
    assert steps == [
        *("receive", "process", "retry"),
        *("receive", "process", "dead_letter"),
        "redrive",
        *("receive", "process", "confirm"),
    ]
    [redrive] = [span for span in traced.exported() if span.name.startswith("redrive")]
    assert [(link.context.trace_id, link.context.span_id) for link in redrive.links] == [(TRACE, PRODUCER)]
    received = [span for span in traced.exported() if span.name.startswith("receive")]
    assert [parent_of(span) for span in received] == [PRODUCER] * 3
    assert {trace_of(span) for span in traced.exported() if span is not redrive} == {TRACE}


async def test_on_rabbitmq_a_message_of_another_program_stays_in_its_trace(
    rabbitmq_url: str, tmp_path: Path
) -> None:
    traced = Traced()
    app, seen = failing_twice("orders")
    with PlainClient(rabbitmq_url) as other:
        other.declare("orders")
        other.publish("orders", b"{}", message_id="m-1", headers={"traceparent": TRACEPARENT, "tracestate": "a=1"})
    async with workshop(app, tmp_path, broker_url=rabbitmq_url, spans=traced.spans) as shop:
        letter = await dead_and_back(shop)

    check_story(traced)
    for message in (letter.message, *seen):
        kept = (header(message.headers, "traceparent"), header(message.headers, "tracestate"))
        assert kept == (TRACEPARENT, "a=1")
    tags = [facts(span)["messaging.rabbitmq.message.delivery_tag"] for span in traced.exported("process orders")]
    assert all(isinstance(tag, int) for tag in tags)
    assert len(tags) == 3


async def test_on_kafka_a_record_of_another_program_stays_in_its_trace(kafka: KafkaServer, tmp_path: Path) -> None:
    traced, queue = Traced(), kafka.new_topic(partitions=1)
    app, seen = failing_twice(queue)
    producer = Producer({"bootstrap.servers": kafka.address})
    producer.produce(queue, b"{}", key=b"canary", headers=[("traceparent", TRACEPARENT.encode())])
    assert producer.flush(30) == 0
    opening = partial(KafkaTransport, group=queue)
    async with workshop(app, tmp_path, broker_url=kafka.url, opening=opening, spans=traced.spans) as shop:
        letter = await dead_and_back(shop)

    check_story(traced)
    for message in (letter.message, *seen):
        assert header(message.headers, "traceparent") == TRACEPARENT.encode()
    first, *others = [span for span in traced.exported() if span.name.startswith("process")]
    place = {"messaging.destination.name": queue, "messaging.destination.partition.id": "0"}
    place |= {"messaging.consumer.group.name": queue}
    assert facts(first).items() >= (place | {"messaging.kafka.offset": 0}).items()
    for span in others:  # a redrive too: it is for this group alone
        assert str(facts(span)["messaging.destination.name"]).startswith(f"{queue}_retry")
    assert "canary" not in "".join(span.to_json() for span in traced.exported())
