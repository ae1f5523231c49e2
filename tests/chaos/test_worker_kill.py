"""F1, F16, K2, K5: kill -9 at every registered failpoint of the embedded stack. None lost, letters exact, files
whole, duplicates within what was in flight.

`REDRIVE_CHAOS_KILLS` says how many kills in all (`make chaos` gives more), `REDRIVE_CHAOS_SEED` repeats the dice.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from chaos.lab.killing import kill
from chaos.lab.scenarios import ELSEWHERE, ON_KAFKA, ON_RABBITMQ, ON_SERVICE_BUS, ON_SQS, SCENARIOS, Scenario
from chaos.lab.supervisor import KILLED, Experiment, Nursery
from redrive.faults import POINTS
from support.amounts import WORKER_KILLS

KILLS = WORKER_KILLS
AT_RANDOM = math.ceil(KILLS / 10)
PAIRS = [(point, scenario) for point, several in SCENARIOS.items() for scenario in several]
PER_PAIR = math.ceil((KILLS - AT_RANDOM) / len(PAIRS))


def test_every_registered_failpoint_has_a_scenario_or_a_test_of_its_own_and_every_scenario_a_failpoint() -> None:
    elsewhere = {point for point in POINTS if {point, f"{point.split('.')[0]}."} & ELSEWHERE.keys()}

    walked = {*SCENARIOS, *ON_RABBITMQ, *ON_KAFKA, *chain.from_iterable(ON_SERVICE_BUS.values()), *ON_SQS}
    assert walked | elsewhere == set(POINTS)
    assert not elsewhere & walked
    for name, test in ELSEWHERE.items():
        assert name in (Path(__file__).parent.parent / test).read_text()


@pytest.mark.timeout(60 + 10 * PER_PAIR)
@pytest.mark.parametrize(("point", "scenario"), PAIRS, ids=[f"{point}-{each.__name__}" for point, each in PAIRS])
def test_killed_at_this_point_nothing_is_lost_or_doubled(
    point: str, scenario: type[Scenario], experiment: Callable[..., Experiment]
) -> None:
    lab, play = experiment(sink=scenario.sink), scenario()

    kill(lab, play, point, PER_PAIR)

    assert lab.problems(play.in_flight) == []


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
@pytest.mark.timeout(60 + 10 * AT_RANDOM)
def test_killed_at_any_moment_beside_one_that_lives_nothing_is_lost_or_doubled(
    store: str, experiment: Callable[..., Experiment], second_nursery: Nursery
) -> None:
    lab, play = experiment(store=store), Scenario(lots=5)
    first, lab.nursery = lab.nursery, second_nursery
    steady = lab.start("work", forever=True)
    lab.nursery = first
    while lab.kills < AT_RANDOM:
        play.set_stage(lab)
        worker = lab.start("work", forever=True)
        assert not worker.ended_within(lab.dice.uniform(0.02, 0.4))
        worker.signal(signal.SIGKILL)
        assert worker.wait() == KILLED
        lab.kills += 1
    play.come_to_rest(lab)
    steady.signal(signal.SIGTERM)

    assert steady.wait() == 0, lab.told()
    assert lab.problems(play.in_flight) == []
