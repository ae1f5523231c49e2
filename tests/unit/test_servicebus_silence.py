"""A Service Bus that does not answer: nobody waits for ever, and what comes behind goes another way."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from redrive.errors import Unreachable
from redrive.message import Message
from redrive.transports.servicebus import patience
from redrive.transports.servicebus.batches import Batches
from redrive.transports.servicebus.outgoing import Outgoing
from redrive.transports.servicebus.patience import NoAnswer, Patience, within
from redrive.transports.servicebus.receiver import Receiver
from redrive.transports.servicebus.transport import ServiceBusTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SHORT = Patience(attempt=0.02, answer=0.05, end=0.05)
MESSAGE = Message(id="m-1", queue="orders", body=b"{}", sent_at=datetime(2030, 1, 2, tzinfo=UTC))


class FakeSender:
    def __init__(self, *, answers: bool) -> None:
        self.sent: list[Any] = []
        self._answers = answers

    async def send_messages(self, message: Any) -> None:
        if not self._answers:
            await asyncio.Event().wait()
        self.sent.append(message)

    async def close(self) -> None:
        if not self._answers:
            await asyncio.Event().wait()


def outgoing() -> Outgoing:
    return Outgoing.of_bytes(b"{}")


async def test_a_send_without_an_answer_is_told_and_the_next_goes_by_another_sender() -> None:
    senders: list[Any] = [FakeSender(answers=True), FakeSender(answers=False)]
    last = senders[0]
    batches = Batches("orders", senders.pop, SHORT)
    with pytest.raises(Unreachable):
        await batches.send(outgoing())
    await batches.send(outgoing())
    assert len(last.sent) == 1
    await batches.close()


async def test_closing_does_not_wait_for_a_send_that_gets_no_answer_and_whoever_sent_is_told() -> None:
    silent: Any = FakeSender(answers=False)
    batches = Batches("orders", lambda: silent, Patience(answer=3600, end=0.01))
    sending = asyncio.gather(*(batches.send(outgoing()) for _ in range(1)), return_exceptions=True)
    await asyncio.sleep(0)
    await batches.close()
    [told] = await sending
    assert isinstance(told, Unreachable)


async def test_sending_that_was_cancelled_begins_again_with_the_next_message() -> None:
    senders: list[Any] = [FakeSender(answers=True), FakeSender(answers=False)]
    last = senders[0]
    batches = Batches("orders", senders.pop, Patience(answer=3600, end=0.01))
    first = asyncio.create_task(batches.send(outgoing()))
    await asyncio.sleep(0)
    await batches.close()
    with pytest.raises(Unreachable):
        await first
    await batches.send(outgoing())
    assert len(last.sent) == 1


async def test_what_swallows_its_cancellation_is_not_waited_for() -> None:
    over = asyncio.Event()

    async def stubborn() -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(NoAnswer):
        await within(0.01, stubborn(), grace=0.01)
    over.set()


async def test_what_fails_as_its_asker_is_cancelled_is_no_noise() -> None:
    """Python tells of an exception that nobody looked at."""
    heard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: heard.append(told))

    async def fails() -> None:
        asking.cancel()
        raise RuntimeError("too late")

    asking = asyncio.create_task(within(1, fails()))
    await asyncio.wait({asking})
    assert asking.cancelled()
    await asyncio.sleep(0)
    gc.collect()
    assert not heard
    assert not patience._asked


@asynccontextmanager
async def silent_server() -> AsyncIterator[ServiceBusTransport]:
    over = asyncio.Event()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = ServiceBusTransport(f"servicebus-emulator://p:a2V5@127.0.0.1:{port}", patience=SHORT)
    try:
        yield transport
    finally:
        over.set()
        server.close()


async def test_a_server_that_says_nothing_is_unreachable_and_can_be_left() -> None:
    async with silent_server() as transport:
        with pytest.raises(Unreachable):
            await transport.send(MESSAGE)
        with pytest.raises(Unreachable):
            async with aclosing(transport.receive("orders", prefetch=1)) as deliveries:
                await anext(deliveries)
        await transport.close()


class Stuck:
    """A place that the SDK never comes back from."""

    links = ()

    async def run(self, _: Any) -> None:
        await asyncio.Event().wait()

    def stop(self) -> None: ...


async def test_a_receive_that_is_given_up_while_the_sdk_waits_for_something_ends() -> None:
    stuck: Any = Stuck()
    receiver = Receiver("orders", 1, [stuck], lambda *_: pytest.fail("nothing came"), Patience(end=0.01))
    async with aclosing(receiver.deliveries()) as deliveries:
        waiting = asyncio.ensure_future(anext(deliveries))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    assert receiver.finished
