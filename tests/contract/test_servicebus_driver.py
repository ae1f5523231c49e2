"""What the driver for Service Bus does beyond the contract, on the emulator: foreign messages, the subqueue,
locks, and lines that are cut between a copy and the completion of what it replaces.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from azure.servicebus import ServiceBusMessage
from azure.servicebus.amqp import AmqpAnnotatedMessage
from msgspec.structs import replace

from redrive.control import RedriveTicket, read_ticket, stamp
from redrive.errors import LeaseLost, PublishRefused, TrailTooLong, Unreachable
from redrive.message import ErrorNote, Message, Overlay
from redrive.servicebus_origin import DeadLettered, origin_of
from redrive.transports.servicebus.transport import ServiceBusTransport
from support.patience import until
from support.servicebus.clients import dead_lettered_by_others, sent_by_others
from support.servicebus.counts import EmulatorCounts
from support.servicebus.emulator import ServiceBusEmulator, emulated
from support.servicebus.entity import Rules
from support.servicebus.faults import Fault, Point
from support.servicebus.refusals import QUOTA, TOO_LARGE, Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.transports import Delivery

QUEUE = "orders"
STANDARD = Rules(max_message_bytes=256 * 1024)


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[ServiceBusEmulator]:
    async with emulated() as made:
        yield made


@pytest_asyncio.fixture
async def transport(emulator: ServiceBusEmulator) -> AsyncIterator[ServiceBusTransport]:
    made = ServiceBusTransport(emulator.url, counts=EmulatorCounts(emulator))
    yield made
    await made.close()


def message(body: bytes = b"{}") -> Message:
    return Message(id="m-1", queue=QUEUE, body=body, sent_at=datetime(2030, 1, 2, tzinfo=UTC))


async def take(transport: ServiceBusTransport, queue: str = QUEUE) -> Delivery:
    async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        return await anext(deliveries)


async def test_a_message_of_somebody_else_s_keeps_its_properties_over_a_retry(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    theirs = ServiceBusMessage(
        b"\xffpart",
        application_properties={"tenant": "acme", "tries": 3},
        message_id="theirs",
        correlation_id="c-1",
        subject="placed",
        content_type="application/x-thing",
    )
    await sent_by_others(emulator, QUEUE, theirs)
    first = await take(transport)
    assert (first.message.id, first.message.body) == ("theirs", b"\xffpart")
    assert dict(first.message.headers) == {"tenant": "acme", "tries": 3}
    await transport.retry(first, first.message, delay=0, trail=b"trail")
    again = await take(transport)
    assert (again.message, again.identity, again.attempt) == (first.message, first.identity, 2)
    [held] = queue.messages.values()
    assert held.content.application_properties["tenant"] == "acme"
    assert held.content.message_id != "theirs"
    await transport.ack(again)
    assert not queue.messages


async def test_trap_6_a_dead_letter_is_sent_back_without_its_marks_and_the_letter_keeps_them(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await sent_by_others(emulator, QUEUE, ServiceBusMessage(b"bad", message_id="theirs", subject="placed"))
    await dead_lettered_by_others(emulator, QUEUE, "NoCustomer", "no 17")
    dead = await take(transport, f"{QUEUE}/$DeadLetterQueue")
    assert dict(dead.message.headers)["DeadLetterReason"] == "NoCustomer"
    ticket = RedriveTicket("redrive-1", "letter-1", 1, QUEUE)
    stamped = dead.message.with_headers(stamp(dead.message.headers, ticket, b"key"))
    await transport.send(stamped, queue=QUEUE)
    await transport.ack(dead)
    [back] = queue.messages.values()
    assert back.content.message_id == "redrive-1"  # under its own, duplicate detection would throw it away
    assert not set(back.content.application_properties) & {"DeadLetterReason", "DeadLetterErrorDescription"}
    assert not queue.dead_letters.messages
    again = await take(transport)
    assert (again.message.id, again.message.body) == ("theirs", b"bad")
    assert read_ticket(again.message.headers, QUEUE, b"key") == ticket
    await transport.retry(again, again.message, delay=0, trail=b"")
    assert (await take(transport)).message.id == "theirs"


async def test_guids_and_decimals_of_others_are_received_retried_and_sent_back_as_they_came(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    tenant, price = uuid.UUID(int=7), Decimal("1.50")
    theirs = AmqpAnnotatedMessage(
        value_body={"a": tenant}, application_properties={"tenant": tenant, "price": price}
    )
    await sent_by_others(emulator, QUEUE, theirs)
    [held] = queue.messages.values()
    came = held.content
    async with aclosing(transport.receive(QUEUE, prefetch=1)) as deliveries:
        first = await anext(deliveries)
        assert dict(first.message.headers) == {"tenant": str(tenant), "price": "1.50"}
        await transport.retry(first, first.message, delay=0, trail=b"trail")
        again = await anext(deliveries)
        assert again.message == first.message
        await transport.send(again.message)
        await transport.ack(again)
    [back] = queue.messages.values()
    assert (back.content.application_properties, back.content.body) == (came.application_properties, came.body)


async def test_every_copy_of_a_redrive_has_its_id_as_message_id_and_a_retry_of_it_a_new_one(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    """Duplicate detection knows the same redrive, sent again by whoever took it over, and not its retry."""
    queue = emulator.namespace.queue(QUEUE)
    ticket = RedriveTicket("redrive-1", "letter-1", 1, QUEUE)
    stamped = message().with_headers(stamp((), ticket, b"key"))
    await transport.send(stamped)
    await transport.send(stamped)
    assert [held.content.message_id for held in queue.messages.values()] == ["redrive-1"] * 2
    first = await take(transport)
    assert (first.message.id, first.message.headers) == ("m-1", stamped.headers)
    await transport.retry(first, first.message, delay=0, trail=b"")
    assert [held.content.message_id == "redrive-1" for held in queue.messages.values()] == [True, False]


async def test_a_queue_is_one_however_its_name_is_written(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    emulator.namespace.queue(QUEUE)
    await transport.send(message())
    first = await take(transport)
    await transport.release(first)
    assert (await take(transport, QUEUE.upper())).identity == first.identity


async def test_a_line_cut_between_the_copy_and_the_completion_leaves_two_of_one_identity(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await transport.send(message())
    first = await take(transport)
    emulator.faults.plan(Point.SETTLE, *[Fault(cut_before=True)] * 9)
    emulator.faults.plan(Point.MANAGE, Fault(), *[Fault(cut_before=True)] * 9)  # the first is the look at the lock
    with pytest.raises((Unreachable, LeaseLost)):
        await transport.retry(first, first.message, delay=0, trail=b"")
    assert len(queue.messages) == 2
    emulator.lose_locks()
    other = ServiceBusTransport(emulator.url, counts=EmulatorCounts(emulator))
    async with aclosing(other.receive(QUEUE, prefetch=2)) as deliveries:
        both = [await anext(deliveries) for _ in range(2)]
    await other.close()
    assert {delivery.identity for delivery in both} == {first.identity}


async def test_a_retry_of_what_somebody_else_has_makes_no_copy(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await transport.send(message())
    stale = await take(transport)
    emulator.lose_locks()
    with pytest.raises(LeaseLost):
        await transport.retry(stale, stale.message, delay=0, trail=b"")
    assert len(queue.messages) == 1


async def test_a_lock_is_renewed_while_its_message_is_in_hand(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE, Rules(lock=6))
    await transport.send(message())
    delivery = await take(transport)
    [held] = queue.messages.values()
    assert held.lock is not None
    token, before = held.lock.token, held.lock.until
    await until(lambda: held.lock is not None and held.lock.until > before)
    assert held.lock.token == token
    await transport.ack(delivery)
    assert not queue.messages


async def test_a_full_queue_refuses_for_now_and_a_queue_that_is_not_there_too(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    emulator.namespace.queue(QUEUE)
    emulator.faults.plan(Point.SEND, *[Fault(refuse=Refusal(QUOTA, "full"))] * 9)
    with pytest.raises(PublishRefused) as refused:
        await transport.send(message())
    assert not refused.value.permanent
    with pytest.raises(PublishRefused) as refused:
        await transport.send(message(), queue="nowhere")
    assert "redrive setup" in refused.value.remedy


async def test_a_property_that_the_sdk_cannot_send_is_refused_and_not_left_behind(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await sent_by_others(emulator, QUEUE, ServiceBusMessage(b"theirs"))
    delivery = await take(transport)
    await transport.ack(delivery)
    with pytest.raises(PublishRefused) as refused:
        await transport.send(delivery.message.with_headers((("long", 2**70),)))
    assert refused.value.permanent
    assert not queue.messages


async def test_a_body_that_a_copied_note_does_not_fit_is_another_message(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await transport.send(message(), trail=b"trail")
    [held] = queue.messages.values()
    note = bytes(held.content.application_properties["x-redrive"])
    await transport.ack(await take(transport))
    copied: dict[str | bytes, Any] = {"x-redrive": bytearray(note)}
    await sent_by_others(emulator, QUEUE, ServiceBusMessage(b"other", application_properties=copied))
    found = await take(transport)
    assert (found.trail, found.attempt, found.message.body) == (None, 1, b"other")


async def test_what_is_sent_at_once_goes_together(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await asyncio.gather(*(transport.send(message()) for _ in range(60)))
    assert (len(queue.messages), emulator.faults.reached[Point.SEND]) == (60, 1)


async def test_a_batch_that_is_refused_is_sent_one_by_one_and_each_is_told_its_own(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    refuse = Fault(refuse=Refusal(TOO_LARGE, "too large"))
    emulator.faults.plan(Point.SEND, refuse, Fault(), refuse, Fault())
    results = await asyncio.gather(*(transport.send(message()) for _ in range(3)), return_exceptions=True)
    assert [isinstance(result, PublishRefused) for result in results] == [False, True, False]
    assert len(queue.messages) == 2


async def test_a_line_that_is_cut_before_a_batch_is_answered_tells_nobody_that_it_is_sent(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    emulator.faults.plan(Point.SEND, *[Fault(cut_after=True)] * 99)
    results = await asyncio.gather(*(transport.send(message()) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(result, Unreachable) for result in results)
    assert len(queue.messages) >= 3


async def test_the_story_of_the_failures_gives_way_to_a_message_that_would_not_fit_with_it(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    emulator.namespace.queue(QUEUE, STANDARD)
    large = message(b"x" * (255 * 1024))
    with pytest.raises(TrailTooLong) as told:
        await transport.send(large, trail=b"t" * 5000)
    assert 0 < told.value.room < 1024
    await transport.send(large, trail=b"t" * told.value.room)
    assert (await take(transport)).trail == b"t" * told.value.room


async def test_the_last_error_gives_way_too_and_what_is_too_large_by_itself_is_refused_for_good(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    emulator.namespace.queue(QUEUE, STANDARD)
    failed = message(b"x" * (255 * 1024))
    await transport.send(replace(failed, overlay=Overlay(ErrorNote("e" * 5000, "", ""), 3)))
    assert (await take(transport)).message.overlay == Overlay(None, 3)
    with pytest.raises(PublishRefused) as refused:
        await transport.send(message(b"x" * (300 * 1024)))
    assert refused.value.permanent
    assert "256 KiB" in refused.value.remedy


async def test_one_property_holds_32_kib_and_so_the_story_is_shorter(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    with pytest.raises(TrailTooLong) as told:
        await transport.send(message(), trail=b"t" * 40_000)
    await transport.send(message(), trail=b"t" * told.value.room)
    [held] = queue.messages.values()
    assert 32_000 < len(bytes(held.content.application_properties["x-redrive"])) <= 32_767
    with pytest.raises(PublishRefused) as refused:
        await transport.send(message().with_headers((("long", "h" * 40_000),)))
    assert refused.value.permanent


async def test_a_copy_of_ours_that_the_broker_dead_letters_keeps_all_that_was_ours(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    sent = message().with_headers((("twice", 1), ("twice", 2), ("nested", [{"a": None}])))
    await transport.send(sent)
    first = await take(transport)
    await transport.retry(first, first.message, delay=0, trail=b"story")
    [held] = queue.messages.values()
    queue._dead_letter(held, "MaxDeliveryCountExceeded", "not consumed after 10 attempts")

    dead = await take(transport, f"{QUEUE}/$DeadLetterQueue")

    assert (dead.identity, dead.attempt, dead.trail) == (first.identity, 2, b"story")
    assert (dead.message.id, dead.message.queue, dead.message.headers) == (sent.id, QUEUE, sent.headers)
    origin = origin_of(dead.message)
    assert origin is not None
    assert origin.dead == DeadLettered("MaxDeliveryCountExceeded", "not consumed after 10 attempts")
    await transport.send(dead.message, queue=QUEUE)
    await transport.ack(dead)
    back = await take(transport)
    assert (back.message.headers, back.message.properties, back.attempt) == (sent.headers, None, 1)
    await transport.ack(back)
