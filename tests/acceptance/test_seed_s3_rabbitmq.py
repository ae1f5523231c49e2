"""S3's checkout on a real broker, with its exact JSON. On one side our producer and worker, on the other a plain
AMQP client that stands for the Laravel services: it declares the queues as they do, writes and reads the same.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App, DeadLetter, Message
from support.at_work import settings_on, working
from support.desk import Desk
from support.patience import until
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redrive.settings import Settings

NEW = b"""{
    "message_id": "79a50895-f251-455f-9a5c-a3abbf83d707",
    "timestamp": "2026-02-28T22:53:42+00:00",
    "version": "1.0",
    "source": "checkout-service",
    "queue": "orders",
    "data": {
        "order_id": 123,
        "customer_id": 456,
        "total": 299.9
    },
    "metadata": {
        "priority": "high",
        "correlation_id": "abc-123"
    },
    "error": null,
    "retry_count": 0
}"""
"""As S3 prints a message just created."""
ERROR = b"""{
        "message": "Connection refused",
        "code": "500",
        "trace": "PDOException: SQLSTATE[HY000] [2002]..."
    }"""
FAILED = NEW.replace(b'"error": null', b'"error": ' + ERROR).replace(b'"retry_count": 0', b'"retry_count": 1')
"""As S3 prints it after its first failure, in `orders_retry`."""
FIELDS = ["message_id", "timestamp", "version", "source", "queue", "data", "metadata", "error", "retry_count"]


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        for queue in ("orders", "orders_retry", "orders_dlq"):
            client.declare(queue)
        yield client


def s3_settings(url: str, folder: Path, *, delay: str = "100ms") -> Settings:
    return settings_on(
        url,
        folder,
        rabbitmq={"topology": "plain-queues", "declare": "missing"},
        dead_letters={"sink": "queue"},
        retry={"delays": [delay], "jitter": "none"},
    )


class ProcessOrder:
    max_retries = 5

    def __init__(self, *, fails: bool = True) -> None:
        self.fails = fails
        self.processed: list[Message] = []
        self.dead: list[DeadLetter] = []

    def process(self, message: Message) -> None:
        self.processed.append(message)
        if self.fails:
            raise ConnectionRefusedError("Connection refused")

    def on_dead_letter(self, letter: DeadLetter) -> None:
        self.dead.append(letter)


def checkout(handler: ProcessOrder) -> App:
    app = App("checkout")
    app.register("orders", handler)
    return app


def split(body: bytes) -> tuple[bytes, dict[str, Any]]:
    """The bytes before `error`, and all of it read."""
    return body[: body.index(b'"error"')], json.loads(body)


async def test_s3_what_our_producer_writes_the_other_service_reads_as_printed(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    app = App("checkout")
    async with working(app, s3_settings(rabbitmq_url, tmp_path)):
        sent = await app.send(
            "orders",
            {"order_id": 123, "customer_id": 456, "total": 299.90},
            source="checkout-service",
            metadata={"priority": "high", "correlation_id": "abc-123"},
        )
    got = await other.next("orders")

    told, printed = json.loads(got.body), json.loads(NEW)
    assert list(told) == FIELDS
    assert told == printed | {"message_id": sent.id, "timestamp": told["timestamp"]}
    assert (got.properties.message_id, got.properties.content_type) == (sent.id, "application/json")
    assert (got.properties.correlation_id, got.properties.app_id) == ("abc-123", "checkout-service")
    assert got.properties.delivery_mode == 2


async def test_s3_after_its_first_failure_the_other_services_message_lies_in_orders_retry_as_printed(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    handler = ProcessOrder()
    async with working(checkout(handler), s3_settings(rabbitmq_url, tmp_path, delay="1s")):
        other.publish("orders", NEW)
        await until(lambda: handler.processed)
        await until(lambda: other.count("orders_retry.1000"))  # confirmed there: it is behind us
    got = await other.next("orders_retry")

    before, told = split(got.body)
    assert before == split(FAILED)[0]  # to the byte, its indentation included
    assert list(told) == FIELDS
    assert list(told["error"]) == ["message", "code", "trace"]
    assert told["error"]["message"] == "Connection refused"
    assert (told["error"]["code"], told["retry_count"]) == ("ConnectionRefusedError", 1)
    assert told["error"]["trace"].endswith("ConnectionRefusedError: Connection refused")
    assert got.body.endswith(b'"retry_count": 1\n}')


async def test_s3_a_retry_of_the_other_service_goes_on_where_it_stopped(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    handler = ProcessOrder()
    other.publish("orders_retry", FAILED)
    async with working(checkout(handler), s3_settings(rabbitmq_url, tmp_path)):
        await until(lambda: other.count("orders_dlq"))
    got = await other.next("orders_dlq")

    assert [message.retry_count for message in handler.processed] == [1, 2, 3, 4]
    assert {message.body for message in handler.processed} == {FAILED}  # the body never changes (G2)
    before, told = split(got.body)
    assert before == split(FAILED)[0]
    assert (told["retry_count"], told["error"]["message"]) == (5, "Connection refused")
    assert len(handler.dead) == 1
    assert other.count("orders") == other.count("orders_retry") == 0


async def test_s3_our_retry_is_taken_by_the_other_service_and_comes_back_with_its_count(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    failing = ProcessOrder()
    async with working(checkout(failing), s3_settings(rabbitmq_url, tmp_path, delay="1s")):
        other.publish("orders", NEW)
        await until(lambda: other.count("orders_retry.1000"))
    taken = json.loads((await other.next("orders_retry")).body)
    taken["retry_count"] += 1  # it failed over there as well
    taken["error"] = json.loads(ERROR)
    other.publish("orders_retry", json.dumps(taken).encode())
    succeeding = ProcessOrder(fails=False)
    async with working(checkout(succeeding), s3_settings(rabbitmq_url, tmp_path)):
        await until(lambda: succeeding.processed)

    [message] = succeeding.processed
    assert (message.id, message.retry_count) == ("79a50895-f251-455f-9a5c-a3abbf83d707", 2)
    assert message.source == "checkout-service"
    assert message.data == {"order_id": 123, "customer_id": 456, "total": 299.9}
    assert message.error is not None
    assert message.error.code == "500"


@pytest.fixture
def desk(tmp_path: Path, rabbitmq_url: str) -> Desk:
    (tmp_path / "redrive.toml").write_text(
        f'[broker]\nurl = "{rabbitmq_url}"\n[broker.rabbitmq]\ntopology = "plain-queues"\n'
    )
    return Desk(tmp_path)


def test_s3_reprocess_gives_the_other_services_dead_letters_back_as_new(desk: Desk, other: PlainClient) -> None:
    dead = FAILED.replace(b'"retry_count": 1', b'"retry_count": 5')
    for number in range(3):
        other.publish("orders_dlq", dead.replace(b"79a5", b"%04d" % number), message_id=f"m-{number}")

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes", "--no-store")

    assert ended.code == 0, ended.err
    assert "Reprocessed 3 messages" in ended.out
    arrived = [other.get("orders") for _ in range(3)]
    assert [got.body for got in arrived if got] == [NEW.replace(b"79a5", b"%04d" % number) for number in range(3)]
    assert [got.properties.message_id for got in arrived if got] == ["m-0", "m-1", "m-2"]
    assert other.count("orders_dlq") == 0
    assert not (desk.folder / "redrive.db").exists()


def test_s3_reprocess_takes_only_queues_whose_name_ends_with_dlq(desk: Desk, other: PlainClient) -> None:
    other.publish("orders_retry", FAILED)
    ended = desk.redrive("reprocess", "--queue", "orders_retry", "--yes", "--no-store")
    assert ended.code != 0
    assert "not the name of a dead-letter queue" in ended.err
    assert other.count("orders_retry") == 1


def test_s3_an_empty_dead_letter_queue_says_so(desk: Desk, other: PlainClient) -> None:
    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes", "--no-store")
    assert (ended.code, other.count("orders_dlq")) == (0, 0)
    assert "Nothing to reprocess: orders_dlq is empty." in ended.out


async def test_s3_the_whole_way_through_orders_orders_retry_and_orders_dlq_and_back(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, desk: Desk
) -> None:
    handler = ProcessOrder()
    async with working(checkout(handler), s3_settings(rabbitmq_url, tmp_path)):
        other.publish("orders", NEW)
        await until(lambda: other.count("orders_dlq"))
    assert [message.retry_count for message in handler.processed] == [0, 1, 2, 3, 4]
    ended = await asyncio.to_thread(desk.redrive, "reprocess", "--queue", "orders_dlq", "--yes", "--no-store")
    assert "Reprocessed 1 message" in ended.out
    assert (await other.next("orders")).body == NEW
