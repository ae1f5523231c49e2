"""F20, K25: a network between us and RabbitMQ that is slow, hands on single bytes, swallows everything, or is not
there at all. Nothing arrives damaged, silence is noticed by missing heartbeats, and work goes on by itself.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from chaos.lab.killing import problems_at_rest
from chaos.lab.proxy import Proxy
from chaos.lab.rabbit import Rabbit
from chaos.lab.scenarios import Scenario
from chaos.lab.supervisor import Experiment
from redrive.clock import SystemClock, new_id
from redrive.errors import Unreachable
from redrive.message import Message
from support.opened_rabbitmq import opened
from support.patience import until

HEARTBEAT = 1.0


@pytest.fixture
def proxy(rabbitmq_url: str) -> Iterator[Proxy]:
    with Proxy(rabbitmq_url) as opened:
        yield opened


def a_message(size: int = 10) -> Message:
    body = bytes(number % 251 for number in range(size))
    return Message(id=new_id(), queue="orders", body=body, sent_at=SystemClock().now(), headers=(("size", size),))


@pytest.mark.parametrize(
    ("slices", "delay", "sizes"), [(1, 0.0, [0, 1, 300]), (1000, 0.01, [5, 131_072, 400_000])]
)
async def test_bytes_that_come_in_pieces_are_put_together_as_they_were(
    slices: int, delay: float, sizes: list[int], proxy: Proxy
) -> None:
    proxy.slices, proxy.delay = slices, delay
    messages = [a_message(size) for size in sizes * 3]
    async with opened(proxy.url) as transport:
        await asyncio.gather(*(transport.send(message) for message in messages))
        async with aclosing(transport.receive("orders", prefetch=4)) as deliveries:
            found = []
            for _ in messages:
                found.append(await anext(deliveries))
                await transport.ack(found[-1])
    sent = {message.id: (message.body, message.headers) for message in messages}
    assert {each.message.id: (each.message.body, each.message.headers) for each in found} == sent


async def test_silence_is_noticed_by_its_heartbeats_on_both_connections(proxy: Proxy) -> None:
    async with opened(proxy.url, heartbeat=HEARTBEAT) as transport:
        await transport.send(a_message())
        async with aclosing(transport.receive("orders", prefetch=1)) as deliveries:
            await transport.ack(await anext(deliveries))
            proxy.fall_silent()
            sending = asyncio.create_task(transport.send(a_message()))
            with pytest.raises(Unreachable, match="no sign of life from RabbitMQ for 2 s"):
                await anext(deliveries)
            with pytest.raises(Unreachable, match="no sign of life"):
                await sending
        proxy.speak_again()

        async def is_back() -> bool:
            try:
                await transport.send(a_message())
            except Unreachable:
                return False
            return True

        await until(is_back)


async def test_a_heartbeat_that_amqp_cannot_say_is_a_whole_second(rabbitmq_url: str) -> None:
    async with opened(rabbitmq_url, heartbeat=0.2) as transport:
        assert (await transport._publishing.connection())._heartbeat == 1


async def test_a_broker_that_says_nothing_to_a_new_connection_is_given_up(proxy: Proxy) -> None:
    proxy.fall_silent()
    async with opened(proxy.url, connect_timeout=0.2) as transport:
        with pytest.raises(Unreachable, match="cannot reach RabbitMQ"):
            await transport.send(a_message())
        proxy.speak_again()
        await transport.send(a_message())


@pytest.mark.parametrize("fault", ["slow", "in pieces", "silent", "refused"])
def test_a_worker_behind_a_bad_network_loses_nothing_and_finds_its_way_back(
    fault: str, rabbitmq_url: str, rabbitmq: Any, proxy: Proxy, experiment: Callable[..., Experiment]
) -> None:
    rabbit = Rabbit(proxy.url, rabbitmq.management_url, "quorum", direct=rabbitmq_url, heartbeat=HEARTBEAT)
    lab, play = experiment(broker=rabbit), Scenario(lots=10)
    play.set_stage(lab)
    worker = lab.start("work", forever=True)
    while not lab.handled():
        assert not worker.ended_within(0.01), lab.told()
    with_fault(proxy, fault)
    assert not worker.ended_within(2 * HEARTBEAT), lab.told()
    proxy.slices, proxy.delay, proxy.refusing = 0, 0.0, False
    proxy.speak_again()
    while rabbit.under_way():
        assert not worker.ended_within(0.02), lab.told()
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0, lab.told()
    lab.kills = 1  # a connection that is lost may repeat what the death of its process would
    play.come_to_rest(lab)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []


def with_fault(proxy: Proxy, fault: str) -> None:
    if fault == "slow":
        proxy.delay = 0.05
    elif fault == "in pieces":
        proxy.slices = 1
    elif fault == "silent":
        proxy.fall_silent()
    else:
        proxy.refusing = True
        proxy.cut_all()
