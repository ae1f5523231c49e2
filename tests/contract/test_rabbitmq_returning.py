"""A quorum queue with a delivery limit drops what is given back too often. A message that comes near the limit
that RabbitMQ 4 sets by itself stays in hand instead, and is handed out again.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import structlog

from redrive import App
from redrive.transports.rabbitmq import returning
from redrive.transports.rabbitmq.returning import OFTEN
from support.at_work import settings_on, working
from support.opened_rabbitmq import opened, taken
from support.patience import until
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 30.0
TIMES = 5
"""With these it would be given back more often than the queue allows."""
LIMIT = OFTEN + 2


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returning, "_AGAIN", 0.02)


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        client.declare("theirs", queue_type="quorum", delivery_limit=LIMIT)
        yield client


async def give_back(other: PlainClient, times: int) -> None:
    for _ in range(times):
        tag = await until(lambda: _got(other))
        other.channel.basic_reject(tag, requeue=True)


def _got(other: PlainClient) -> int | None:
    method, _, _ = other.channel.basic_get("theirs")
    return None if method is None else int(method.delivery_tag)


async def test_what_was_given_back_often_is_handed_out_again_and_costs_one_return_for_each_receiver(
    rabbitmq_url: str, other: PlainClient
) -> None:
    other.publish("theirs", b"{}", message_id="m-1")
    await give_back(other, OFTEN)
    async with opened(rabbitmq_url) as transport:
        with structlog.testing.capture_logs() as logs:
            async with asyncio.timeout(PATIENCE), aclosing(transport.receive("theirs", prefetch=3)) as deliveries:
                for _ in range(TIMES):
                    delivery = await anext(deliveries)
                    assert (delivery.message.id, delivery.redelivered) == ("m-1", True)
                    await transport.release(delivery)
                    await transport.release(delivery)  # once is enough
                other.publish("theirs", b"{}", message_id="m-2")  # the others do not wait for it
                got = [await anext(deliveries), await anext(deliveries)]
                assert {each.message.id for each in got} == {"m-1", "m-2"}
                for each in got:
                    await transport.release(each)
        [told] = [line for line in logs if "were given back often" in line["event"]]
        assert (told["queue"], told["times"], told["log_level"]) == ("theirs", OFTEN, "error")
    found = {each.properties.message_id: each for each in [await other.next("theirs"), await other.next("theirs")]}
    assert found["m-1"].headers["x-delivery-count"] == OFTEN + 1


async def test_behind_its_receiver_it_is_given_back(rabbitmq_url: str, other: PlainClient) -> None:
    other.publish("theirs", b"{}")
    await give_back(other, OFTEN)
    async with opened(rabbitmq_url) as transport:
        delivery = await taken(transport, "theirs")
        await transport.release(delivery)
        assert (await other.next("theirs")).headers["x-delivery-count"] == OFTEN + 1


async def test_what_was_given_back_less_often_is_there_for_others_at_once(
    rabbitmq_url: str, other: PlainClient
) -> None:
    other.publish("theirs", b"{}")
    await give_back(other, OFTEN - 1)
    async with opened(rabbitmq_url) as transport, aclosing(transport.receive("theirs", prefetch=1)) as deliveries:
        await transport.release(await anext(deliveries))
        assert (await anext(deliveries)).receipt.tag == 2


async def test_a_worker_that_can_neither_retry_nor_record_it_does_not_use_up_its_deliveries(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.consumer._AGAIN", 0.02)
    app, tries = App("shop"), 0

    @app.handler("theirs")
    async def handle(_body: bytes) -> None:
        nonlocal tries
        tries += 1
        raise TimeoutError("worth another try")

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no retry")

    monkeypatch.setattr("redrive.transports.rabbitmq.transport.RabbitTransport.retry", broken)
    async with working(app, settings_on(rabbitmq_url, tmp_path)):
        other.publish("theirs", b"{}")
        await until(lambda: tries > 2 * LIMIT)
    assert (await other.next("theirs")).headers["x-delivery-count"] == OFTEN + 1
