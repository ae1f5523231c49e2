"""Queues that require sessions, with the driver for Service Bus on the emulator."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from azure.servicebus import ServiceBusMessage

from redrive.errors import LeaseLost, PublishRefused
from redrive.message import Message
from redrive.transports.servicebus.transport import ServiceBusTransport
from support.patience import until
from support.servicebus.clients import sent_by_others
from support.servicebus.counts import EmulatorCounts
from support.servicebus.emulator import ServiceBusEmulator, emulated
from support.servicebus.entity import Rules

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.transports import Delivery
    from support.servicebus.entity import Entity

QUEUE = "orders"


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[ServiceBusEmulator]:
    async with emulated() as made:
        yield made


@pytest.fixture
def queue(emulator: ServiceBusEmulator) -> Entity:
    return emulator.namespace.queue(QUEUE, Rules(sessions=True, max_deliveries=1000))


@pytest_asyncio.fixture
async def transport(emulator: ServiceBusEmulator, queue: Entity) -> AsyncIterator[ServiceBusTransport]:
    made = ServiceBusTransport(emulator.url, counts=EmulatorCounts(emulator), sessions=[queue.path])
    yield made
    await made.close()


def message(id_: str, key: bytes | None = b"acme") -> Message:
    return Message(id=id_, queue=QUEUE, body=b"{}", sent_at=datetime(2030, 1, 2, tzinfo=UTC), key=key)


async def handled(transport: ServiceBusTransport, count: int, prefetch: int = 1) -> list[Delivery]:
    taken: list[Delivery] = []
    async with aclosing(transport.receive(QUEUE, prefetch=prefetch)) as deliveries:
        while len(taken) < count:
            taken.append(await anext(deliveries))
            await transport.ack(taken[-1])
    return taken


async def test_within_a_session_messages_come_one_by_one_in_their_order(
    transport: ServiceBusTransport, queue: Entity
) -> None:
    for number in range(5):
        await transport.send(message(str(number)))
    async with aclosing(transport.receive(QUEUE, prefetch=5)) as deliveries:
        first = await anext(deliveries)
        more = asyncio.ensure_future(anext(deliveries))
        await transport.depths([QUEUE])
        assert not more.done()
        await transport.ack(first)
        rest = [await more]
        await transport.ack(rest[0])
        for _ in range(3):
            rest.append(await anext(deliveries))
            await transport.ack(rest[-1])
    assert [each.message.id for each in (first, *rest)] == ["0", "1", "2", "3", "4"]
    assert not queue.messages


async def test_several_sessions_are_in_hand_side_by_side(transport: ServiceBusTransport) -> None:
    for number in range(3):
        await transport.send(message(f"a{number}", b"a"))
        await transport.send(message(f"b{number}", b"b"))
    async with aclosing(transport.receive(QUEUE, prefetch=2)) as deliveries:
        both = [await anext(deliveries) for _ in range(2)]
    assert {each.message.id for each in both} == {"a0", "b0"}


async def test_an_idle_session_is_left_and_another_gets_its_turn(transport: ServiceBusTransport) -> None:
    for key in (b"a", b"b", b"c"):
        await transport.send(message(key.decode(), key))
    assert {each.message.id for each in await handled(transport, 3, prefetch=1)} == {"a", "b", "c"}


async def test_a_retry_keeps_its_session_and_goes_behind_what_is_in_it(
    transport: ServiceBusTransport, queue: Entity, emulator: ServiceBusEmulator
) -> None:
    theirs = [
        ServiceBusMessage(b"1", message_id="1", session_id="acme"),
        ServiceBusMessage(b"2", session_id="acme"),
    ]
    await sent_by_others(emulator, QUEUE, *theirs)
    async with aclosing(transport.receive(QUEUE, prefetch=1)) as deliveries:
        first = await anext(deliveries)
        assert first.message.key == b"acme"
        await transport.retry(first, first.message, delay=0, trail=b"trail")
        second = await anext(deliveries)
        await transport.ack(second)
        [held] = queue.messages.values()
        assert held.content.session_id == "acme"
        again = await anext(deliveries)
        assert (again.message, again.identity, again.attempt) == (first.message, first.identity, 2)
        assert second.message.body == b"2"
        await transport.ack(again)


async def test_a_session_s_lock_that_is_lost_takes_its_delivery_along(
    transport: ServiceBusTransport, queue: Entity, emulator: ServiceBusEmulator
) -> None:
    await transport.send(message("1"))
    async with aclosing(transport.receive(QUEUE, prefetch=1)) as deliveries:
        stale = await anext(deliveries)
        emulator.lose_locks()
        with pytest.raises(LeaseLost):
            await transport.retry(stale, stale.message, delay=0, trail=b"")
        assert len(queue.messages) == 1
        again = await anext(deliveries)
        with pytest.raises(LeaseLost):
            await transport.ack(stale)
        await transport.ack(again)
    assert (again.identity, len(queue.messages)) == (stale.identity, 0)


async def test_a_session_s_lock_is_renewed_while_its_message_is_in_hand(emulator: ServiceBusEmulator) -> None:
    queue = emulator.namespace.queue(QUEUE, Rules(sessions=True, lock=6))
    transport = ServiceBusTransport(emulator.url, counts=EmulatorCounts(emulator), sessions=[QUEUE])
    await transport.send(message("1"))
    async with aclosing(transport.receive(QUEUE, prefetch=1)) as deliveries:
        delivery = await anext(deliveries)
        before = queue.sessions.next_moment()
        assert before is not None
        await until(lambda: (queue.sessions.next_moment() or 0) > before)
        await transport.ack(delivery)
    await transport.close()
    assert not queue.messages


async def test_closing_gives_a_session_to_whoever_waits(
    transport: ServiceBusTransport, emulator: ServiceBusEmulator
) -> None:
    await transport.send(message("1"))
    other = ServiceBusTransport(emulator.url, counts=EmulatorCounts(emulator), sessions=[QUEUE])
    async with aclosing(transport.receive(QUEUE, prefetch=1)) as deliveries:
        await anext(deliveries)
        async with aclosing(other.receive(QUEUE, prefetch=1)) as others:
            waiting = asyncio.ensure_future(anext(others))
            await transport.depths([QUEUE])
            assert not waiting.done()
            await transport.close()
            assert (await waiting).message.id == "1"
    await other.close()


@pytest.mark.parametrize("key", [None, b"", b"\xff", b"x" * 129])
async def test_a_key_that_can_be_no_session_is_refused_before_the_broker_is_asked(
    transport: ServiceBusTransport, key: bytes | None
) -> None:
    with pytest.raises(PublishRefused) as refused:
        await transport.send(message("1", key))
    assert refused.value.permanent
    assert "key" in refused.value.remedy


async def test_a_dead_letter_and_what_is_sent_back_have_the_session_they_had(
    transport: ServiceBusTransport, queue: Entity, emulator: ServiceBusEmulator
) -> None:
    dead = emulator.namespace.queue(f"{QUEUE}_dlq")
    await sent_by_others(emulator, QUEUE, ServiceBusMessage(b"1", message_id="1", session_id="acme"))
    [delivery] = await handled(transport, 1)
    await transport.send(delivery.message, queue=f"{QUEUE}_dlq", trail=b"trail")
    [copy] = dead.messages.values()
    assert copy.content.session_id == "acme"
    await transport.send(delivery.message)
    [back] = queue.messages.values()
    assert back.content.session_id == "acme"
