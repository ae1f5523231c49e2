"""Dead letters of ours in Service Bus's own dead-letter queue, on the emulator: settled into it in one step, read
back with their whole story.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from redrive.errors import LeaseLost, PublishRefused, Unreachable
from redrive.message import Message
from redrive.servicebus_origin import origin_of
from redrive.transports import Names
from redrive.transports.servicebus.transport import ServiceBusTransport
from support.servicebus.counts import EmulatorCounts
from support.servicebus.emulator import ServiceBusEmulator, emulated
from support.servicebus.faults import Fault, Point

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.transports import Delivery

ORDERS, DEAD = "orders", "orders/$DeadLetterQueue"
MAIL = "events/Subscriptions/mail"
DEAD_MAIL = f"{MAIL}/$DeadLetterQueue"


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[ServiceBusEmulator]:
    async with emulated() as made:
        made.namespace.queue(ORDERS)
        yield made


@pytest_asyncio.fixture
async def transport(emulator: ServiceBusEmulator) -> AsyncIterator[ServiceBusTransport]:
    names = Names(dead="{queue}/$DeadLetterQueue")
    made = ServiceBusTransport(emulator.url, names=names, counts=EmulatorCounts(emulator))
    yield made
    await made.close()


def message(queue: str = ORDERS) -> Message:
    sent_at = datetime(2030, 1, 2, tzinfo=UTC)
    return Message(id="m-1", queue=queue, body=b"\xff{}", sent_at=sent_at, headers=(("tenant", "acme"),))


async def take(transport: ServiceBusTransport, queue: str) -> Delivery:
    async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        return await anext(deliveries)


async def test_it_is_there_with_its_reason_its_error_and_all_that_happened_before(
    transport: ServiceBusTransport,
) -> None:
    assert transport.has_native_dead_letters(ORDERS)
    await transport.send(message())
    first = await take(transport, ORDERS)
    await transport.retry(first, first.message, delay=0, trail=b"one")
    second = await take(transport, ORDERS)

    await transport.dead_letter(second, reason="shop.NoCustomer", text="no customer 17", trail=b"one, two")

    dead = await take(transport, DEAD)
    origin = origin_of(dead.message)
    assert origin is not None
    assert origin.dead is not None
    assert (origin.dead.reason, origin.dead.description) == ("shop.NoCustomer", "no customer 17")
    assert (dead.trail, dead.identity) == (b"one, two", first.identity)
    assert (dead.message.id, dead.message.body, dead.message.headers) == ("m-1", b"\xff{}", (("tenant", "acme"),))
    assert {name: depth.total for name, depth in (await transport.depths((ORDERS,))).items()} == {DEAD: 1}
    await transport.ack(dead)


async def test_of_what_somebody_else_has_by_now_nothing_is_changed(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    await transport.send(message())
    taken = await take(transport, ORDERS)
    emulator.lose_locks()

    with pytest.raises(LeaseLost):
        await transport.dead_letter(taken, reason="", text="", trail=b"")
    assert {name: depth.total for name, depth in (await transport.depths((ORDERS,))).items()} == {ORDERS: 1}


@pytest.mark.parametrize("cut", [Fault(cut_before=True), Fault(cut_after=True)], ids=["before", "after"])
async def test_cut_off_while_it_is_settled_it_is_there_once(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport, cut: Fault
) -> None:
    await transport.send(message())
    taken = await take(transport, ORDERS)
    emulator.faults.plan(Point.SETTLE, cut)

    with suppress(LeaseLost, Unreachable):  # whoever is not answered knows nothing
        await transport.dead_letter(taken, reason="r", text="t", trail=b"x")
    places = [emulator.namespace.receivable(each) for each in (ORDERS, DEAD)]
    assert sum(len(each.messages) for each in places if each is not None) == 1


async def test_of_a_subscription_each_dies_where_it_lay_and_all_are_read_together(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    emulator.namespace.topic("events")
    emulator.namespace.subscription("events", "mail")
    emulator.namespace.queue("events.mail_retry")
    await transport.send(message("events"))
    first = await take(transport, MAIL)
    await transport.send(message("events"))
    await transport.retry(first, first.message, delay=0, trail=b"one")
    for _ in range(2):
        await transport.dead_letter(await take(transport, MAIL), reason="r", text="t", trail=b"story")

    for asked in (MAIL, DEAD_MAIL):
        assert {name: depth.total for name, depth in (await transport.depths([asked])).items()} == {DEAD_MAIL: 2}
    for _ in range(2):
        dead = await take(transport, DEAD_MAIL)
        assert dead.trail == b"story"
        await transport.ack(dead)
    assert await transport.depths((MAIL,)) == {}


async def test_nothing_is_sent_there(transport: ServiceBusTransport) -> None:
    assert not transport.has_native_dead_letters(DEAD)
    with pytest.raises(PublishRefused) as raised:
        await transport.send(message(), queue=DEAD)
    assert raised.value.permanent
