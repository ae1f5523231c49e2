"""Redriving on RabbitMQ: to the failed queue alone by default, to the producer's exchange by choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from redrive import App, Permanent
from redrive.access import local
from redrive.actions import Actions
from redrive.errors import UsageError
from redrive.testing.letters import an_entry
from redrive.transports.rabbitmq import address
from redrive.transports.rabbitmq.arrival import Arrived, unpack
from redrive.transports.rabbitmq.connection import connect
from redrive.transports.rabbitmq.properties import HEADERS, join
from redrive.transports.rabbitmq.publisher import Publisher
from redrive.transports.rabbitmq.table import Entry, joined, write
from redrive.transports.rabbitmq.topology import BindingSpec, ExchangeSpec
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from redrive.clock import Clock
    from redrive.transports import Names
    from support.workshop import Workshop

PROPERTIES = b"\x10\x80\x02\x05order"  # persistent, message_id "order"


def opening(url: str, *, names: Names, clock: Clock, **_options: Any) -> RabbitTransport:
    return RabbitTransport(url, names=names, clock=clock)


@pytest.fixture
async def shop(rabbitmq_url: str, tmp_path: Path) -> AsyncIterator[Workshop]:
    """A letter of `billing`, whose message a producer sent to an exchange that `shipping` listens to as well."""
    app = App("shop")

    @app.handler("billing")
    async def refuse(_body: bytes) -> None:
        raise Permanent("no")

    async with workshop(app, tmp_path, broker_url=rabbitmq_url, opening=opening) as made:
        assert isinstance(made.transport, RabbitTransport)
        administration = await made.transport.administration()
        await administration.declare_exchange(ExchangeSpec("orders", "topic"))
        for queue in ("billing", "shipping"):
            await made.transport._known.ensure(queue)
            await administration.bind(BindingSpec("orders", queue, "order.*"))
        await from_elsewhere(rabbitmq_url)
        await until(lambda: recorded(made))
        await made.stop()
        assert (await made.depth("shipping")).ready == 1
        yield made


async def recorded(shop: Workshop) -> bool:
    return len(await shop.letters()) == 1


async def from_elsewhere(url: str) -> None:
    connection = await connect(address.parse(url), tls=None, name="elsewhere", heartbeat=30, within=5)
    publisher = Publisher(10)
    await publisher.open(connection)
    await publisher.publish(b"orders", b"order.paid", PROPERTIES, b"paid", fits=1000)
    await connection.close()


def desk(shop: Workshop) -> Actions:
    return Actions(store=shop.store, transport=shop.transport, clock=shop.clock, who=local("test"))


async def test_it_goes_to_the_queue_where_it_failed_and_to_no_other(shop: Workshop) -> None:
    [letter] = await shop.letters()
    [outcome] = await desk(shop).retry([letter.id])
    assert outcome.result == "sent"
    assert ((await shop.depth("billing")).ready, (await shop.depth("shipping")).ready) == (1, 1)


async def test_to_the_original_exchange_it_reaches_every_queue_bound_there(shop: Workshop) -> None:
    [letter] = await shop.letters()
    [outcome] = await desk(shop).retry([letter.id], to_origin=True)
    assert outcome.result == "sent"
    assert ((await shop.depth("billing")).ready, (await shop.depth("shipping")).ready) == (1, 2)


async def test_a_letter_that_the_broker_dead_lettered_goes_where_its_producer_sent_it(
    shop: Workshop,
) -> None:
    """And not to the dead-letter exchange, by which it came."""
    died = Arrived("billing", b"\x03dlx\x07billing", dead_properties(), b"paid", shop.clock.now())
    letter_id, _ = await shop.store.record(an_entry(queue="billing", message=unpack(died).message))
    [outcome] = await desk(shop).retry([letter_id], to_origin=True)
    assert (outcome.result, outcome.note) == ("sent", "")
    assert (await shop.depth("shipping")).ready == 2


def dead_properties() -> bytes:
    death = {"queue": "billing", "reason": "rejected", "exchange": "orders", "routing-keys": ["order.paid"]}
    return join({HEADERS: joined([Entry(b"x-death", write([death]))])})


async def test_a_message_of_ours_has_no_exchange_to_go_back_to(shop: Workshop) -> None:
    letter_id, _ = await shop.store.record(an_entry(queue="billing"))
    [outcome] = await desk(shop).retry([letter_id], to_origin=True)
    assert (outcome.result, "which exchange" in outcome.note) == ("refused", True)


async def test_a_broker_without_exchanges_says_so(tmp_path: Path) -> None:
    async with workshop(App("shop"), tmp_path, start=False) as shop:
        with pytest.raises(UsageError, match="no exchanges"):
            await desk(shop).retry(["0" * 36], to_origin=True)
