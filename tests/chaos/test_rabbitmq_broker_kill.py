"""F4, K3: the broker itself is killed with -9 and started again, while one process sends and another works.
Nothing that was confirmed is lost, letters are exact, every duplicate is a message that somebody sent, and both
find back by themselves.

`REDRIVE_CHAOS_KILLS` says how many kills, one of a hundred for each type of queues, and never fewer than three.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from chaos.lab.killing import problems_at_rest
from chaos.lab.rabbit import QueueType, Rabbit
from chaos.lab.scenarios import EFFECT, FAIL, HEAL, SUCCEED, Scenario
from chaos.lab.supervisor import Child, Experiment, Nursery
from support.amounts import BROKER_KILLS
from support.rabbitmq_server import PrivateRabbit

LONG = BROKER_KILLS
CASES = [("quorum", max(2, LONG)), ("classic", max(1, LONG))]
PLANS = [SUCCEED, HEAL, FAIL, EFFECT]
OLD_ENOUGH = 2.0
REPEATED_BY_ONE = 20
"""Duplicates that one kill may cause where queues do not forget acknowledgements: all that was in flight, of the
worker and of the sender.
"""


@pytest.mark.timeout(120 + 30 * max(2, LONG))
@pytest.mark.parametrize(("queue_type", "kills"), CASES)
def test_everything_that_was_confirmed_survives_kills_of_the_broker_while_others_send_and_work(
    queue_type: QueueType,
    kills: int,
    own_rabbitmq: PrivateRabbit,
    experiment: Callable[..., Experiment],
    second_nursery: Nursery,
) -> None:
    lab = experiment(broker=Rabbit(own_rabbitmq.new_vhost(), own_rabbitmq.management_url, queue_type))
    lab.oldest = 150 + 30 * kills
    let_queues_grow_old(lab)
    worker = lab.start("work", forever=True)
    lab.nursery = second_nursery
    sender = lab.start("keep_sending", plans=PLANS)
    for _ in range(kills):
        wait_for_more(lab, worker, sender)
        own_rabbitmq.kill()
        own_rabbitmq.start()
        lab.kills += 1
    wait_for_more(lab, worker, sender)
    for child in (sender, worker):
        child.signal(signal.SIGTERM)
        assert child.wait() == 0, lab.told()

    problems = problems_at_rest(lab, Scenario(), in_flight=REPEATED_BY_ONE if queue_type == "quorum" else None)
    assert problems == []
    assert "unknown delivery tag" not in own_rabbitmq.log, (
        "something was settled on a channel that was not its own"
    )


def let_queues_grow_old(lab: Experiment) -> None:
    """A quorum queue that was declared within the last second does not survive a kill of RabbitMQ 3.10: it is
    there afterwards, and confirms nothing any more.
    """
    play = Scenario(lots=1)
    play.set_stage(lab)
    play.come_to_rest(lab)
    made = time.monotonic()
    while time.monotonic() - made < OLD_ENOUGH:
        lab.produce(SUCCEED)
    play.come_to_rest(lab)


def wait_for_more(lab: Experiment, *living: Child) -> None:
    """Until more has been sent and handled since, and everybody lives."""
    sent, handled = lab.acknowledged(), lab.handled()
    while lab.acknowledged() < sent + 50 or lab.handled() < handled + 50:
        assert not any(child.ended_within(0.02) for child in living), lab.told()
