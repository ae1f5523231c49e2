"""F8, F23, F27, F28 on RabbitMQ: messages that come twice, handlers that always fail, that fail all at once, and
that hold up everything. Each is one letter and one effect, attempts are counted, and the broker keeps what
nobody can do.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.lab import places
from chaos.lab.killing import problems_at_rest
from chaos.lab.premises import EFFECTS, ORDERS
from chaos.lab.rabbit import Looking, Rabbit
from chaos.lab.scenarios import SUCCEED, Scenario
from chaos.lab.supervisor import Experiment, Nursery
from redrive import App, Transient
from redrive.breaker import BreakerState
from support.patience import until
from support.workshop import Workshop, workshop

COPIES = 3


def test_what_somebody_sends_several_times_to_two_workers_is_one_letter_and_one_effect(
    rabbit: Rabbit, experiment: Callable[..., Experiment], second_nursery: Nursery
) -> None:
    lab, play = experiment(broker=rabbit), Scenario(lots=1)
    play.set_stage(lab)  # the queues are there
    play.come_to_rest(lab)
    ids = [f"message {number}" for number in range(10)]
    with closing(Looking(rabbit.url)) as elsewhere:
        for each in ids * COPIES:
            elsewhere.publish(ORDERS, b'{"plan": "fail"}', message_id=each, app_id="elsewhere")
            elsewhere.publish(EFFECTS, b'{"plan": "effect"}', message_id=each)
    workers = []
    for nursery in (lab.nursery, second_nursery):
        lab.nursery = nursery
        workers.append(lab.start("work", forever=True))
    lab.wait_until_they_listen(workers)
    while rabbit.under_way():
        assert not workers[0].ended_within(0.02), lab.told()
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0], lab.told()

    letters = Counter(letter.message_id for letter in places.letters(lab.premises.letters))
    assert {each: letters[each] for each in ids} == dict.fromkeys(ids, 1)
    effects = places.effects(lab.premises.effects)
    assert {each: effects[each] for each in ids} == dict.fromkeys(ids, 1)


async def test_a_handler_that_always_fails_runs_as_often_as_it_may_and_no_more(
    rabbitmq_url: str, tmp_path: Path
) -> None:
    app, runs = App("shop"), Counter[int]()

    @app.handler("orders")
    async def fail(number: int) -> None:
        runs[number] += 1
        raise Transient("always")

    retry = {"attempts": 4, "delays": ["10ms"], "jitter": "none"}
    worker = {"breaker_failures": 0}
    async with workshop(app, tmp_path, broker_url=rabbitmq_url, retry=retry, worker=worker) as shop:
        await shop.send("orders", *range(10))
        await until(lambda: as_many_letters(shop, 10))
        await until(shop.empty)

        assert runs == dict.fromkeys(range(10), 4)
        assert {len(letter.failures) for letter in await shop.letters()} == {4}


async def as_many_letters(shop: Workshop, number: int) -> bool:
    return len(await shop.letters()) == number


async def test_while_everything_fails_the_messages_stay_with_the_broker_and_are_handled_when_it_is_over(
    rabbitmq_url: str, tmp_path: Path
) -> None:
    app, outage, done = App("shop"), asyncio.Event(), set[int]()
    outage.set()

    @app.handler("orders")
    async def charge(number: int) -> None:
        if outage.is_set():
            raise Transient("the bank is away")
        done.add(number)

    limits = {"breaker_failures": 5, "concurrency": 2, "breaker_pause": "200ms"}
    retry = {"attempts": 1}
    async with workshop(app, tmp_path, broker_url=rabbitmq_url, worker=limits, retry=retry) as shop:
        [consumer] = shop.worker.consumers
        await shop.send("orders", *range(60))
        await until(lambda: consumer.breaker.state is BreakerState.OPEN)
        outage.clear()
        await until(lambda: done and consumer.breaker.state is BreakerState.CLOSED)
        # One that was given back is for a moment neither in the queue nor in anybody's hand, as far as is told.
        await until(lambda: as_many_letters(shop, 60 - len(done)))
        await until(shop.empty)

        dead = {letter.message.data for letter in await shop.letters()}
        assert len(dead) <= 5 + 2
        assert dead == set(range(60)) - done


@pytest.mark.parametrize("rabbit", ["quorum"], indirect=True)
def test_a_handler_that_blocks_its_process_for_a_while_costs_nothing_but_time(
    rabbit: Rabbit, experiment: Callable[..., Experiment]
) -> None:
    """Half a second each, eight in a row: longer than the broker waits for a heartbeat."""
    lab, play = experiment(broker=replace(rabbit, heartbeat=1.0)), Scenario()
    lab.produce(*[("rigid", "handled")] * 8, *[SUCCEED] * 8)
    play.come_to_rest(lab)
    lab.kills = 1  # the broker may have given it up once

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
