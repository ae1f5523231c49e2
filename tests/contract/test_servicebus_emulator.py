"""The emulator of Azure Service Bus, driven by the real SDK: it speaks what the SDK speaks. What a real namespace
does beyond that, no test here can show.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    ServiceBusMessage,
    ServiceBusMessageState,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
)
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.amqp import AmqpAnnotatedMessage
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageNotFoundError,
    MessageSizeExceededError,
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusError,
    ServiceBusQuotaExceededError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

from support.patience import until
from support.servicebus.emulator import ServiceBusEmulator, emulated
from support.servicebus.entity import Rules
from support.servicebus.faults import Fault, Point
from support.servicebus.refusals import QUOTA, UNAUTHORIZED, Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from azure.servicebus import ServiceBusReceivedMessage
    from azure.servicebus.aio import ServiceBusReceiver

QUEUE, TOPIC = "orders", "events"
SOON = 0.5


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[ServiceBusEmulator]:
    async with emulated() as made:
        yield made


@pytest_asyncio.fixture
async def client(emulator: ServiceBusEmulator) -> AsyncIterator[ServiceBusClient]:
    async with connect(emulator) as made:
        yield made


def connect(emulator: ServiceBusEmulator, *, retries: int = 0) -> ServiceBusClient:
    return ServiceBusClient.from_connection_string(
        emulator.connection_string, retry_total=retries, retry_backoff_factor=0.01
    )


async def send(client: ServiceBusClient, *messages: ServiceBusMessage, queue: str = QUEUE) -> None:
    async with client.get_queue_sender(queue) as sender:
        for message in messages:
            await sender.send_messages(message)


async def one(receiver: ServiceBusReceiver) -> ServiceBusReceivedMessage:
    [message] = await receiver.receive_messages(max_message_count=1, max_wait_time=30)
    return message


async def nothing(receiver: ServiceBusReceiver) -> bool:
    return await receiver.receive_messages(max_message_count=1, max_wait_time=SOON) == []


def body_of(message: ServiceBusReceivedMessage) -> bytes:
    return b"".join(message.body)


# Sending and receiving.


async def test_a_message_arrives_with_its_bytes_its_properties_and_what_the_broker_adds(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE)
    body = bytes(range(256)) * 3
    # The SDK makes text of bytes that it sends as properties, and fails if they are none; not of a bytearray.
    properties: dict[str | bytes, Any] = {
        "text": "größer",
        "number": 7,
        "tenth": 0.1,
        "yes": True,
        "raw": bytearray(b"\xff"),
    }
    message = ServiceBusMessage(
        body,
        application_properties=properties,
        message_id="m-1",
        correlation_id="c-1",
        subject="placed",
        content_type="application/json",
        time_to_live=timedelta(hours=1),
    )
    await send(client, message)
    async with client.get_queue_receiver(QUEUE) as receiver:
        received = await one(receiver)
    assert body_of(received) == body
    assert received.application_properties == {
        b"text": "größer".encode(),
        b"number": 7,
        b"tenth": 0.1,
        b"yes": True,
        b"raw": b"\xff",
    }
    assert (received.message_id, received.correlation_id, received.subject) == ("m-1", "c-1", "placed")
    assert (received.content_type, received.time_to_live) == ("application/json", timedelta(hours=1))
    assert (received.sequence_number, received.delivery_count) == (1, 0)
    assert received.enqueued_time_utc is not None
    assert received.locked_until_utc is not None
    assert received.locked_until_utc - received.enqueued_time_utc > timedelta(seconds=59)


async def test_a_body_that_looks_like_a_batch_is_one_message(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE)
    parts = [b"\x00\x53\x75\xa0\x01a", b"\x00\x53\x75\xa0\x01b"]
    async with client.get_queue_sender(QUEUE) as sender:
        await sender.send_messages(AmqpAnnotatedMessage(data_body=parts))
    async with client.get_queue_receiver(QUEUE) as receiver:
        received = await one(receiver)
    assert list(received.body) == parts


async def test_every_message_of_a_batch_arrives_in_its_order(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE)
    async with client.get_queue_sender(QUEUE) as sender:
        await sender.send_messages([ServiceBusMessage(f"{number}".encode()) for number in range(20)])
    async with client.get_queue_receiver(QUEUE) as receiver:
        received = await receiver.receive_messages(max_message_count=20, max_wait_time=30)
    assert [body_of(message) for message in received] == [f"{number}".encode() for number in range(20)]


async def test_a_mebibyte_goes_both_ways(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    emulator.namespace.queue(QUEUE)
    body = bytes(range(256)) * 4096
    await send(client, ServiceBusMessage(body))
    async with client.get_queue_receiver(QUEUE) as receiver:
        assert body_of(await one(receiver)) == body


async def test_a_waiting_receiver_gets_what_is_sent_later(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE)
    async with client.get_queue_receiver(QUEUE) as receiver:
        waiting = asyncio.create_task(one(receiver))
        await send(client, ServiceBusMessage(b"late"))
        assert body_of(await waiting) == b"late"


async def test_two_receivers_never_have_the_same_message(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE)
    await send(client, *(ServiceBusMessage(f"{number}".encode()) for number in range(10)))
    async with client.get_queue_receiver(QUEUE) as first, client.get_queue_receiver(QUEUE) as second:
        mine = await first.receive_messages(max_message_count=5, max_wait_time=30)
        yours = await second.receive_messages(max_message_count=5, max_wait_time=30)
    numbers = {message.sequence_number for message in (*mine, *yours)}
    assert len(numbers) == len(mine) + len(yours) == 10


async def test_received_and_deleted_is_gone(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await send(client, ServiceBusMessage(b"once"))
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    async with client.get_queue_receiver(QUEUE, receive_mode=mode) as receiver:
        assert body_of(await one(receiver)) == b"once"
    assert not queue.messages


async def test_an_entity_that_is_not_there_is_not_found(client: ServiceBusClient) -> None:
    with pytest.raises(MessagingEntityNotFoundError):
        await send(client, ServiceBusMessage(b""), queue="nowhere")
    with pytest.raises(MessagingEntityNotFoundError):
        async with client.get_queue_receiver("nowhere"):
            pass


async def test_what_is_too_large_is_refused(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    queue = emulator.namespace.queue(QUEUE, Rules(max_message_bytes=1000))
    with pytest.raises(MessageSizeExceededError):
        await send(client, ServiceBusMessage(b"x" * 2000))
    assert not queue.messages


# Settling.


async def test_completed_is_gone(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await send(client, ServiceBusMessage(b""))
    async with client.get_queue_receiver(QUEUE) as receiver:
        await receiver.complete_message(await one(receiver))
    assert not queue.messages


async def test_abandoned_comes_back_and_is_counted(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    emulator.namespace.queue(QUEUE)
    await send(client, ServiceBusMessage(b""))
    async with client.get_queue_receiver(QUEUE) as receiver:
        first = await one(receiver)
        await receiver.abandon_message(first)
        again = await one(receiver)
    assert (again.sequence_number, again.delivery_count) == (first.sequence_number, 1)
    assert again.lock_token != first.lock_token


async def test_abandoned_too_often_is_dead_lettered_by_the_broker(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    queue = emulator.namespace.queue(QUEUE, Rules(max_deliveries=2))
    await send(client, ServiceBusMessage(b"poison"))
    async with client.get_queue_receiver(QUEUE) as receiver:
        for _ in range(2):
            await receiver.abandon_message(await one(receiver))
    assert not queue.messages
    async with client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        dead = await one(receiver)
    assert (body_of(dead), dead.dead_letter_reason) == (b"poison", "MaxDeliveryCountExceeded")


async def test_dead_lettered_goes_to_the_subqueue_with_its_reason_and_only_once(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await send(client, ServiceBusMessage(b"\xff", application_properties={"a": 1}))
    async with client.get_queue_receiver(QUEUE) as receiver:
        await receiver.dead_letter_message(await one(receiver), reason="NoCustomer", error_description="no 17")
    assert not queue.messages
    async with client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        dead = await one(receiver)
        assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("NoCustomer", "no 17")
        assert (body_of(dead), (dead.application_properties or {})[b"a"]) == (b"\xff", 1)
        with pytest.raises(ServiceBusError):
            await receiver.dead_letter_message(dead, reason="again")
    assert len(queue.dead_letters.messages) == 1


async def test_the_transfer_dead_letter_queue_is_a_queue_of_its_own(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await send(client, ServiceBusMessage(b"astray"))
    [held] = queue.messages.values()
    queue.transfer_dead_letters.enqueue(held.content)
    kind = ServiceBusSubQueue.TRANSFER_DEAD_LETTER
    async with client.get_queue_receiver(QUEUE, sub_queue=kind) as receiver:
        assert body_of(await one(receiver)) == b"astray"


async def test_deferred_comes_only_by_its_number(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await send(client, ServiceBusMessage(b"later"))
    async with client.get_queue_receiver(QUEUE) as receiver:
        message = await one(receiver)
        assert message.sequence_number is not None
        await receiver.defer_message(message)
        assert await nothing(receiver)
        [again] = await receiver.receive_deferred_messages(message.sequence_number)
        assert body_of(again) == b"later"
        await receiver.complete_message(again)
        assert not queue.messages
        with pytest.raises(MessageNotFoundError):
            await receiver.receive_deferred_messages(message.sequence_number)


# Locks.


async def test_an_expired_lock_gives_the_message_to_another_and_settles_nothing(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    queue = emulator.namespace.queue(QUEUE, Rules(lock=30))
    await send(client, ServiceBusMessage(b""))
    async with client.get_queue_receiver(QUEUE) as first, client.get_queue_receiver(QUEUE) as second:
        stale = await one(first)
        assert await nothing(second)
        emulator.pass_time(31)
        current = await one(second)
        assert current.delivery_count == 1
        with pytest.raises(MessageLockLostError):
            await first.complete_message(stale)
        await second.complete_message(current)
    assert not queue.messages


async def test_a_lock_that_is_renewed_holds(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    queue = emulator.namespace.queue(QUEUE, Rules(lock=30))
    await send(client, ServiceBusMessage(b""))
    async with client.get_queue_receiver(QUEUE) as receiver:
        message = await one(receiver)
        before = message.locked_until_utc
        emulator.pass_time(20)
        renewed = await receiver.renew_message_lock(message)
        assert before is not None
        assert renewed - before > timedelta(seconds=19)
        emulator.pass_time(20)
        await receiver.complete_message(message)
    assert not queue.messages


async def test_a_lost_lock_cannot_be_renewed(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    emulator.namespace.queue(QUEUE)
    await send(client, ServiceBusMessage(b""))
    async with client.get_queue_receiver(QUEUE) as receiver:
        message = await one(receiver)
        emulator.lose_locks()
        with pytest.raises(MessageLockLostError):
            await receiver.renew_message_lock(message)


async def test_a_lock_outlives_its_receiver(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    emulator.namespace.queue(QUEUE, Rules(lock=30))
    await send(client, ServiceBusMessage(b""))
    async with client.get_queue_receiver(QUEUE) as receiver:
        await one(receiver)
    async with client.get_queue_receiver(QUEUE) as receiver:
        assert await nothing(receiver)
        emulator.pass_time(31)
        assert (await one(receiver)).delivery_count == 1


# Peeking and scheduling.


async def test_peeking_shows_what_is_ready_locked_and_scheduled_and_changes_nothing(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE)
    later = datetime.now(UTC) + timedelta(hours=1)
    await send(client, ServiceBusMessage(b"locked"), ServiceBusMessage(b"ready"))
    await send(client, ServiceBusMessage(b"scheduled", scheduled_enqueue_time_utc=later))
    async with client.get_queue_receiver(QUEUE) as receiver:
        await one(receiver)
        peeked = await receiver.peek_messages(max_message_count=10, sequence_number=1)
        assert [body_of(message) for message in peeked] == [b"locked", b"ready", b"scheduled"]
        assert peeked[2].state == ServiceBusMessageState.SCHEDULED
        assert await receiver.peek_messages(max_message_count=10) == []
        assert body_of(await one(receiver)) == b"ready"


async def test_a_scheduled_message_comes_when_it_is_due_under_another_number(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE)
    when = datetime.now(UTC) + timedelta(minutes=10)
    async with client.get_queue_sender(QUEUE) as sender, client.get_queue_receiver(QUEUE) as receiver:
        [number] = await sender.schedule_messages(ServiceBusMessage(b"later"), when)
        emulator.pass_time(590)
        assert await nothing(receiver)
        emulator.pass_time(11)
        message = await one(receiver)
    assert body_of(message) == b"later"
    assert message.sequence_number != number


async def test_a_cancelled_message_never_comes(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    queue = emulator.namespace.queue(QUEUE)
    when = datetime.now(UTC) + timedelta(minutes=10)
    async with client.get_queue_sender(QUEUE) as sender:
        numbers = await sender.schedule_messages([ServiceBusMessage(b"a"), ServiceBusMessage(b"b")], when)
        await sender.cancel_scheduled_messages(numbers[0])
        emulator.pass_time(601)
        with pytest.raises(MessageNotFoundError):
            await sender.cancel_scheduled_messages(numbers[1])
    assert len(queue.messages) == 1


async def test_a_message_that_has_lived_long_enough_is_dead_lettered_where_that_is_wanted(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    queue = emulator.namespace.queue(QUEUE, Rules(dead_letter_expired=True))
    other = emulator.namespace.queue("other")
    for name in (QUEUE, "other"):
        await send(client, ServiceBusMessage(b"", time_to_live=timedelta(seconds=60)), queue=name)
    emulator.pass_time(61)
    assert (len(queue.messages), len(queue.dead_letters.messages)) == (0, 1)
    assert (len(other.messages), len(other.dead_letters.messages)) == (0, 0)
    async with client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        assert (await one(receiver)).dead_letter_reason == "TTLExpiredException"


# Sessions.


def in_session(session: str, body: bytes = b"") -> ServiceBusMessage:
    return ServiceBusMessage(body, session_id=session)


async def test_a_session_has_one_receiver_and_gets_its_messages_in_order(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE, Rules(sessions=True))
    await send(client, in_session("a", b"1"), in_session("b", b"other"), in_session("a", b"2"))
    async with client.get_queue_receiver(QUEUE, session_id="a") as receiver:
        received = await receiver.receive_messages(max_message_count=3, max_wait_time=SOON)
        assert [body_of(message) for message in received] == [b"1", b"2"]
        with pytest.raises(SessionCannotBeLockedError):
            async with client.get_queue_receiver(QUEUE, session_id="a"):
                pass
        for message in received:
            await receiver.complete_message(message)
    async with client.get_queue_receiver(QUEUE, session_id=NEXT_AVAILABLE_SESSION) as receiver:
        assert receiver.session.session_id == "b"
        assert body_of(await one(receiver)) == b"other"


async def test_a_receiver_of_any_session_waits_for_one_and_is_told_when_there_is_none(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE, Rules(sessions=True))
    with pytest.raises(OperationTimeoutError):
        async with client.get_queue_receiver(QUEUE, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=SOON):
            pass
    receiver = client.get_queue_receiver(QUEUE, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=30)
    waiting = asyncio.create_task(one(receiver))
    await send(client, in_session("late", b"at last"))
    assert body_of(await waiting) == b"at last"
    assert receiver.session.session_id == "late"
    await receiver.close()


async def test_a_session_has_a_state_and_its_lock_can_be_renewed(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE, Rules(sessions=True, lock=30))
    await send(client, in_session("a"))
    async with client.get_queue_receiver(QUEUE, session_id="a") as receiver:
        assert await receiver.session.get_state() is None
        await receiver.session.set_state(b"half way")
        assert await receiver.session.get_state() == b"half way"
        message = await one(receiver)
        emulator.pass_time(20)
        await receiver.session.renew_lock()
        emulator.pass_time(20)
        await receiver.complete_message(message)


async def test_a_lost_session_settles_nothing_and_another_gets_its_messages(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE, Rules(sessions=True))
    await send(client, in_session("a", b"1"))
    async with client.get_queue_receiver(QUEUE, session_id="a") as first:
        stale = await one(first)
        emulator.lose_locks()
        with pytest.raises(SessionLockLostError):
            await first.complete_message(stale)
    async with client.get_queue_receiver(QUEUE, session_id="a") as second:
        assert body_of(await one(second)) == b"1"


async def test_sessions_that_have_messages_are_listed(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE, Rules(sessions=True))
    await send(client, in_session("a"), in_session("b"), in_session("a"))
    assert [session async for session in client.list_queue_sessions(QUEUE)] == ["a", "b"]


async def test_a_queue_with_sessions_refuses_what_has_none(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE, Rules(sessions=True))
    with pytest.raises(ServiceBusError):
        await send(client, ServiceBusMessage(b""))
    with pytest.raises(ServiceBusError):
        async with client.get_queue_receiver(QUEUE):
            pass


# Topics.


def only(name: str) -> Any:
    def wants(properties: Mapping[Any, Any]) -> bool:
        return properties.get("for") in {None, name}

    return wants


async def test_a_topic_gives_a_copy_to_every_subscription_that_wants_it(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.topic(TOPIC)
    for name in ("billing", "mail"):
        emulator.namespace.subscription(TOPIC, name, wants=only(name))
    async with client.get_topic_sender(TOPIC) as sender:
        await sender.send_messages(ServiceBusMessage(b"all"))
        await sender.send_messages(ServiceBusMessage(b"one", application_properties={"for": "mail"}))
        when = datetime.now(UTC) + timedelta(minutes=1)
        await sender.schedule_messages(ServiceBusMessage(b"later"), when)
    emulator.pass_time(61)
    seen = {}
    for name in ("billing", "mail"):
        async with client.get_subscription_receiver(TOPIC, name) as receiver:
            received = await receiver.receive_messages(max_message_count=5, max_wait_time=SOON)
            seen[name] = [body_of(message) for message in received]
    assert seen == {"billing": [b"all", b"later"], "mail": [b"all", b"one", b"later"]}


async def test_a_subscription_has_its_own_dead_letters(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.topic(TOPIC)
    for name in ("billing", "mail"):
        emulator.namespace.subscription(TOPIC, name)
    async with client.get_topic_sender(TOPIC) as sender:
        await sender.send_messages(ServiceBusMessage(b"bill"))
    async with client.get_subscription_receiver(TOPIC, "billing") as receiver:
        await receiver.dead_letter_message(await one(receiver), reason="why")
    kind = ServiceBusSubQueue.DEAD_LETTER
    async with client.get_subscription_receiver(TOPIC, "billing", sub_queue=kind) as receiver:
        assert (await one(receiver)).dead_letter_reason == "why"
    async with client.get_subscription_receiver(TOPIC, "mail", sub_queue=kind) as receiver:
        assert await nothing(receiver)


# What goes wrong when a test wants it.


async def test_a_line_cut_before_a_send_stores_nothing(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    emulator.faults.plan(Point.SEND, Fault(cut_before=True))
    with pytest.raises(ServiceBusError):
        await send(client, ServiceBusMessage(b""))
    assert not queue.messages


async def test_a_line_cut_after_a_send_has_stored_it_and_a_repetition_doubles_it(
    emulator: ServiceBusEmulator,
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    emulator.faults.plan(Point.SEND, Fault(cut_after=True))
    async with connect(emulator, retries=3) as client:
        await send(client, ServiceBusMessage(b"", message_id="m-1"))
    assert [held.content.message_id for held in queue.messages.values()] == ["m-1", "m-1"]


async def test_a_refused_send_stores_nothing(emulator: ServiceBusEmulator, client: ServiceBusClient) -> None:
    queue = emulator.namespace.queue(QUEUE)
    emulator.faults.plan(Point.SEND, Fault(refuse=Refusal(QUOTA, "the queue is full")))
    with pytest.raises(ServiceBusQuotaExceededError):
        await send(client, ServiceBusMessage(b""))
    assert not queue.messages


async def test_an_answer_that_is_held_back_comes_when_it_is_let_through(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    queue, gate = emulator.namespace.queue(QUEUE), asyncio.Event()
    emulator.faults.plan(Point.SEND, Fault(hold=gate))
    sending = asyncio.create_task(send(client, ServiceBusMessage(b"")))
    await until(lambda: queue.messages)
    assert not sending.done()
    gate.set()
    await sending


async def test_a_line_cut_before_a_settlement_leaves_the_message_locked(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await send(client, ServiceBusMessage(b""))
    emulator.faults.plan(Point.SETTLE, Fault(cut_before=True))
    emulator.faults.plan(Point.MANAGE, *[Fault(cut_before=True)] * 3)
    async with client.get_queue_receiver(QUEUE) as receiver:
        with pytest.raises(ServiceBusError):
            await receiver.complete_message(await one(receiver))
    assert len(queue.messages) == 1


async def test_a_line_cut_after_a_settlement_has_settled(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    queue = emulator.namespace.queue(QUEUE)
    await send(client, ServiceBusMessage(b""))
    emulator.faults.plan(Point.SETTLE, Fault(cut_after=True))
    async with client.get_queue_receiver(QUEUE) as receiver:
        with pytest.raises(ServiceBusError):
            await receiver.complete_message(await one(receiver))
    assert not queue.messages


async def test_a_token_that_is_refused_is_an_authentication_error(
    emulator: ServiceBusEmulator, client: ServiceBusClient
) -> None:
    emulator.namespace.queue(QUEUE)
    emulator.faults.plan(Point.TOKEN, Fault(refuse=Refusal(UNAUTHORIZED, "InvalidSignature")))
    with pytest.raises(ServiceBusAuthenticationError):
        await send(client, ServiceBusMessage(b""))


async def test_a_client_comes_back_after_every_line_was_cut(emulator: ServiceBusEmulator) -> None:
    emulator.namespace.queue(QUEUE)
    async with connect(emulator, retries=3) as client, client.get_queue_sender(QUEUE) as sender:
        await sender.send_messages(ServiceBusMessage(b"before"))
        emulator.cut()
        await sender.send_messages(ServiceBusMessage(b"after"))
        async with client.get_queue_receiver(QUEUE) as receiver:
            received = await receiver.receive_messages(max_message_count=2, max_wait_time=30)
    assert [body_of(message) for message in received] == [b"before", b"after"]
