"""F6, K11: publications that a real broker refuses, each for its own reason. They are told apart, the connection
and whatever else travels on it survive, and nothing is acknowledged that no other sink has taken.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from redrive import App, Permanent, Transient
from redrive.clock import SystemClock, new_id
from redrive.errors import PublishRefused, RedriveError, Unreachable
from redrive.message import Message
from redrive.transports import Transport
from redrive.transports.rabbitmq.content import MAGIC
from redrive.transports.rabbitmq.topology import QueueSpec
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.opened_rabbitmq import opened
from support.patience import until
from support.rabbitmq_server import PrivateRabbit, RabbitServer, vhost_of
from support.workshop import workshop

TOO_LARGE = 200_000
FULL = {"x-max-length": 1, "x-overflow": "reject-publish"}


def a_message(queue: str, body: bytes = b"{}", **fields: Any) -> Message:
    return Message(id=new_id(), queue=queue, body=body, sent_at=SystemClock().now(), **fields)


async def outcome(transport: RabbitTransport, message: Message) -> RedriveError | None:
    try:
        await transport.send(message)
    except RedriveError as error:
        return error
    return None


async def among_others(transport: RabbitTransport, refused: Message) -> PublishRefused:
    """What one message is told that is refused while others travel on the same connection, which survives it."""
    await transport.send(a_message("good"))
    connection = await transport._publishing.connection()
    others = [a_message("good") for _ in range(20)]
    told, *of_others = await asyncio.gather(*(outcome(transport, each) for each in (refused, *others)))
    assert isinstance(told, PublishRefused), told
    assert all(each is None or type(each) is Unreachable for each in of_others), "they are not refused themselves"
    again = [message for message, error in zip(others, of_others, strict=True) if error is not None]
    assert [await outcome(transport, each) for each in again] == [None] * len(again)
    assert await transport._publishing.connection() is connection
    return told


async def test_what_reaches_no_queue_is_refused_for_good(rabbitmq: RabbitServer, rabbitmq_url: str) -> None:
    async with opened(rabbitmq_url) as setting_up:
        await setting_up.send(a_message("gone"))
        await setting_up.send(a_message("good"))
    async with opened(rabbitmq_url, declare="never") as transport:
        await transport.send(a_message("gone"))  # so it is known to be there
        rabbitmq.api("DELETE", f"/queues/{quote(vhost_of(rabbitmq_url), safe='')}/gone")

        told = await among_others(transport, a_message("gone"))
        assert told.permanent
        assert "redrive setup" in str(told.remedy)


async def test_a_queue_that_somebody_deletes_is_made_again(rabbitmq: RabbitServer, rabbitmq_url: str) -> None:
    async with opened(rabbitmq_url) as transport:
        await transport.send(a_message("gone"))
        rabbitmq.api("DELETE", f"/queues/{quote(vhost_of(rabbitmq_url), safe='')}/gone")
        await transport.send(a_message("gone"))

        assert (await transport.depths(["gone"]))["gone"].ready == 1


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum"}], ids=["classic", "quorum"])
async def test_a_full_queue_refuses_for_now(arguments: dict[str, Any], rabbitmq_url: str) -> None:
    async with opened(rabbitmq_url) as transport:
        await (await transport.administration()).declare_queue(QueueSpec("full", {**FULL, **arguments}))

        async def is_full() -> bool:
            return await outcome(transport, a_message("full")) is not None

        await until(is_full)  # a quorum queue counts a little late
        told = await among_others(transport, a_message("full"))
        assert not told.permanent
        assert "full" in str(told.remedy)


async def test_without_permission_to_write_everything_is_refused_for_good(
    rabbitmq: RabbitServer, rabbitmq_url: str
) -> None:
    user = a_user(rabbitmq, rabbitmq_url, write="^forbidden$")
    async with opened(rabbitmq_url) as others, opened(user) as transport:
        await others.send(a_message("orders"))
        told = await outcome(transport, a_message("orders"))

        assert isinstance(told, PublishRefused)
        assert told.permanent
        assert "permission" in str(told.remedy)
        connection = await transport._publishing.connection()
        assert isinstance(await outcome(transport, a_message("orders")), PublishRefused)
        assert await transport._publishing.connection() is connection


async def test_an_exchange_that_does_not_exist_refuses_for_good(rabbitmq_url: str) -> None:
    came_as = MAGIC + b"\x04gone\x03key" + b"\x00\x00"
    async with opened(rabbitmq_url) as transport:
        await transport.send(a_message("good"))
        connection = await transport._publishing.connection()
        with pytest.raises(PublishRefused) as told:
            await transport.send_to_origin(a_message("orders", properties=came_as))

        assert told.value.permanent
        await transport.send(a_message("good"))
        assert await transport._publishing.connection() is connection


async def test_a_body_larger_than_the_broker_takes_is_refused_for_good(own_rabbitmq: PrivateRabbit) -> None:
    own_rabbitmq.ctl("eval", f"application:set_env(rabbit, max_message_size, {TOO_LARGE}).")
    async with opened(own_rabbitmq.url) as transport:
        for size in (TOO_LARGE + 1, 2**20 + 1, 20 * 2**20):
            told = await among_others(transport, a_message("good", b"x" * size))
            assert told.permanent
            assert "max_message_size" in str(told.remedy)
        await transport.send(a_message("good", b"x" * TOO_LARGE))


async def test_a_worker_that_may_not_write_loses_nothing(
    rabbitmq: RabbitServer, rabbitmq_url: str, tmp_path: Path
) -> None:
    """Neither retries nor the dead-letter queue can be written: the store takes all."""
    app = App("shop")

    @app.handler("orders")
    async def fail(number: int) -> None:
        raise Transient("now") if number % 2 else Permanent("never")

    user = a_user(rabbitmq, rabbitmq_url, write="^forbidden$")
    async with opened(rabbitmq_url) as producer:
        for number in range(10):
            await producer.send(
                Message.create(id=new_id(), sent_at=SystemClock().now(), queue="orders", data=number)
            )
    async with workshop(app, tmp_path, broker_url=user, dead_letters={"sink": "queue"}) as shop:
        await until(lambda: as_many_letters(shop, 10))
        await until(shop.empty)
        assert {letter.message.data for letter in await shop.letters()} == set(range(10))


async def nothing_in(transport: Transport, queue: str) -> bool:
    return queue not in await transport.depths([queue])


async def as_many_letters(shop: Any, number: int) -> bool:
    return len(await shop.letters()) == number


async def test_what_cannot_wait_because_the_retry_queue_is_full_comes_again_at_once(
    rabbitmq_url: str, tmp_path: Path
) -> None:
    app, done, failing = App("shop"), set[int](), set(range(6))

    @app.handler("orders")
    async def heal(number: int) -> None:
        if number in failing:
            failing.discard(number)
            raise Transient("the first time")
        done.add(number)

    async with workshop(app, tmp_path, broker_url=rabbitmq_url, start=False) as shop:
        assert isinstance(shop.transport, RabbitTransport)
        administration = await shop.transport.administration()
        await administration.declare_queue(QueueSpec("orders_retry.100", FULL))
        await shop.transport.send(a_message("orders_retry.100"))
        await shop.send("orders", *range(6))
        shop.start()
        await until(lambda: done == set(range(6)))
        await until(lambda: nothing_in(shop.transport, "orders"))
        assert await shop.letters() == []


def a_user(server: RabbitServer, url: str, *, write: str) -> str:
    """The URL for a new user of that virtual host, who may write to what this pattern says."""
    name = f"user{new_id()[-12:]}"
    server.api("PUT", f"/users/{name}", {"password": "secret", "tags": ""})
    rights = {"configure": ".*", "read": ".*", "write": write}
    server.api("PUT", f"/permissions/{quote(vhost_of(url), safe='')}/{name}", rights)
    return url.replace("guest:guest@", f"{name}:secret@")
