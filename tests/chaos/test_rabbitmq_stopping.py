"""F2, F3, F22, K10, K24 on RabbitMQ: workers that are told to stop under load, that stand still for longer than
the broker waits for a sign of life, and that die of a message.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.lab.killing import problems_at_rest
from chaos.lab.places import letters
from chaos.lab.premises import EFFECTS, ORDERS
from chaos.lab.rabbit import Rabbit
from chaos.lab.scenarios import SUCCEED, Scenario
from chaos.lab.supervisor import KILLED, Experiment, Nursery
from support.rabbitmq_server import PrivateRabbit, RabbitServer

POISON = ("poison", "letter")
HEARTBEAT = 1.0
NOT_ITS_OWN = "unknown delivery tag"
UNORDERED = {"z": "first", "a": "last"}
"""Headers that a quorum queue sorts when it delivers again."""


def test_two_workers_that_are_told_to_stop_at_once_under_load_lose_and_repeat_nothing(
    rabbit: Rabbit, experiment: Callable[..., Experiment], second_nursery: Nursery
) -> None:
    lab, play = experiment(broker=rabbit), Scenario(lots=20)
    first = lab.nursery
    for _ in range(3):
        play.set_stage(lab)
        workers = []
        for each in (first, second_nursery):
            lab.nursery = each
            workers.append(lab.start("work", forever=True))
        lab.wait_until_they_listen(workers)
        assert not workers[0].ended_within(lab.dice.uniform(0.02, 0.3))
        for worker in workers:
            worker.signal(signal.SIGTERM)
        assert [worker.wait() for worker in workers] == [0, 0], lab.told()
        with rabbit.looking() as looking:  # nobody waits: Close-Ok came when the broker had everything
            assert [look.consumers for name in (ORDERS, EFFECTS) if (look := looking.look(name))] == [0, 0]
        lab.nursery = first
    play.come_to_rest(lab)

    assert problems_at_rest(lab, play, in_flight=0) == []
    assert lab.kills == 0


@pytest.mark.parametrize("rabbit", ["quorum"], indirect=True)
def test_a_worker_that_is_told_to_stop_finishes_what_it_has_begun(
    rabbit: Rabbit, experiment: Callable[..., Experiment]
) -> None:
    lab, play = experiment(broker=rabbit), Scenario()
    lab.produce(("slow", "handled"), times=20)
    worker = lab.start("work", forever=True)
    while not lab.handled():
        assert not worker.ended_within(0.02)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0, lab.told()
    assert lab.handled() < 20
    play.come_to_rest(lab)

    assert problems_at_rest(lab, play, in_flight=0) == []


def test_a_message_that_its_process_dies_of_is_set_apart_after_three_deaths_and_others_flow(
    rabbit: Rabbit, experiment: Callable[..., Experiment]
) -> None:
    lab, play = experiment(broker=rabbit), Scenario()
    lab.produce(*[SUCCEED] * 4, POISON, *[SUCCEED] * 4)
    while lab.run("work", "worker.after_ack=kill9:0") == KILLED:
        assert lab.kills <= 3

    assert lab.kills == 3
    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
    assert lab.verdict().set_apart == 1


@pytest.mark.parametrize("rabbit", ["quorum"], indirect=True)
def test_a_message_without_an_id_that_its_process_dies_of_is_set_apart_as_well_and_its_like_that_lived_is_not(
    rabbit: Rabbit, experiment: Callable[..., Experiment]
) -> None:
    lab = experiment(broker=rabbit)
    lab.produce(SUCCEED)  # the queue is there
    with rabbit.looking() as looking:
        for plan in ("poison", *["slow"] * 6):
            looking.publish(ORDERS, b'{"plan": "%s"}' % plan.encode(), headers=UNORDERED)
    while lab.run("work", "worker.after_ack=kill9:0") == KILLED:
        assert lab.kills <= 3

    assert lab.kills == 3
    assert [(letter.status, letter.how) for letter in letters(lab.premises.letters)] == [
        ("QUARANTINED", "3 process deaths")
    ]


@pytest.mark.parametrize("rabbit", ["quorum"], indirect=True)
def test_a_message_without_an_id_whose_worker_died_between_letter_and_acknowledgement_comes_again_under_one_id(
    rabbit: Rabbit, experiment: Callable[..., Experiment]
) -> None:
    lab = experiment(broker=rabbit)
    lab.produce(SUCCEED)
    with rabbit.looking() as looking:
        for headers in ({"a": "last", "z": "first"}, UNORDERED, None):
            looking.publish(ORDERS, b'{"plan": "fail"}', headers=headers)
    assert lab.run("work", "worker.after_record=kill9") == KILLED
    assert lab.run("work") == 0

    assert len(letters(lab.premises.letters)) >= 3
    assert len({letter.message_id for letter in letters(lab.premises.letters)}) == 2


def test_a_worker_that_stood_still_while_the_broker_gave_it_up_settles_nothing_that_is_not_its_own(
    rabbit: Rabbit,
    rabbitmq: RabbitServer,
    experiment: Callable[..., Experiment],
    second_nursery: Nursery,
    third_nursery: Nursery,
) -> None:
    refused = rabbitmq.log.count(NOT_ITS_OWN) if isinstance(rabbitmq, PrivateRabbit) else 0  # by tests before this
    lab, play = experiment(broker=replace(rabbit, heartbeat=HEARTBEAT)), Scenario()
    lab.produce(("slow", "handled"), times=16)  # it is to stop inside a handler, with no file locked
    zombie = lab.start("work", forever=True)
    while not lab.handled():
        assert not zombie.ended_within(0.005)
    zombie.signal(signal.SIGSTOP)
    rabbit.wait_for_consumers(0)  # it has missed two heartbeats
    lab.nursery = second_nursery
    beside = lab.start("work", forever=True)
    while rabbit.under_way():
        assert not beside.ended_within(0.02)
    zombie.signal(signal.SIGCONT)
    lab.nursery = third_nursery
    lab.produce(SUCCEED, times=8)  # it finds its way back and works on
    zombie.signal(signal.SIGTERM)
    beside.signal(signal.SIGTERM)
    assert [zombie.wait(), beside.wait()] == [0, 0], lab.told()
    lab.kills = 1  # as if it had died once
    play.come_to_rest(lab)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
    if isinstance(rabbitmq, PrivateRabbit):
        assert rabbitmq.log.count(NOT_ITS_OWN) == refused
