"""The broker runs out of memory and reads nothing any more from those who publish. Publishing fails as
unreachable, acknowledgements get through on the other connection, and everything goes on by itself when there is
memory again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import aclosing, closing

from chaos.lab.rabbit import Looking
from redrive.clock import SystemClock, new_id
from redrive.errors import Unreachable
from redrive.message import Message
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.patience import until
from support.rabbitmq_server import PrivateRabbit


def a_message() -> Message:
    return Message(id=new_id(), queue="orders", body=b"{}", sent_at=SystemClock().now())


async def unreachable(transport: RabbitTransport, message: Message) -> str:
    try:
        await transport.send(message)
    except Unreachable as error:
        return str(error)
    return ""


async def test_publishing_waits_for_memory_and_acknowledgements_do_not(own_rabbitmq: PrivateRabbit) -> None:
    transport = RabbitTransport(own_rabbitmq.url, publish_timeout=1.5)
    first, during = [a_message() for _ in range(6)], [a_message() for _ in range(3)]
    try:
        for message in first:
            await transport.send(message)
        async with aclosing(transport.receive("orders", prefetch=3)) as deliveries:
            in_hand = [await anext(deliveries) for _ in range(3)]
            own_rabbitmq.ctl("set_vm_memory_high_watermark", "0.0000001")
            told = [await unreachable(transport, message) for message in during]
            assert all(told), "nobody was told that it was sent"
            assert "blocks publishing" in told[-1], "it is known by now, and nothing was written"
            for delivery in in_hand:
                await transport.ack(delivery)
            in_hand = [await anext(deliveries) for _ in range(3)]  # so the acks have arrived
            for delivery in in_hand:
                await transport.release(delivery)
        connection = await transport._publishing.connection()
        sending = asyncio.create_task(transport.send(last := a_message()))
        own_rabbitmq.ctl("set_vm_memory_high_watermark", "0.8")
        await asyncio.gather(sending, return_exceptions=True)

        async def is_sent() -> bool:
            return not await unreachable(transport, last)

        await until(is_sent)
        assert await transport._publishing.connection() is connection
    finally:
        await transport.close()
    with closing(Looking(own_rabbitmq.url)) as looking:
        lying = Counter(each.properties.message_id for each in looking.read("orders"))
    assert {message.id for message in first[:3]}.isdisjoint(lying)
    assert {message.id for message in first[3:]} | {last.id} <= lying.keys()
    assert lying.keys() <= {message.id for message in (*first[3:], *during, last)}, "only what somebody sent"
