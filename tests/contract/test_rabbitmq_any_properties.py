"""Messages of others with any properties, through a real broker: retried and put back, all bytes kept."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from redrive.clock import new_id
from redrive.message import Message
from redrive.transports.rabbitmq import properties as props
from redrive.transports.rabbitmq.arrival import Arrived, unpack
from redrive.transports.rabbitmq.transport import RabbitTransport
from support import amqp_values

if TYPE_CHECKING:
    from redrive.transports import Delivery

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MANY = 40
_TAKEN_OFF = (props.USER_ID, props.EXPIRATION, props.CLUSTER_ID)
"""Not by the broker but by us, so that they are not there when somebody looks."""

batches = st.lists(
    st.tuples(amqp_values.properties(amqp_values.tables_that_rabbitmq_keeps), st.binary(max_size=50)),
    min_size=MANY,
    max_size=MANY,
)


@settings(
    max_examples=3,
    phases=[Phase.generate],  # to shrink what a broker has to answer for takes minutes
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.large_base_example,
    ],
)
@given(batches)
def test_any_properties_come_back_as_they_were(rabbitmq_url: str, batch: list[tuple[bytes, bytes]]) -> None:
    asyncio.run(_there_and_back(rabbitmq_url, [foreign(sendable(raw), body) for raw, body in batch]))


async def _there_and_back(url: str, messages: list[Message]) -> None:
    transport, queue = RabbitTransport(url), f"orders_{new_id()}"
    try:
        await _compare(transport, queue, messages)
    finally:
        await transport.close()


async def _compare(transport: RabbitTransport, queue: str, messages: list[Message]) -> None:
    await asyncio.gather(*(transport.send(message, queue=queue) for message in messages))
    first = await taken(transport, queue, len(messages))
    assert sorted(raw_of(delivery) for delivery in first) == sorted(raw(message) for message in messages)
    await asyncio.gather(*(transport.retry(each, each.message, delay=0.1, trail=b"story") for each in first))
    again = await taken(transport, queue, len(messages))
    came = {delivery.identity: (delivery.message.properties, delivery.message.body) for delivery in first}
    assert {each.identity: (each.message.properties, each.message.body) for each in again} == came


async def taken(transport: RabbitTransport, queue: str, count: int) -> list[Delivery]:
    async with asyncio.timeout(60), aclosing(transport.receive(queue, prefetch=count)) as deliveries:
        return [await anext(deliveries) for _ in range(count)]


def sendable(given_properties: bytes) -> bytes:
    found = props.fields(given_properties)
    kept = {flag: field for flag, field in found.items() if flag not in _TAKEN_OFF}
    return props.join(kept | {props.DELIVERY_MODE: props.PERSISTENT})


def foreign(given_properties: bytes, body: bytes) -> Message:
    return unpack(Arrived("orders", b"\x00\x00", given_properties, body, NOW)).message


def raw(message: Message) -> bytes:
    return (message.properties or b"").removeprefix(b"amqp\x00\x00\x00")


def raw_of(delivery: Delivery) -> bytes:
    where = b"amqp\x00\x00" + bytes((len(delivery.queue),)) + delivery.queue.encode()
    return (delivery.message.properties or b"").removeprefix(where)
