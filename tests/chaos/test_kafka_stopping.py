"""F22, K10, K24 on Kafka: workers that are told to stop under load, and that die of a message."""

from __future__ import annotations

import signal
from collections.abc import Callable

from chaos.lab.kafka import Kafka
from chaos.lab.killing import problems_at_rest
from chaos.lab.scenarios import SUCCEED, Scenario
from chaos.lab.supervisor import KILLED, Experiment, Nursery

POISON = ("poison", "letter")


def test_a_record_that_its_process_dies_of_is_set_apart_after_three_deaths_and_its_neighbours_are_not(
    experiment: Callable[..., Experiment], topics: Kafka
) -> None:
    lab, play = experiment(broker=topics), Scenario()
    lab.produce(*[SUCCEED] * 6, POISON, *[SUCCEED] * 6)
    while lab.run("work", "worker.after_ack=kill9:0") == KILLED:
        assert lab.kills <= 3

    assert lab.kills == 3
    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
    assert lab.verdict().set_apart == 1


def test_two_workers_that_are_told_to_stop_at_once_under_load_lose_and_repeat_nothing(
    experiment: Callable[..., Experiment], topics: Kafka, second_nursery: Nursery
) -> None:
    lab, play = experiment(broker=topics), Scenario(lots=20)
    first, workers = lab.nursery, []
    play.set_stage(lab)
    for each in (first, second_nursery):
        lab.nursery = each
        workers.append(lab.start("work", forever=True))
    lab.wait_until_they_listen(workers)
    while not lab.handled():
        assert not workers[0].ended_within(0.01)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0], lab.told()
    lab.nursery = first
    play.come_to_rest(lab)

    assert problems_at_rest(lab, play, in_flight=0) == []
    assert lab.kills == 0
