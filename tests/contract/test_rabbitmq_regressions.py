"""Defects that other systems had on RabbitMQ, each by its number, on a real broker."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import pytest
import structlog

from redrive import App, Message
from redrive.errors import LeaseLost, PublishRefused, Unreachable
from redrive.letter_query import LetterQuery
from redrive.stores import open_store
from redrive.transports.rabbitmq.content import FRAME_RESERVE, HEADER_BUDGET
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.amqp_proxy import (
    ACK,
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CONNECTION_CLOSE,
    CONNECTION_CLOSE_OK,
    HEADER,
    AmqpProxy,
    proxied,
)
from support.at_work import settings_on, working
from support.opened_rabbitmq import message, opened
from support.patience import until
from support.plain_client import PlainClient
from support.rabbitmq_server import vhost_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from redrive.transports import Delivery
    from support.rabbitmq_server import PrivateRabbit, RabbitServer

PATIENCE = 30.0


@pytest.fixture
async def proxy(rabbitmq_url: str) -> AsyncIterator[AmqpProxy]:
    async with proxied(rabbitmq_url) as opened:
        yield opened


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        yield client


async def taken(transport: RabbitTransport, count: int = 1, queue: str = "orders") -> list[Delivery]:
    async with asyncio.timeout(PATIENCE), aclosing(transport.receive(queue, prefetch=count)) as deliveries:
        return [await anext(deliveries) for _ in range(count)]


# R10


async def test_r10_no_ack_is_lost_when_we_close_right_behind_it(rabbitmq_url: str, other: PlainClient) -> None:
    async with opened(rabbitmq_url) as transport:
        await asyncio.gather(*(transport.send(message()) for _ in range(200)))
        for delivery in await taken(transport, 200):
            await transport.ack(delivery)
    assert other.count("orders") == 0
    assert other.get("orders") is None


async def test_r10_close_comes_behind_the_last_ack_and_waits_for_its_answer(proxy: AmqpProxy) -> None:
    transport = RabbitTransport(proxy.url)
    await transport.send(message())
    [delivery] = await taken(transport)
    await transport.ack(delivery)
    await until(lambda: CHANNEL_CLOSE_OK in [frame.method for frame in proxy.answered])  # of the consumer
    proxy.hold_answers()
    closing = asyncio.create_task(transport.close())
    await until(lambda: proxy.methods(CONNECTION_CLOSE))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not closing.done()
    proxy.let_through()
    await closing
    order = [frame.method for frame in proxy.asked if frame.method in {ACK, CONNECTION_CLOSE}]
    assert order == [ACK, CONNECTION_CLOSE, CONNECTION_CLOSE]  # of both connections
    assert [frame.method for frame in proxy.answered].count(CONNECTION_CLOSE_OK) == 2


async def test_r10_a_channel_is_closed_once_whoever_closes_it(proxy: AmqpProxy) -> None:
    """The answer to a second close would reach the next channel of that number."""
    async with opened(proxy.url) as transport:
        await transport.send(message())
        [delivery] = await taken(transport)
        await transport.ack(delivery)  # the last of its channel, which is about to close
    assert len(proxy.methods(CHANNEL_CLOSE)) == 1


# R11


async def test_r11_an_ack_after_a_reconnect_is_a_lost_lease_and_touches_nothing_else(proxy: AmqpProxy) -> None:
    async with opened(proxy.url) as transport:
        await transport.send(message(b"one"))
        [stale] = await taken(transport)
        proxy.cut()
        again = await until(partial(_taken_or_away, transport))
        assert (again.identity, again.message.body, again.redelivered) == (stale.identity, b"one", True)
        with pytest.raises(LeaseLost):
            await transport.ack(stale)
        with pytest.raises(LeaseLost):
            await transport.retry(stale, stale.message, delay=0, trail=b"")
        with pytest.raises(LeaseLost):
            await transport.release(stale)
        await transport.ack(again)
        assert await transport.depths(("orders",)) == {}


async def _taken_or_away(transport: RabbitTransport) -> Delivery | None:
    try:
        [delivery] = await taken(transport)
    except Unreachable:
        return None
    return delivery


async def test_r11_the_worker_goes_on_when_its_connection_is_cut_under_a_handler(
    tmp_path: Path, proxy: AmqpProxy, rabbitmq_url: str, other: PlainClient
) -> None:
    app, running, may_end, seen = App("shop"), asyncio.Event(), asyncio.Event(), []

    @app.handler("orders")
    async def handle(given: Message) -> None:
        seen.append(given.id)
        running.set()
        await may_end.wait()

    with structlog.testing.capture_logs() as logs:
        async with working(app, settings_on(proxy.url, tmp_path), broker=rabbitmq_url):
            other.publish("orders", b"{}", message_id="m-1")
            await running.wait()
            proxy.cut()
            await until(lambda: "broker away" in [entry["event"] for entry in logs])
            may_end.set()
            await until(lambda: seen.count("m-1") == 2)
            other.publish("orders", b"{}", message_id="m-2")
            await until(lambda: "m-2" in seen)
    assert [entry["event"] for entry in logs].count("lease lost, another delivery goes on") == 1
    assert other.count("orders") == 0


# R12


async def test_r12_a_publish_that_nobody_answers_ends_at_its_deadline_as_unknown(proxy: AmqpProxy) -> None:
    async with opened(proxy.url, publish_timeout=0.2) as transport:
        await transport.send(message())
        proxy.hold_requests()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(Unreachable, match="may or may not be there"):
                await transport.send(message())
        proxy.let_through()
        await transport.send(message())  # work goes on


async def test_r12_a_publish_while_nobody_listens_fails_at_once(proxy: AmqpProxy) -> None:
    url = proxy.url
    await proxy.stop()
    async with opened(url) as transport, asyncio.timeout(PATIENCE):
        with pytest.raises(Unreachable, match="cannot reach RabbitMQ"):
            await transport.send(message())


async def test_r12_a_cut_between_publish_and_confirm_is_unknown_never_success(proxy: AmqpProxy) -> None:
    async with opened(proxy.url) as transport:
        await transport.send(message())
        proxy.hold_answers()
        sending = asyncio.create_task(transport.send(message()))
        await until(lambda: len([frame for frame in proxy.asked if frame.kind == HEADER]) == 2)
        proxy.cut()
        with pytest.raises(Unreachable, match="may or may not be there"):
            await sending
        proxy.let_through()


# R13


async def test_r13_a_delivery_that_is_held_long_is_told_before_the_broker_ends_it(rabbitmq_url: str) -> None:
    with structlog.testing.capture_logs() as logs:
        async with opened(rabbitmq_url, consumer_timeout=2.0) as transport:
            await transport.send(message())
            await transport.send(message(queue="mails"))
            [delivery] = await taken(transport)
            [mail] = await taken(transport, queue="mails")
            await transport.ack(mail)
            event = "a delivery is near the broker's consumer timeout"
            await until(lambda: [entry for entry in logs if entry["event"] == event])
            await transport.ack(delivery)
    told = [entry for entry in logs if entry["event"] == event]
    assert [(each["queue"], each["deliveries"], each["log_level"]) for each in told] == [("orders", 1, "warning")]


async def test_r13_a_handler_longer_than_the_consumer_timeout_loses_its_channel_and_the_worker_goes_on(
    tmp_path: Path, own_rabbitmq: PrivateRabbit
) -> None:
    for name, milliseconds in (("consumer_timeout", 1000), ("channel_tick_interval", 200)):
        own_rabbitmq.ctl("eval", f"application:set_env(rabbit, {name}, {milliseconds}).")
    app, seen, may_end = App("shop"), [], asyncio.Event()

    @app.handler("orders")
    async def handle(given: Message) -> None:
        seen.append(given.id)
        if len(seen) == 1:
            await may_end.wait()

    with structlog.testing.capture_logs() as logs, PlainClient(own_rabbitmq.url) as other:
        async with working(app, settings_on(own_rabbitmq.url, tmp_path)):
            other.publish("orders", b"{}", message_id="m-1")
            await until(lambda: len(seen) == 2)  # delivered again, and handled
            may_end.set()
            other.publish("orders", b"{}", message_id="m-2")
            await until(lambda: "m-2" in seen)
            await until(lambda: "lease lost, another delivery goes on" in [entry["event"] for entry in logs])
        assert other.count("orders") == 0
    assert "the broker closed a consumer's channel" in [entry["event"] for entry in logs]


# R14


async def test_r14_a_stack_trace_over_frame_max_is_cut_to_fit_and_the_story_arrives(
    tmp_path: Path, proxy: AmqpProxy, rabbitmq_url: str, other: PlainClient
) -> None:
    app = App("shop")

    @app.handler("orders")
    async def handle(_body: bytes) -> None:
        raise TimeoutError("é" * 200_000)

    quick = {"delays": ["100ms"], "jitter": "none", "attempts": 4}
    settings = settings_on(proxy.url, tmp_path, retry=quick, dead_letters={"sink": "both"})
    async with working(app, settings, broker=rabbitmq_url):
        other.publish("orders", b"{}", message_id="m-1", headers={"own": "x" * 20_000})
        await until(lambda: other.count("orders_dlq"))
    headers = [frame for frame in proxy.asked if frame.kind == HEADER]
    assert len(headers) == 4
    assert max(len(frame.payload) for frame in headers) <= HEADER_BUDGET + 12
    store = open_store(f"sqlite:///{tmp_path}/redrive.db")
    [letter] = await store.find(LetterQuery())
    await store.close()
    assert letter.attempts == 4
    got = other.get("orders_dlq")
    assert got is not None
    assert got.headers["own"] == "x" * 20_000  # ours is cut, never the user's


async def test_r14_headers_too_large_for_a_frame_are_refused_and_the_connection_lives(proxy: AmqpProxy) -> None:
    async with opened(proxy.url) as transport:
        await transport.send(message())
        with pytest.raises(PublishRefused) as refused:
            await transport.send(message(headers=(("trace", "x" * 128 * 1024),)))
        assert refused.value.permanent
        await transport.send(message(headers=(("trace", "x" * (131072 - FRAME_RESERVE - 4096)),)))
        assert proxy.connections == 2
    assert max(len(frame.payload) for frame in proxy.asked if frame.kind == HEADER) < 131072 - FRAME_RESERVE + 12


# R22


async def test_r22_with_no_sink_nothing_is_acknowledged_and_when_one_is_back_nothing_is_lost(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redrive.stores.sqlite import SqliteStore  # noqa: PLC0415  only here

    async def away(*_: Any) -> Any:
        raise Unreachable("the store is away")

    monkeypatch.setattr(SqliteStore, "record", away)
    other.declare("orders")
    app = App("shop")

    @app.handler("orders")
    async def handle(_body: bytes) -> None:
        raise ValueError("permanent")

    settings = settings_on(rabbitmq_url, tmp_path, rabbitmq={"declare": "never"}, spool={"max_size": 0})
    with structlog.testing.capture_logs() as logs:
        async with working(app, settings):
            other.publish("orders", b"{}", message_id="m-1")
            event = "no sink takes dead letters, consumption pauses"
            await until(lambda: event in [entry["event"] for entry in logs])
            other.declare("orders_dlq")
            await until(lambda: other.count("orders_dlq"))
    assert other.count("orders") == 0


async def test_r22_stopped_while_no_sink_takes_it_the_message_is_still_in_its_queue(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redrive.stores.sqlite import SqliteStore  # noqa: PLC0415  only here

    async def away(*_: Any) -> Any:
        raise Unreachable("the store is away")

    monkeypatch.setattr(SqliteStore, "record", away)
    other.declare("orders")
    app, called = App("shop"), asyncio.Event()

    @app.handler("orders")
    async def handle(_body: bytes) -> None:
        called.set()
        raise ValueError("permanent")

    settings = settings_on(
        rabbitmq_url, tmp_path, rabbitmq={"declare": "never"}, spool={"max_size": 0}, worker={"grace": 0}
    )
    async with working(app, settings):
        other.publish("orders", b"{}", message_id="m-1")
        await called.wait()
    got = await other.next("orders")
    assert (got.properties.message_id, got.redelivered) == ("m-1", True)


# R23


async def refusal(transport: RabbitTransport, given: Message) -> PublishRefused:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(PublishRefused) as refused:
            await transport.send(given)
    assert refused.value.remedy
    return refused.value


async def test_r23_a_full_queue_is_worth_another_try(rabbitmq_url: str, other: PlainClient) -> None:
    other.declare("orders", max_length=1, overflow="reject-publish")
    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        assert not (await refusal(transport, message())).permanent
        other.get("orders")
        await transport.send(message())


async def test_r23_a_body_larger_than_we_are_told_the_broker_takes_is_refused_for_good(rabbitmq_url: str) -> None:
    async with opened(rabbitmq_url, max_message_size=1000) as transport:
        assert (await refusal(transport, message(b"x" * 1001))).permanent
        await transport.send(message(b"x" * 1000))


async def test_r23_a_body_larger_than_the_broker_takes_is_refused_for_good_and_nobody_else(
    own_rabbitmq: PrivateRabbit,
) -> None:
    own_rabbitmq.ctl("eval", "application:set_env(rabbit, max_message_size, 2000000).")
    async with opened(own_rabbitmq.url) as transport:
        await transport.send(message())
        large = asyncio.create_task(refusal(transport, message(b"x" * 3_000_000)))
        await asyncio.gather(*(transport.send(message()) for _ in range(20)))
        assert (await large).permanent
        await transport.send(message(b"x" * 1_500_000))


async def test_r23_an_exchange_that_is_gone_is_a_refusal_for_good(rabbitmq_url: str, other: PlainClient) -> None:
    other.declare("orders")
    other.declare_exchange("events")
    other.bind("events", "orders", "created")
    other.publish("created", b"{}", exchange="events")
    async with opened(rabbitmq_url) as transport:
        [delivery] = await taken(transport)
        await transport.send_to_origin(delivery.message)
        other.channel.exchange_delete("events")
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(PublishRefused) as refused:
                await transport.send_to_origin(delivery.message)
        assert (refused.value.permanent, "events" in str(refused.value)) == (True, True)
        await transport.send(message())


async def test_r23_a_binding_that_is_gone_is_a_refusal_for_good(rabbitmq_url: str, other: PlainClient) -> None:
    other.declare("orders")
    other.declare_exchange("events")
    other.bind("events", "orders", "created")
    other.publish("created", b"{}", exchange="events")
    async with opened(rabbitmq_url) as transport:
        [delivery] = await taken(transport)
        other.channel.queue_unbind("orders", "events", "created")
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(PublishRefused, match="no queue takes 'created'") as refused:
                await transport.send_to_origin(delivery.message)
        assert refused.value.permanent


async def test_r23_who_may_not_write_is_refused_for_good(
    rabbitmq: RabbitServer, rabbitmq_url: str, other: PlainClient
) -> None:
    other.declare("orders")
    name = f"reader_{uuid4().hex}"
    rabbitmq.api("PUT", f"/users/{name}", {"password": "secret-canary", "tags": ""})
    path = quote(vhost_of(rabbitmq_url), safe="")
    rabbitmq.api("PUT", f"/permissions/{path}/{name}", {"configure": ".*", "write": "^$", "read": ".*"})
    try:
        url = urlsplit(rabbitmq_url)
        async with opened(url._replace(netloc=f"{name}:secret-canary@{url.hostname}:{url.port}").geturl()) as its:
            refused = await refusal(its, message())
        assert refused.permanent
        assert "secret-canary" not in f"{refused} {refused.remedy}"
    finally:
        rabbitmq.api("DELETE", f"/users/{name}")


# R24


async def test_r24_what_a_dead_process_held_goes_to_others_at_once(proxy: AmqpProxy, rabbitmq_url: str) -> None:
    async with opened(rabbitmq_url) as living:
        dying = RabbitTransport(proxy.url)
        await asyncio.gather(*(living.send(message()) for _ in range(10)))
        held = {delivery.identity for delivery in await taken(dying, 10)}
        proxy.cut()
        assert {delivery.identity for delivery in await taken(living, 10)} == held
        await dying.close()


async def test_r24_what_a_silent_process_held_goes_to_others_after_two_heartbeats(
    proxy: AmqpProxy, rabbitmq_url: str
) -> None:
    async with opened(rabbitmq_url) as living:
        silent = RabbitTransport(proxy.url, heartbeat=1)
        await asyncio.gather(*(living.send(message()) for _ in range(10)))
        held = await taken(silent, 10)
        proxy.hold_requests()
        proxy.hold_answers()
        taking = await taken(living, 10)
        assert {delivery.identity for delivery in taking} == {delivery.identity for delivery in held}
        receipt = held[0].receipt
        await until(lambda: not receipt.tags.holds(receipt.tag))  # it has heard nothing either
        with pytest.raises(LeaseLost):
            await silent.ack(held[0])
        proxy.let_through()
        await silent.close()
