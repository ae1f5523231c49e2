"""`ttl-loop` on quorum queues: kill -9 of workers around the reject by which a retry goes into the broker's own
loop. None lost, letters exact, every duplicate is of a message that was in flight when somebody died.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.lab.killing import kill, problems_at_rest
from chaos.lab.rabbit import Rabbit
from chaos.lab.scenarios import Scenario
from chaos.lab.supervisor import Experiment
from support.amounts import BROKER_KILLS

KILLS = max(2, BROKER_KILLS)


@pytest.mark.timeout(60 + 20 * KILLS)
@pytest.mark.parametrize("rabbit", ["quorum"], indirect=True)
@pytest.mark.parametrize("point", ["rabbitmq.before_reject", "worker.after_retry"])
def test_killed_around_the_reject_into_the_loop_nothing_is_lost_or_doubled(
    point: str, experiment: Callable[..., Experiment], rabbit: Rabbit
) -> None:
    lab, play = experiment(broker=replace(rabbit, topology="ttl-loop")), Scenario(lots=5)

    kill(lab, play, point, KILLS)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
