"""F1, K1, K5 on Kafka: kill -9 of processes that produce, work, redrive and reprocess, at every failpoint on the
way of a message and at any moment. None lost, letters exact, no commit ahead of what is durable, and nothing is
repeated but what was not behind a commit when somebody died.

`REDRIVE_CHAOS_KILLS` says how many kills in all (a quarter of it here), `REDRIVE_CHAOS_SEED` repeats the dice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from chaos.lab.kafka import Kafka
from chaos.lab.killing import kill, kill_at_any_moment, problems_at_rest
from chaos.lab.scenarios import ON_KAFKA, Scenario
from chaos.lab.supervisor import Experiment, Nursery
from support.amounts import KAFKA_KILLS

KILLS = KAFKA_KILLS
CASES = [
    (point, scenario)
    for point, several in ON_KAFKA.items()
    for scenario in (several if KILLS > 100 else several[: 2 if point.startswith("kafka.") else 1])
]
"""In short runs the first stage of each point, and two of the driver's own."""
AT_RANDOM = math.ceil(KILLS / 5)
OFTEN = 2.0
"""A worker joins a group before it begins: few are to end unharmed."""
PER_CASE = math.ceil((KILLS - AT_RANDOM) / len(CASES))


@pytest.mark.timeout(120 + 20 * PER_CASE)
@pytest.mark.parametrize(("point", "scenario"), CASES, ids=[f"{point}-{each.__name__}" for point, each in CASES])
def test_killed_at_this_point_nothing_is_lost_or_doubled(
    point: str, scenario: type[Scenario], experiment: Callable[..., Experiment], topics: Kafka
) -> None:
    lab, play = experiment(sink=scenario.sink, broker=topics), scenario(lots=4)

    kill(lab, play, point, PER_CASE, often=OFTEN)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []


@pytest.mark.timeout(120 + 20 * AT_RANDOM)
def test_killed_at_any_moment_beside_one_that_lives_nothing_is_lost_or_doubled(
    experiment: Callable[..., Experiment], topics: Kafka, second_nursery: Nursery
) -> None:
    lab, play = experiment(broker=topics), Scenario(lots=5)

    kill_at_any_moment(lab, play, AT_RANDOM, (0.02, 0.8), lives=second_nursery)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
