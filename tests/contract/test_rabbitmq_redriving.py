"""From the store or from a dead-letter queue back into the failed queue, by the command line, on a real broker."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App, Message
from redrive.access import local
from redrive.actions import Actions
from redrive.configuration import load
from redrive.letter_query import LetterQuery
from redrive.transports.rabbitmq.transport import RabbitTransport
from redrive.wiring import store
from support.at_work import working
from support.desk import Desk, LaterClock
from support.patience import until
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redrive.settings import Settings

BODY = b"\x00\xff not JSON {"
HEADERS: dict[str, Any] = {"own": 1, "deep": {"list": [1, "a"]}}


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        yield client


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, rabbitmq_url: str) -> Desk:
    url = f"sqlite:///{tmp_path}/redrive.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    return a_desk(tmp_path, rabbitmq_url, url)


def a_desk(folder: Path, broker: str, store_url: str) -> Desk:
    made = Desk(folder, store_url=store_url)
    text = f"""[broker]
url = "{broker}"
[store]
url = "{store_url}"
[spool]
folder = "{folder}/spool"
[journal]
path = "{folder}/journal.db"
"""
    (folder / "redrive.toml").write_text(text)
    return made


def settings_of(desk: Desk) -> Settings:
    return load(config=desk.folder / "redrive.toml").settings


async def died_and_waited(other: PlainClient, *ids: str) -> None:
    """Messages that come into `orders` out of somebody else's waiting queue: with x-death in their headers."""
    other.declare("orders", queue_type="quorum")
    other.declare("wait", message_ttl=1, dead_letter_exchange="", dead_letter_routing_key="orders")
    for message_id in ids:
        other.publish("wait", BODY, message_id=message_id, headers=HEADERS, priority=3, type="order", timestamp=1)
    await until(lambda: other.count("orders") == len(ids))


async def handled(desk: Desk, other: PlainClient, *, fails: bool) -> list[Message]:
    """What a worker sees until the queue is empty."""
    app, seen = App("shop"), []
    left = other.count("orders")

    @app.handler("orders")
    async def handle(message: Message) -> None:
        seen.append(message)
        if fails:
            raise ValueError("no customer")

    async with working(app, settings_of(desk)):
        await until(lambda: len(seen) == left)
    return seen


async def statuses(desk: Desk) -> dict[str, str]:
    opened = store(settings_of(desk))
    found = await opened.find(LetterQuery())
    await opened.close()
    return {letter.message.id: str(letter.status) for letter in found}


def test_a_letter_goes_back_without_x_death_and_is_resolved_by_its_consumer(
    desk: Desk, other: PlainClient
) -> None:
    asyncio.run(died_and_waited(other, "m-1", "m-2"))
    failed = asyncio.run(handled(desk, other, fails=True))
    assert all("x-death" in dict(message.headers) for message in failed)
    letters = json.loads(desk.redrive("list", "--output", "json").out)
    ids = {letter["message_id"]: letter["id"] for letter in letters}

    ended = desk.redrive("retry", ids["m-1"], "--yes")
    assert (ended.code, ended.out) == (0, "Sent 1 letter back.\n"), ended.err
    assert asyncio.run(statuses(desk)) == {"m-1": "REDRIVEN", "m-2": "PENDING"}
    got = other.get("orders")
    assert got is not None
    assert (got.body, got.properties.message_id, got.properties.priority) == (BODY, "m-1", 3)
    assert (got.properties.type, got.properties.timestamp, got.routing_key) == ("order", 1, "orders")
    ticket = {name for name in got.headers if name.startswith("x-redrive-")}
    assert "x-redrive-id" in ticket
    assert {
        name: value for name, value in got.headers.items() if name not in ticket | {"x-delivery-count"}
    } == HEADERS

    assert desk.redrive("retry", ids["m-2"], "--yes").code == 0
    [seen] = asyncio.run(handled(desk, other, fails=False))
    assert (seen.id, seen.body) == ("m-2", BODY)
    assert "x-death" not in dict(seen.headers)
    assert asyncio.run(statuses(desk)) == {"m-1": "REDRIVEN", "m-2": "RESOLVED"}
    assert other.count("orders") == 0


def test_a_letter_that_fails_again_is_the_same_letter(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    desk = a_desk(tmp_path, rabbitmq_url, f"sqlite:///{tmp_path}/redrive.db")
    asyncio.run(died_and_waited(other, "m-1"))
    asyncio.run(handled(desk, other, fails=True))
    [letter] = json.loads(desk.redrive("list", "--output", "json").out)
    desk.redrive("retry", letter["id"], "--yes")
    asyncio.run(handled(desk, other, fails=True))
    shown = json.loads(desk.redrive("show", letter["id"], "--output", "json").out)
    assert (shown["status"], shown["generation"]) == ("PENDING", 2)
    assert asyncio.run(statuses(desk)) == {"m-1": "PENDING"}


@pytest.mark.parametrize("point", ["engine.taken", "engine.sent", "rabbitmq.before_publish"])
def test_g4_killed_while_it_sends_the_letter_goes_back_later_with_the_same_redrive_id(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, point: str
) -> None:
    desk = a_desk(tmp_path, rabbitmq_url, f"sqlite:///{tmp_path}/redrive.db")
    asyncio.run(died_and_waited(other, "m-1"))
    asyncio.run(handled(desk, other, fails=True))
    [letter] = json.loads(desk.redrive("list", "--output", "json").out)

    killed = desk.process("retry", letter["id"], "--yes", faults=f"{point}=kill9")

    assert killed.returncode == -9
    assert asyncio.run(statuses(desk)) == {"m-1": "REDRIVING"}
    asyncio.run(taken_over(desk, rabbitmq_url, letter["id"]))

    sent = 2 if point == "engine.sent" else 1
    asyncio.run(until(lambda: other.count("orders") == sent))
    copies = [got for _ in range(sent) if (got := other.get("orders"))]
    assert len({got.headers["x-redrive-id"] for got in copies}) == 1
    assert asyncio.run(statuses(desk)) == {"m-1": "REDRIVEN"}


async def taken_over(desk: Desk, broker: str, letter_id: str) -> None:
    """By somebody for whom the lease of the dead process has run out."""
    clock = LaterClock()
    opened, transport = desk.store(clock=clock), RabbitTransport(broker)
    await Actions(store=opened, transport=transport, clock=clock, who=local("later")).retry([letter_id])
    await transport.close()
    await opened.close()


# Queue to queue


async def test_the_queue_as_sink_keeps_every_byte_and_property(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    desk = a_desk(tmp_path, rabbitmq_url, f"sqlite:///{tmp_path}/redrive.db")
    with (desk.folder / "redrive.toml").open("a") as settings:
        settings.write('[dead_letters]\nsink = "queue"\n')
    await died_and_waited(other, "m-1")
    await handled(desk, other, fails=True)
    got = await other.next("orders_dlq")
    assert (got.body, got.properties.message_id, got.properties.type) == (BODY, "m-1", "order")
    assert {name: got.headers[name] for name in HEADERS} == HEADERS
    assert "x-death" not in got.headers


def reprocessed(desk: Desk) -> Any:
    return desk.redrive("reprocess", "--queue", "orders_dlq", "--yes", "--no-store")


def test_reprocess_sends_back_what_the_broker_dead_lettered_byte_for_byte(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    desk = a_desk(tmp_path, rabbitmq_url, f"sqlite:///{tmp_path}/redrive.db")
    other.declare("orders_dlq")
    other.declare("orders", dead_letter_exchange="", dead_letter_routing_key="orders_dlq")
    for number in range(5):
        other.publish("orders", BODY + b"%d" % number, headers=HEADERS, content_type="application/octet-stream")
        asyncio.run(other.reject("orders"))
    asyncio.run(until(lambda: other.count("orders_dlq") == 5))

    ended = reprocessed(desk)

    assert (ended.code, "Reprocessed 5 messages" in ended.out) == (0, True), ended.err
    arrived = [got for _ in range(5) if (got := other.get("orders"))]  # no order is kept (G10)
    assert sorted(got.body for got in arrived) == [BODY + b"%d" % number for number in range(5)]
    assert all(got.headers == HEADERS for got in arrived)
    assert {got.properties.content_type for got in arrived} == {"application/octet-stream"}
    assert (other.count("orders"), other.count("orders_dlq")) == (0, 0)


@pytest.mark.parametrize("point", ["reprocess.received", "rabbitmq.before_publish", "reprocess.after_send"])
def test_sd1_reprocess_killed_anywhere_loses_nothing(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, point: str
) -> None:
    desk = a_desk(tmp_path, rabbitmq_url, f"sqlite:///{tmp_path}/redrive.db")
    other.declare("orders_dlq")
    other.declare("orders", dead_letter_exchange="", dead_letter_routing_key="orders_dlq")
    for number in range(3):
        other.publish("orders", b"{}", message_id=f"m-{number}")
        asyncio.run(other.reject("orders"))
    asyncio.run(until(lambda: other.count("orders_dlq") == 3))

    arguments = ("reprocess", "--queue", "orders_dlq", "--yes", "--no-store")
    killed = desk.process(*arguments, faults=f"{point}=kill9")
    assert killed.returncode == -9
    sent = 1 if point == "reprocess.after_send" else 0
    asyncio.run(until(lambda: other.count("orders_dlq") == 3))  # the broker has noticed the death

    assert "Reprocessed 3 messages" in reprocessed(desk).out
    arrived = [got.properties.message_id for _ in range(3 + sent) if (got := other.get("orders"))]
    assert (set(arrived), len(arrived)) == ({"m-0", "m-1", "m-2"}, 3 + sent)  # a duplicate has the same id
