"""F4 on Kafka: the broker itself is killed with -9 and started again, while one process sends and another works.
Nothing that was confirmed is lost, letters are exact, and both find back by themselves.

`REDRIVE_CHAOS_KILLS` says how many kills, one of a hundred.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from chaos.lab.kafka import Kafka
from chaos.lab.killing import problems_at_rest
from chaos.lab.scenarios import EFFECT, FAIL, HEAL, SUCCEED, Scenario
from chaos.lab.supervisor import Child, Experiment, Nursery
from support.amounts import BROKER_KILLS
from support.kafka_server import PrivateKafka

KILLS = max(1, BROKER_KILLS)
PLANS = [SUCCEED, HEAL, FAIL, EFFECT]


@pytest.mark.timeout(180 + 40 * KILLS)
def test_everything_that_was_confirmed_survives_kills_of_the_broker_while_others_send_and_work(
    own_kafka: PrivateKafka, experiment: Callable[..., Experiment], second_nursery: Nursery
) -> None:
    lab = experiment(broker=Kafka(own_kafka.address, own_kafka.topic_name()))
    lab.oldest = 180 + 40 * KILLS
    worker = lab.start("work", forever=True)
    lab.nursery = second_nursery
    sender = lab.start("keep_sending", plans=PLANS)
    for _ in range(KILLS):
        wait_for_more(lab, worker, sender)
        own_kafka.kill()
        own_kafka.start()
        lab.kills += 1
    wait_for_more(lab, worker, sender)
    for child in (sender, worker):
        child.signal(signal.SIGTERM)
        assert child.wait() == 0, lab.told()

    assert problems_at_rest(lab, Scenario(), in_flight=None) == []


def wait_for_more(lab: Experiment, *living: Child) -> None:
    """Until more has been sent and handled since, and everybody lives."""
    sent, handled = lab.acknowledged(), lab.handled()
    while lab.acknowledged() < sent + 20 or lab.handled() < handled + 20:
        assert not any(child.ended_within(0.02) for child in living), lab.told()
