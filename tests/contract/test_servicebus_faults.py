"""F5, F7, F8 and F25 for the driver of Service Bus, on the emulator: lines cut before and after an answer,
and locks that end while a message is in hand. Nothing is lost, and what comes twice has one identity.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from redrive.errors import LeaseLost, Unreachable
from redrive.message import Message
from redrive.transports.servicebus.transport import ServiceBusTransport
from support.servicebus.counts import EmulatorCounts
from support.servicebus.emulator import ServiceBusEmulator, emulated
from support.servicebus.entity import Rules
from support.servicebus.faults import Fault, Point

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.transports import Delivery
    from support.servicebus.entity import Entity

QUEUE = "orders"
BEFORE, AFTER = Fault(cut_before=True), Fault(cut_after=True)


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[ServiceBusEmulator]:
    async with emulated() as made:
        yield made


@pytest.fixture
def queue(emulator: ServiceBusEmulator) -> Entity:
    return emulator.namespace.queue(QUEUE, Rules(max_deliveries=1000))


@pytest_asyncio.fixture
async def transport(emulator: ServiceBusEmulator, queue: Entity) -> AsyncIterator[ServiceBusTransport]:  # noqa: ARG001
    made = ServiceBusTransport(emulator.url, counts=EmulatorCounts(emulator))
    yield made
    await made.close()


def message(id_: str = "m-1") -> Message:
    return Message(id=id_, queue=QUEUE, body=b"{}", sent_at=datetime(2030, 1, 2, tzinfo=UTC))


async def all_of(emulator: ServiceBusEmulator, count: int) -> list[Delivery]:
    """What another process would find, whoever had it."""
    emulator.lose_locks()
    other = ServiceBusTransport(emulator.url, counts=EmulatorCounts(emulator))
    async with aclosing(other.receive(QUEUE, prefetch=max(count, 1))) as deliveries:
        found = [await anext(deliveries) for _ in range(count)]
    await other.close()
    return found


@pytest.mark.parametrize("cut", [BEFORE, AFTER])
async def test_f5_a_retry_whose_answer_is_lost_is_there_at_least_once_and_with_one_identity(
    transport: ServiceBusTransport, emulator: ServiceBusEmulator, queue: Entity, cut: Fault
) -> None:
    """The SDK sends again by itself: there may be two copies, and the journal and the inbox know them as one."""
    await transport.send(message())
    async with aclosing(transport.receive(QUEUE, prefetch=1)) as deliveries:
        first = await anext(deliveries)
        emulator.faults.plan(Point.SEND, cut)
        await transport.retry(first, first.message, delay=0, trail=b"trail")
    copies = await all_of(emulator, len(queue.messages))
    assert {(each.identity, each.attempt, each.trail) for each in copies} == {(first.identity, 2, b"trail")}


@pytest.mark.parametrize("cut", [BEFORE, AFTER])
async def test_f7_an_ack_whose_answer_is_lost_is_made_good_over_a_new_line(
    transport: ServiceBusTransport, emulator: ServiceBusEmulator, queue: Entity, cut: Fault
) -> None:
    """Done before the line was cut, the second try is told that nobody knows the lock: another might have it."""
    await transport.send(message())
    async with aclosing(transport.receive(QUEUE, prefetch=1)) as deliveries:
        delivery = await anext(deliveries)
        emulator.faults.plan(Point.SETTLE, cut)
        try:
            await transport.ack(delivery)
        except LeaseLost:
            assert cut is AFTER
    assert not queue.messages


async def test_f7_an_ack_that_never_gets_through_leaves_its_message_for_the_next(
    transport: ServiceBusTransport, emulator: ServiceBusEmulator
) -> None:
    await transport.send(message())
    async with aclosing(transport.receive(QUEUE, prefetch=1)) as deliveries:
        delivery = await anext(deliveries)
        emulator.faults.plan(Point.SETTLE, *[BEFORE] * 9)
        emulator.faults.plan(Point.MANAGE, *[BEFORE] * 9)
        with pytest.raises(Unreachable):
            await transport.ack(delivery)
        with pytest.raises(Unreachable):  # its line is broken, and whoever reads takes a new one
            await anext(deliveries)
    [again] = await all_of(emulator, 1)
    assert (again.identity, again.redelivered) == (delivery.identity, True)


async def test_f8_what_was_handed_to_two_is_one_identity_and_only_who_has_it_now_can_settle_it(
    transport: ServiceBusTransport, emulator: ServiceBusEmulator, queue: Entity
) -> None:
    await transport.send(message())
    other = ServiceBusTransport(emulator.url, counts=EmulatorCounts(emulator))
    async with (
        aclosing(transport.receive(QUEUE, prefetch=1)) as deliveries,
        aclosing(other.receive(QUEUE, prefetch=1)) as others,
    ):
        first = await anext(deliveries)
        emulator.lose_locks()
        second = await anext(others)
        with pytest.raises(LeaseLost):
            await transport.ack(first)
        assert len(queue.messages) == 1
        await other.ack(second)
    await other.close()
    assert (second.identity, second.redelivered, len(queue.messages)) == (first.identity, True, 0)


async def test_f25_locks_that_end_while_messages_are_in_hand_make_room_for_them_to_come_again(
    transport: ServiceBusTransport, emulator: ServiceBusEmulator, queue: Entity
) -> None:
    await asyncio.gather(*(transport.send(message(str(number))) for number in range(5)))
    async with aclosing(transport.receive(QUEUE, prefetch=5)) as deliveries:
        lost = [await anext(deliveries) for _ in range(5)]
        emulator.lose_locks()
        results = await asyncio.gather(*(transport.ack(each) for each in lost), return_exceptions=True)
        assert all(isinstance(result, LeaseLost) for result in results)
        again = [await anext(deliveries) for _ in range(5)]
        assert {each.identity for each in again} == {each.identity for each in lost}
        await asyncio.gather(*(transport.ack(each) for each in again))
    assert not queue.messages


async def test_a_line_that_is_cut_under_many_messages_in_hand_loses_none_of_them(
    transport: ServiceBusTransport, emulator: ServiceBusEmulator, queue: Entity
) -> None:
    await asyncio.gather(*(transport.send(message(str(number))) for number in range(20)))
    async with aclosing(transport.receive(QUEUE, prefetch=20)) as deliveries:
        held = [await anext(deliveries) for _ in range(20)]
        emulator.cut()
        results = await asyncio.gather(*(transport.ack(each) for each in held), return_exceptions=True)
    acked = {each.message.id for each, result in zip(held, results, strict=True) if result is None}
    left = {each.message.id for each in await all_of(emulator, len(queue.messages))}
    assert not acked & left
    assert all(result is None or isinstance(result, LeaseLost | Unreachable) for result in results)
    assert len(acked | left) == 20
