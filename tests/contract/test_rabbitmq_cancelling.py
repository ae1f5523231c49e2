"""Whoever is cancelled, at whatever moment, leaves nothing behind on the broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from redrive.errors import Unreachable
from redrive.message import Message
from redrive.transports.rabbitmq import wire
from redrive.transports.rabbitmq.channel import Deaf
from redrive.transports.rabbitmq.methods import Basic
from redrive.transports.rabbitmq.topology_choice import Choice, choose
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.patience import until

MESSAGES = 20


@pytest_asyncio.fixture(params=["delay-queues", "plain-queues"])
async def transport(request: pytest.FixtureRequest, rabbitmq_url: str) -> AsyncIterator[RabbitTransport]:
    """Of two topologies: one consumer for a queue, and two."""
    made = RabbitTransport(rabbitmq_url, topology=choose(Choice(topology=request.param)))
    yield made
    await made.close()


async def test_a_receiver_that_is_never_asked_for_a_delivery_is_not_kept(transport: RabbitTransport) -> None:
    never = [transport.receive("orders", prefetch=5) for _ in range(3)]
    assert not transport._receivers
    for each in never:
        await each.aclose()


async def test_a_receiver_cancelled_at_any_moment_holds_no_message_and_no_channel(
    transport: RabbitTransport,
) -> None:
    sent_at = datetime(2030, 1, 1, tzinfo=UTC)
    for number in range(MESSAGES):
        await transport.send(Message(id=str(number), queue="orders", body=b"{}", sent_at=sent_at))
    connection = await transport._consuming.connection()
    before = len(connection._channels)

    for turns in range(60):
        async with aclosing(transport.receive("orders", prefetch=5)) as deliveries:
            waiting = asyncio.ensure_future(anext(deliveries))
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await transport.release(await waiting)

    administration = await transport.administration()

    async def nobody_is_there() -> bool:
        looked = [await administration.look(name) for name in transport._known.topology.consumed("orders")]
        held = MESSAGES - sum(look.messages for look in looked if look)
        return held == 0 and not any(look.consumers for look in looked if look)

    await until(nobody_is_there)
    await until(lambda: _same(len(connection._channels), before))
    assert connection.why_lost is None


async def _same(first: int, second: int) -> bool:
    return first == second


async def test_channels_that_both_sides_close_at_once_do_not_end_those_that_come_after(
    rabbitmq_url: str,
) -> None:
    transport = RabbitTransport(rabbitmq_url)
    connection = await transport._consuming.connection()
    for _ in range(20):
        first = await connection.channel(Deaf())
        first.write(wire.ack(first.number, 999))  # the broker closes the channel for it
        await first.close()
        second = await connection.channel(Deaf())
        for _ in range(3):
            await second.call(Basic.Qos(prefetch_count=1))
        await second.close()
    assert connection.why_lost is None
    await transport.close()


async def test_a_question_without_an_answer_ends_its_channel_and_no_other(rabbitmq_url: str) -> None:
    transport = RabbitTransport(rabbitmq_url)
    connection = await transport._consuming.connection()
    silent, other = await connection.channel(Deaf()), await connection.channel(Deaf())
    with pytest.raises(Unreachable, match="no answer"):
        await silent.call(Basic.Recover(requeue=True), within=0)
    await other.call(Basic.Qos(prefetch_count=1))
    assert connection.why_lost is None
    await transport.close()
