"""F1 on SQS, as ElasticMQ plays it in a process of its own: kill -9 of processes that produce, work, redrive and
reprocess, at every failpoint on the way of a message and at any moment. None lost, letters exact, and every
duplicate is of a message that was in flight when somebody died.

`REDRIVE_CHAOS_KILLS` says how many kills in all (a quarter of it here), `REDRIVE_CHAOS_SEED` repeats the dice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from chaos.lab.killing import kill, kill_at_any_moment, problems_at_rest
from chaos.lab.scenarios import ON_SQS, Scenario
from chaos.lab.sqs import Sqs
from chaos.lab.supervisor import Experiment, Nursery
from support.amounts import SQS_KILLS

KILLS = SQS_KILLS
AT_RANDOM = math.ceil(KILLS / 2)
PAIRS = sorted(
    ((point, scenario) for point, several in ON_SQS.items() for scenario in several),
    key=lambda pair: not pair[0].startswith("sqs."),
)
"""The driver's own points first: what cannot be shared evenly is theirs."""
EACH, REST = divmod(max(KILLS - AT_RANDOM, len(PAIRS)), len(PAIRS))
CASES = [
    pytest.param(point, scenario, EACH + (number < REST), id=f"{point}-{scenario.__name__}")
    for number, (point, scenario) in enumerate(PAIRS)
]
OFTEN = 2.0
"""Few children are to end unharmed: each that does so waits for what the dead had in hand."""


@pytest.mark.timeout(140 + 20 * EACH)
@pytest.mark.parametrize(("point", "scenario", "times"), CASES)
def test_killed_at_this_point_nothing_is_lost_or_doubled(
    point: str, scenario: type[Scenario], times: int, experiment: Callable[..., Experiment], sqs_queues: Sqs
) -> None:
    lab, play = experiment(sink=scenario.sink, broker=sqs_queues), scenario(lots=3)

    kill(lab, play, point, times, often=OFTEN)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []


@pytest.mark.timeout(120 + 20 * AT_RANDOM)
def test_killed_at_any_moment_beside_one_that_lives_nothing_is_lost_or_doubled(
    experiment: Callable[..., Experiment], sqs_queues: Sqs, second_nursery: Nursery
) -> None:
    lab, play = experiment(broker=sqs_queues), Scenario(lots=5)

    kill_at_any_moment(lab, play, AT_RANDOM, (0.02, 0.4), lives=second_nursery)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
