"""What must hold at single steps of the driver: no order of events loses a message, or hands it out too early."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App
from redrive.clock import SystemClock
from redrive.errors import LeaseLost, PublishRefused, Unreachable
from redrive.letter_query import LetterQuery
from redrive.stores import open_store
from redrive.transports.rabbitmq.channel import Channel
from redrive.transports.rabbitmq.methods import Connection, encode
from redrive.transports.rabbitmq.settling import Tags
from redrive.transports.rabbitmq.topology import Topology
from redrive.transports.rabbitmq.topology_choice import Choice, choose
from redrive.transports.rabbitmq.topology_loop import Loop
from support.amqp_proxy import PUBLISH, REJECT, proxied
from support.at_work import settings_on, working
from support.opened_rabbitmq import message, opened, taken
from support.patience import until
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


PATIENCE = 30.0


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        yield client


class TestARetryThatDoesNotSucceedLeavesTheDeliveryInHand:
    async def test_when_the_queue_is_full(self, rabbitmq_url: str, other: PlainClient) -> None:
        other.declare("orders", max_length=1, overflow="reject-publish")
        async with opened(rabbitmq_url) as transport:
            await transport.send(message(b"first"))
            delivery = await taken(transport)
            other.publish("orders", b"second")
            with pytest.raises(PublishRefused):
                await transport.retry(delivery, delivery.message, delay=0, trail=b"")
            assert other.get("orders") is not None
            await transport.release(delivery)
        assert (await other.next("orders")).body == b"first"

    async def test_when_there_is_no_queue_to_wait_in(self, rabbitmq_url: str, other: PlainClient) -> None:
        other.declare("orders")
        async with opened(rabbitmq_url, declare="never") as transport:
            await transport.send(message(b"first"))
            delivery = await taken(transport)
            with pytest.raises(PublishRefused, match=r"there is no queue 'orders_retry\.100'"):
                await transport.retry(delivery, delivery.message, delay=0.1, trail=b"")
            await transport.release(delivery)
        assert (await other.next("orders")).body == b"first"

    async def test_when_nobody_confirms_it(self, rabbitmq_url: str, other: PlainClient) -> None:
        async with proxied(rabbitmq_url) as proxy, opened(proxy.url, publish_timeout=0.2) as transport:
            await transport.send(message(b"first"))
            delivery = await taken(transport)
            proxy.hold_answers()
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(Unreachable, match="may or may not be there"):
                    await transport.retry(delivery, delivery.message, delay=0, trail=b"")
            proxy.let_through()
            await transport.release(delivery)
        await until(lambda: other.count("orders") == 2)  # the one, and the copy of which nobody knew


async def test_r10_the_last_acks_have_their_moment_before_their_channel_goes(
    rabbitmq_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the broker would have lost them is its luck: that we wait is not."""
    order: list[str] = []
    real_rest, real_close = Tags.rest, Channel.close

    async def rest(tags: Tags) -> None:
        await real_rest(tags)
        order.append("rested")

    async def close(channel: Channel) -> None:
        order.append("closing")
        await real_close(channel)

    monkeypatch.setattr(Tags, "rest", rest)
    monkeypatch.setattr(Channel, "close", close)
    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        await transport.ack(await taken(transport))
        await until(lambda: "closing" in order)
    assert order[0] == "rested"


async def test_what_waits_for_a_queue_that_nobody_has_made_yet_finds_it_made(
    rabbitmq_url: str, other: PlainClient
) -> None:
    """A classic delay queue drops what it cannot put anywhere."""
    async with opened(rabbitmq_url, topology=Topology(queue_type="classic")) as transport:
        given = message()
        await transport.send(given, delay=0.1)
        await until(lambda: not other.count("orders_retry.100"))
        assert (await taken(transport)).message == given


@pytest.mark.parametrize("queue_type", ["quorum", "classic"])
async def test_a_retry_is_persistent_whatever_the_message_was(
    rabbitmq_url: str, other: PlainClient, queue_type: Any
) -> None:
    other.declare("orders")
    other.publish("orders", b"theirs", delivery_mode=1)
    async with opened(rabbitmq_url, persistent=False, topology=Topology(queue_type=queue_type)) as transport:
        await transport.send(message(b"ours"))
        for _ in range(2):
            delivery = await taken(transport)
            await transport.retry(delivery, delivery.message, delay=0, trail=b"")
    found = [await other.next("orders") for _ in range(2)]
    assert {each.body: each.properties.delivery_mode for each in found} == {b"ours": 2, b"theirs": 2}


async def test_the_broker_hands_out_no_more_than_prefetch(rabbitmq_url: str, other: PlainClient) -> None:
    """What it has sent to us nobody else can have, whether we look at it or not."""
    async with opened(rabbitmq_url) as transport:
        await asyncio.gather(*(transport.send(message()) for _ in range(5)))
        async with aclosing(transport.receive("orders", prefetch=2)) as deliveries:
            await transport.ack(await anext(deliveries))
            await anext(deliveries)
            await until(lambda: other.count("orders") == 2)
            assert [other.get("orders") is not None for _ in range(3)] == [True, True, False]


class AheadClock(SystemClock):
    """Of a machine whose time is a second ahead."""

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=1)


@pytest.mark.parametrize("declare", ["missing", "never"])
async def test_what_comes_before_its_time_is_put_off_and_never_lost(
    rabbitmq_url: str, other: PlainClient, declare: str
) -> None:
    """With `never` there is no queue where it could wait: it waits in hand, and is given back once."""
    async with opened(rabbitmq_url, clock=AheadClock()) as sender:
        given, due = message(), SystemClock().now() + timedelta(seconds=1.1)
        await sender.send(given, delay=0.1)
    await until(lambda: not other.count("orders_retry.100"))
    if declare == "never":
        other.channel.queue_delete("orders_retry.100")
    async with proxied(rabbitmq_url) as proxy, opened(proxy.url, declare=declare) as transport:
        delivery = await taken(transport)
        assert (delivery.message, delivery.attempt) == (given, 1)
        assert SystemClock().now() >= due
        await transport.ack(delivery)
        assert len(proxy.methods(REJECT)) == (declare == "never")
    assert other.count("orders") == 0


async def test_while_the_broker_blocks_publishing_nothing_is_written_and_nothing_is_called_sent(
    rabbitmq_url: str, other: PlainClient
) -> None:
    async with proxied(rabbitmq_url) as proxy, opened(proxy.url, publish_timeout=0.2) as transport:
        await transport.send(message(b"before"))
        connection = await transport._publishing.connection()
        connection.data_received(encode(Connection.Blocked(reason="low on memory"), 0))
        with pytest.raises(Unreachable, match="blocks publishing: low on memory"):
            await transport.send(message(b"meanwhile"))
        connection.data_received(encode(Connection.Unblocked(), 0))
        await transport.send(message(b"behind"))
        assert len(proxy.methods(PUBLISH)) == 2
    assert [(await other.next("orders")).body for _ in range(2)] == [b"before", b"behind"]


async def test_of_many_in_flight_exactly_the_ones_that_came_back_are_refused(
    rabbitmq_url: str, other: PlainClient
) -> None:
    """All have one routing key: where they go is told by a header."""
    other.declare("orders", queue_type="quorum")
    other.declare_exchange("events", "headers")
    for fate in ("kept", "lost"):
        other.channel.queue_bind("orders", "events", "", {"fate": fate})
    for number in range(40):
        headers = {"fate": ("kept", "lost")[number % 2]}
        other.publish("created", b"%d" % number, exchange="events", headers=headers)
    async with opened(rabbitmq_url) as transport, aclosing(transport.receive("orders", prefetch=40)) as deliveries:
        given = [(await anext(deliveries)).message for _ in range(40)]
        other.channel.queue_unbind("orders", "events", "", {"fate": "lost"})
        sent = await asyncio.gather(*map(transport.send_to_origin, given), return_exceptions=True)
    for each, outcome in zip(given, sent, strict=True):
        assert isinstance(outcome, PublishRefused) == (dict(each.headers)["fate"] == "lost")


async def test_a_retry_goes_to_no_copies_a_second_time(rabbitmq_url: str, other: PlainClient) -> None:
    other.declare("orders")
    other.declare("mails")
    other.publish("orders", b"{}", message_id="m-1", headers={"CC": ["mails"]})
    async with opened(rabbitmq_url) as transport:
        delivery = await taken(transport)
        await transport.retry(delivery, delivery.message, delay=0, trail=b"")
        again = await taken(transport)
        assert dict(again.message.headers)["CC"] == ["mails"]  # what it came with is still known (G2)
        await transport.ack(again)
    assert other.count("mails") == 1


@pytest.mark.parametrize("copies", ["CC", "BCC"])
async def test_what_the_brokers_own_loop_takes_goes_to_no_copies_a_second_time(
    rabbitmq_url: str, other: PlainClient, copies: str
) -> None:
    loop = choose(Choice(topology="ttl-loop", app="shop", loops={"orders": Loop(ttl=0.1)}))
    async with opened(rabbitmq_url, topology=loop) as transport:
        for queue in ("orders", "mails"):
            await transport.send(message(queue=queue))
            await transport.ack(await taken(transport, queue))
        other.publish("orders", b"{}", message_id="m-1", headers={copies: ["mails"]})
        for _ in range(2):
            delivery = await taken(transport)
            await transport.retry(delivery, delivery.message, delay=0.1, trail=b"")
        again = await taken(transport)
        assert (again.message.id, again.attempt) == ("m-1", 3)
        await transport.ack(again)
    assert (other.count("mails"), other.count("mails.deadletter"), other.count("orders")) == (1, 0, 0)


async def test_two_retries_at_once_of_one_delivery_are_one(rabbitmq_url: str, other: PlainClient) -> None:
    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        delivery = await taken(transport)
        retries = (transport.retry(delivery, delivery.message, delay=0, trail=b"") for _ in range(2))
        ended = await asyncio.gather(*retries, return_exceptions=True)
        assert [type(each) for each in ended] == [type(None), LeaseLost]
    assert (await other.next("orders")) is not None
    assert other.get("orders") is None


async def test_a_retry_of_what_is_no_longer_ours_publishes_nothing(rabbitmq_url: str, other: PlainClient) -> None:
    async with proxied(rabbitmq_url) as proxy, opened(proxy.url) as transport:
        await transport.send(message())
        stale = await taken(transport)
        proxy.cut()
        await until(lambda: other.count("orders") == 1)  # the broker has it back
        await until(lambda: not stale.receipt.tags.holds(stale.receipt.tag))
        published = len(proxy.methods(PUBLISH))
        with pytest.raises(LeaseLost):
            await transport.retry(stale, stale.message, delay=0, trail=b"")
        assert len(proxy.methods(PUBLISH)) == published
    assert other.count("orders") == 1


async def test_a_retry_that_is_refused_for_good_becomes_a_letter(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    other.declare("orders")
    app = App("shop")

    @app.handler("orders")
    async def handle(_body: bytes) -> None:
        raise TimeoutError("worth another try")

    settings = settings_on(rabbitmq_url, tmp_path, rabbitmq={"declare": "never"})  # and so without delay queues
    async with working(app, settings):
        other.publish("orders", b"{}", message_id="m-1")
        await until(lambda: other.count("orders") == 0)
    store = open_store(f"sqlite:///{tmp_path}/redrive.db")
    letters = await store.find(LetterQuery())
    await store.close()
    assert ([letter.message.id for letter in letters], other.count("orders")) == (["m-1"], 0)


async def test_a_message_that_dies_a_second_time_is_another_delivery(
    rabbitmq_url: str, other: PlainClient
) -> None:
    """Else the store would know it, and whoever resolved its letter would never hear of it again (G3)."""
    other.declare("orders_dlq")
    other.declare("orders", dead_letter_exchange="", dead_letter_routing_key="orders_dlq")
    identities = []
    async with opened(rabbitmq_url) as transport:
        for moment in (1, 2):
            when = datetime(2026, 3, moment, tzinfo=UTC)
            death = {"queue": "orders", "reason": "rejected", "count": 1, "time": when, "exchange": ""}
            other.publish("orders_dlq", b"{}", message_id="m-1", headers={"x-death": [death]})
            delivery = await taken(transport, "orders_dlq")
            identities.append(delivery.identity)
            await transport.ack(delivery)
    assert len(set(identities)) == 2


async def test_two_messages_alike_that_have_no_id_are_two(rabbitmq_url: str, other: PlainClient) -> None:
    other.declare("orders")
    for _ in range(2):
        other.publish("orders", b"the same")
    async with opened(rabbitmq_url) as transport, aclosing(transport.receive("orders", prefetch=2)) as deliveries:
        identities = [(await anext(deliveries)).identity for _ in range(2)]
    assert identities[0] != identities[1]


async def test_two_messages_with_one_id_and_two_bodies_are_two(rabbitmq_url: str, other: PlainClient) -> None:
    other.declare("orders")
    for body in (b"one", b"two", b"two"):
        other.publish("orders", body, message_id="m-1")
    async with opened(rabbitmq_url) as transport, aclosing(transport.receive("orders", prefetch=3)) as deliveries:
        identities = [(await anext(deliveries)).identity for _ in range(3)]
    assert identities[0] != identities[1] == identities[2]


async def test_what_failed_in_a_message_of_theirs_is_told_with_its_retry(
    rabbitmq_url: str, other: PlainClient
) -> None:
    other.declare("orders")
    other.publish("orders", b"{}", message_id="m-1")
    async with opened(rabbitmq_url) as transport:
        delivery = await taken(transport)
        failed = delivery.message.with_error("no customer", "NoCustomer", "Traceback").with_incremented_retry()
        await transport.retry(delivery, failed, delay=0, trail=b"")
        again = await taken(transport)
        assert (again.message.error, again.message.retry_count) == (failed.error, 1)
        assert (again.message.body, again.message.properties) == (b"{}", delivery.message.properties)
