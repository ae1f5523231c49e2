"""F1, F16, K2, K5: kill -9 at every registered failpoint of the embedded stack. None lost, letters exact, files
whole, duplicates within what was in flight.

`REDRIVE_CHAOS_KILLS` says how many kills in all (`make chaos` gives more), `REDRIVE_CHAOS_SEED` repeats the dice.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable

import pytest

from chaos.lab.scenarios import SCENARIOS, Scenario, chance
from chaos.lab.supervisor import KILLED, Experiment, Nursery
from redrive.faults import POINTS

KILLS = int(os.environ.get("REDRIVE_CHAOS_KILLS") or 200)
AT_RANDOM = math.ceil(KILLS / 10)
PAIRS = [(point, scenario) for point, several in SCENARIOS.items() for scenario in several]
PER_PAIR = math.ceil((KILLS - AT_RANDOM) / len(PAIRS))
_TRIES = 20


def test_every_registered_failpoint_has_a_scenario_and_every_scenario_a_failpoint() -> None:
    assert set(SCENARIOS) == set(POINTS)


@pytest.mark.timeout(60 + 10 * PER_PAIR)
@pytest.mark.parametrize(("point", "scenario"), PAIRS, ids=[f"{point}-{each.__name__}" for point, each in PAIRS])
def test_killed_at_this_point_nothing_is_lost_or_doubled(
    point: str, scenario: type[Scenario], experiment: Callable[..., Experiment]
) -> None:
    lab, play = experiment(sink=scenario.sink), scenario()
    hits, ended = 0, 0
    for _ in range(PER_PAIR * _TRIES):
        if ended == 0:
            play.set_stage(lab)
        faults = f"{point}=kill9:{chance(point, scenario)}"
        ended = lab.ended(play.begin(lab, faults), faults)
        hits += ended == KILLED
        if hits == PER_PAIR:
            break
    play.come_to_rest(lab)

    assert hits == PER_PAIR, f"killed {hits} times at {point}, {PER_PAIR} wanted"
    assert lab.problems(play.in_flight) == []


@pytest.mark.timeout(60 + 10 * AT_RANDOM)
def test_killed_at_any_moment_beside_one_that_lives_nothing_is_lost_or_doubled(
    experiment: Callable[..., Experiment], second_nursery: Nursery
) -> None:
    lab, play = experiment(), Scenario(lots=5)
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
