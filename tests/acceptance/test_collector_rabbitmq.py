"""What a real RabbitMQ dead-lettered for somebody else comes into the store, and goes back from there."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App
from redrive.access import local
from redrive.actions import Actions
from redrive.availability import Availability
from redrive.clock import SystemClock
from redrive.collector import Collector
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from redrive.stores import open_store
from redrive.transports import Names, open_transport
from support.dead_letters import foreign
from support.desk import Desk
from support.dying import Elsewhere
from support.patience import until
from support.rabbitmq_server import vhost_of
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from redrive.dead_letter import DeadLetter, Entry, Recorded
    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport
    from support.rabbitmq_server import PrivateRabbit, RabbitServer


@pytest.fixture
def elsewhere(rabbitmq: RabbitServer, rabbitmq_url: str) -> Elsewhere:
    return Elsewhere(rabbitmq, rabbitmq_url)


@asynccontextmanager
async def opened(folder: Path, url: str) -> AsyncIterator[tuple[DeadLetterStore, Transport]]:
    store, transport = open_store(f"sqlite:///{folder}/redrive.db"), open_transport(url, names=Names())
    try:
        yield store, transport
    finally:
        await transport.close()
        await store.close()


def collector(transport: Transport, store: Any, *queues: str) -> Collector:
    clock = SystemClock()
    return Collector(
        queues or ("orders_dlq",),
        transport=transport,
        store=store,
        availability=Availability(clock=clock, random=random.random),
        clock=clock,
    )


async def collect(folder: Path, url: str, *queues: str) -> list[DeadLetter]:
    async with opened(folder, url) as (store, transport):
        await collector(transport, store, *queues).run(once=True)
        found = await store.find(LetterQuery(limit=500))
        return [letter for each in found if (letter := await store.get(each.id))]


async def test_a_rejected_message_is_a_letter_of_its_queue_byte_for_byte(
    tmp_path: Path, rabbitmq_url: str, elsewhere: Elsewhere
) -> None:
    elsewhere.make_with_dead_letters("orders", "orders_dlq")
    elsewhere.publish("orders", b"\x00\xff{", "m-1", tenant="a", nested={"deep": [1, 2.5]})
    elsewhere.reject("orders")

    [letter] = await collect(tmp_path, rabbitmq_url)

    assert (letter.status, letter.queue, letter.type) == (Status.PENDING, "orders", "rabbitmq.rejected")
    assert (letter.message.id, letter.message.body, letter.attempts) == ("m-1", b"\x00\xff{", 1)
    headers = dict(letter.message.headers)
    assert (headers["tenant"], headers["nested"]) == ("a", {"deep": [1, 2.5]})
    assert headers["x-death"][0]["reason"] == "rejected"  # kept: it is what was found
    assert letter.first_attempt_at == headers["x-death"][0]["time"]
    assert elsewhere.take("orders_dlq") == []


@pytest.mark.parametrize(("arguments", "reason"), [({"message_ttl": 1}, "expired"), ({"max_length": 1}, "maxlen")])
async def test_what_expired_and_what_was_pushed_out_say_so(
    tmp_path: Path, rabbitmq_url: str, elsewhere: Elsewhere, arguments: dict[str, Any], reason: str
) -> None:
    elsewhere.make_with_dead_letters("orders", "limbo", **arguments)
    for number in range(2):
        elsewhere.publish("orders", b"{}", f"m-{number}")

    async with opened(tmp_path, rabbitmq_url) as (store, transport):
        collecting = collector(transport, store, "limbo")
        running = asyncio.create_task(collecting.run())
        await until(lambda: collecting.collected["limbo"].new)
        collecting.stop()
        await running
        letter = (await store.find(LetterQuery()))[0]

    assert (letter.queue, letter.type, letter.kind) == ("orders", f"rabbitmq.{reason}", "transient")


async def test_what_went_round_in_circles_belongs_to_the_queue_that_rejected_it(
    tmp_path: Path, rabbitmq_url: str, elsewhere: Elsewhere
) -> None:
    """S4: rejected, waits in a queue with a TTL, comes back, and in the end is put aside as it is."""
    elsewhere.make("orders.deadletter", dead_letter_exchange="", dead_letter_routing_key="orders", message_ttl=1)
    elsewhere.make("orders", dead_letter_exchange="", dead_letter_routing_key="orders.deadletter")
    elsewhere.make_with_dead_letters("last", "limbo")
    elsewhere.publish("orders", b"{}", "m-1")
    for _ in range(2):
        await until(lambda: elsewhere.reject_what_is_there("orders"))
    [round_] = await until(lambda: elsewhere.take("orders"))
    elsewhere.publish("limbo", b"{}", "m-1", **round_["properties"]["headers"])

    [letter] = await collect(tmp_path, rabbitmq_url, "limbo")

    assert (letter.queue, letter.attempts) == ("orders", 4)
    assert {failure.type for failure in letter.failures} == {"rabbitmq.rejected", "rabbitmq.expired"}


async def test_it_goes_back_without_what_the_broker_wrote_and_may_come_back_to_itself(
    tmp_path: Path, rabbitmq_url: str, elsewhere: Elsewhere
) -> None:
    elsewhere.make_with_dead_letters("orders", "orders_dlq")
    elsewhere.publish("orders", b"{}", "m-1", tenant="a")
    elsewhere.reject("orders")
    [letter] = await collect(tmp_path, rabbitmq_url)

    async with opened(tmp_path, rabbitmq_url) as (store, transport):
        desk = Actions(store=store, transport=transport, clock=SystemClock(), who=local("somebody"))
        await desk.retry([letter.id])
    elsewhere.reject("orders")
    [dead] = elsewhere.take("orders_dlq")
    assert dead["properties"]["headers"]["tenant"] == "a"
    assert [death["count"] for death in dead["properties"]["headers"]["x-death"]] == [1]  # no older one was kept
    elsewhere.publish("orders_dlq", b"{}", "m-1", **dead["properties"]["headers"])

    [same] = await collect(tmp_path, rabbitmq_url)

    assert (same.id, same.generation, same.status) == (letter.id, 2, Status.PENDING)


async def test_what_nobody_understands_is_quarantined_and_gone_from_the_queue(
    tmp_path: Path, rabbitmq_url: str, elsewhere: Elsewhere
) -> None:
    elsewhere.make("orders_dlq")
    for body in (b"", b"?", b'{"order": 1}'):
        elsewhere.publish("orders_dlq", body, odd=["x-death"])

    letters = await collect(tmp_path, rabbitmq_url)

    assert {letter.message.body for letter in letters} == {b"", b"?", b'{"order": 1}'}
    assert {(letter.status, letter.queue) for letter in letters} == {(Status.QUARANTINED, "orders")}
    assert elsewhere.take("orders_dlq") == []


async def test_the_copy_of_a_letter_that_the_store_has_is_known(tmp_path: Path, rabbitmq_url: str) -> None:
    app = App("shop")

    @app.handler("orders")
    def charge(order: dict[str, int]) -> None:
        raise ValueError(f"no customer {order['number']}")

    async with workshop(app, tmp_path, dead_letters={"sink": "both"}, broker_url=rabbitmq_url) as shop:
        await shop.send("orders", {"number": 1}, {"number": 2})
        await until(lambda: _ready(shop.transport, "orders_dlq", 2))
        await shop.stop()

        collecting = collector(shop.transport, shop.store)
        await collecting.run(once=True)

        assert (collecting.collected["orders_dlq"].new, collecting.collected["orders_dlq"].again) == (0, 2)
        assert [letter.deliveries for letter in await shop.letters()] == [1, 1]


async def _ready(transport: Transport, queue: str, number: int) -> bool:
    depth = (await transport.depths((queue,))).get(queue)
    return depth is not None and depth.ready == number


def test_killed_between_commit_and_acknowledgement_it_is_one_letter(
    tmp_path: Path, rabbitmq_url: str, elsewhere: Elsewhere
) -> None:
    desk = Desk(tmp_path)
    elsewhere.make_with_dead_letters("orders", "orders_dlq")
    for number in range(20):
        elsewhere.publish("orders", b"%d" % number, f"m-{number}")
    elsewhere.reject("orders", 20)
    at = {"REDRIVE_BROKER__URL": rabbitmq_url}

    killed = desk.process("collect", "orders_dlq", "--once", faults="collector.before_ack=kill9:0.3", **at)
    ended = desk.process("collect", "orders_dlq", "--once", "-o", "json", **at)

    assert killed.returncode == -signal.SIGKILL
    assert ended.returncode == 0, ended.stderr
    [row] = json.loads(ended.stdout)
    assert row["again"] >= 1
    listed = json.loads(desk.redrive("list", "-o", "json", "--limit", "100").out)
    assert sorted(letter["message_id"] for letter in listed) == sorted(f"m-{number}" for number in range(20))


def test_s3_reprocess_goes_from_queue_to_queue_with_no_store(
    tmp_path: Path, rabbitmq_url: str, elsewhere: Elsewhere
) -> None:
    desk = Desk(tmp_path)
    elsewhere.make_with_dead_letters("orders", "orders_dlq")
    for number in range(5):
        elsewhere.publish("orders", b"%d" % number, f"m-{number}", tenant="a")
    elsewhere.reject("orders", 5)

    ended = desk.process("reprocess", "--queue", "orders_dlq", "--yes", REDRIVE_BROKER__URL=rabbitmq_url)

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "Reprocessed 5 messages: 5 from the queue orders_dlq\n"
    back = elsewhere.take("orders")
    assert [base64.b64decode(each["payload"]) for each in back] == [b"%d" % number for number in range(5)]
    assert {each["properties"]["message_id"] for each in back} == {f"m-{number}" for number in range(5)}
    assert all(each["properties"]["headers"] == {"tenant": "a"} for each in back)
    assert elsewhere.take("orders_dlq") == []
    assert not (tmp_path / "redrive.db").exists()


def test_s3_an_envelope_of_another_service_goes_back_as_if_it_had_never_failed(
    tmp_path: Path, rabbitmq: RabbitServer, rabbitmq_url: str, elsewhere: Elsewhere
) -> None:
    (tmp_path / "redrive.toml").write_text(
        f'[broker]\nurl = "{rabbitmq_url}"\n[broker.rabbitmq]\ntopology = "plain-queues"\n'
    )
    fresh = {
        "message_id": "m-1",
        "timestamp": "2026-01-01T10:00:00+00:00",
        "version": "1.0",
        "source": "checkout",
        "queue": "orders",
        "data": {"order_id": 123},
        "metadata": {},
        "error": None,
        "retry_count": 0,
    }
    error = {"message": "Connection refused", "code": "500", "trace": "PDOException..."}
    elsewhere.make("orders_dlq")
    elsewhere.publish("orders_dlq", json.dumps({**fresh, "error": error, "retry_count": 3}).encode())
    desk = Desk(tmp_path)

    assert desk.process("collect", "orders_dlq", "--once").returncode == 0
    assert [queue["name"] for queue in rabbitmq.queues(vhost_of(rabbitmq_url))] == ["orders_dlq"]
    [letter] = json.loads(desk.process("list", "-o", "json").stdout)
    assert desk.process("retry", letter["id"], "--yes").returncode == 0

    assert (letter["queue"], letter["type"], letter["attempts"]) == ("orders", "500", 3)
    [back] = elsewhere.take("orders")
    assert json.loads(base64.b64decode(back["payload"])) == fresh


async def test_a_broker_that_is_killed_before_the_acknowledgements_delivers_again_what_is_known_by_then(
    tmp_path: Path, own_rabbitmq: PrivateRabbit
) -> None:
    url = own_rabbitmq.new_vhost()
    Elsewhere(own_rabbitmq, url).make("orders_dlq")
    own_rabbitmq.sync()  # a queue that is gone after the kill would be made anew by the next one who sends
    async with opened(tmp_path, url) as (store, transport):
        for number in range(50):
            await transport.send(foreign(b"%d" % number, queue="orders_dlq"), queue="orders_dlq")
        slow = Slow(store)
        collecting = collector(transport, slow)
        running = asyncio.create_task(collecting.run())
        await until(lambda: slow.asked == 50)
        await asyncio.to_thread(own_rabbitmq.kill)
        slow.goes_on.set()
        await until(lambda: _all_there(store, 50))
        await asyncio.to_thread(own_rabbitmq.start)
        await transport.send(foreign(b"later", queue="orders_dlq"), queue="orders_dlq")
        await until(lambda: _all_there(store, 51), within=60)
        await until(lambda: collecting.collected["orders_dlq"].settled == 101, within=60)
        assert await _nothing_in(transport, "orders_dlq")
        collecting.stop()
        await running

    assert collecting.collected["orders_dlq"].again == 50


class Slow:
    """A real store that takes its time for what it is asked to record."""

    def __init__(self, store: DeadLetterStore) -> None:
        self._store = store
        self.asked = 0
        self.goes_on = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def record_together(self, entries: Sequence[Entry]) -> list[tuple[str, Recorded]]:
        self.asked += len(entries)
        await self.goes_on.wait()
        return await self._store.record_together(entries)


async def _all_there(store: DeadLetterStore, number: int) -> bool:
    return len(await store.find(LetterQuery(limit=500))) == number


async def _nothing_in(transport: Transport, queue: str) -> bool:
    return queue not in await transport.depths((queue,))


@pytest.mark.parametrize("arguments", [("--once",), ()])
def test_a_queue_that_does_not_exist_is_an_error_and_is_not_made(
    tmp_path: Path, rabbitmq: RabbitServer, rabbitmq_url: str, elsewhere: Elsewhere, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "redrive.toml").write_text(f'[broker]\nurl = "{rabbitmq_url}"\n')
    elsewhere.make("orders_dlq")
    ended = Desk(tmp_path).process("collect", "orders_dlq", "orders_dql", *arguments)
    assert (ended.returncode, "there is no queue 'orders_dql'" in ended.stderr) == (3, True)
    assert [queue["name"] for queue in rabbitmq.queues(vhost_of(rabbitmq_url))] == ["orders_dlq"]
    assert Desk(tmp_path).process("collect", "", *arguments).returncode == 2
