"""F1, K1, K5 on RabbitMQ: kill -9 of processes that produce, work, redrive and reprocess, at every failpoint on
the way of a message and at any moment, on quorum and classic queues. None lost, letters exact, every duplicate
is of a message that was in flight when somebody died.

`REDRIVE_CHAOS_KILLS` says how many kills in all (a quarter of it here), `REDRIVE_CHAOS_SEED` repeats the dice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from chaos.lab.killing import kill, kill_at_any_moment, problems_at_rest
from chaos.lab.rabbit import QUEUE_TYPES, Rabbit
from chaos.lab.scenarios import ON_RABBITMQ, Scenario
from chaos.lab.supervisor import Experiment, Nursery
from support.amounts import RABBITMQ_KILLS

KILLS = RABBITMQ_KILLS
PAIRS = [(point, scenario) for point, several in ON_RABBITMQ.items() for scenario in several]
CASES = [
    pytest.param(queue_type, point, scenario, id=f"{queue_type}-{point}-{scenario.__name__}")
    for number, (point, scenario) in enumerate(PAIRS)
    for queue_type in (QUEUE_TYPES if KILLS > 100 else [QUEUE_TYPES[number % 2]])
]
"""In short runs every pair on one type of queues, in turn."""
AT_RANDOM = math.ceil(KILLS / 4)
PER_CASE = math.ceil((KILLS - 2 * AT_RANDOM) / len(CASES))


@pytest.mark.timeout(60 + 20 * PER_CASE)
@pytest.mark.parametrize(("rabbit", "point", "scenario"), CASES, indirect=["rabbit"])
def test_killed_at_this_point_nothing_is_lost_or_doubled(
    point: str, scenario: type[Scenario], experiment: Callable[..., Experiment], rabbit: Rabbit
) -> None:
    lab, play = experiment(sink=scenario.sink, broker=rabbit), scenario(lots=5)

    kill(lab, play, point, PER_CASE)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []


@pytest.mark.timeout(60 + 20 * AT_RANDOM)
def test_killed_at_any_moment_beside_one_that_lives_nothing_is_lost_or_doubled(
    experiment: Callable[..., Experiment], rabbit: Rabbit, second_nursery: Nursery
) -> None:
    lab, play = experiment(broker=rabbit), Scenario(lots=5)

    kill_at_any_moment(lab, play, AT_RANDOM, (0.02, 0.4), lives=second_nursery)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
