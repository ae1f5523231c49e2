"""F1 on the emulator of Service Bus: kill -9 of processes that produce, work and redrive, at failpoints on the way
of a message and at any moment. None lost, letters exact, nothing repeated but what was in flight.

`REDRIVE_CHAOS_KILLS` says how many kills in all (a quarter of it here), `REDRIVE_CHAOS_SEED` repeats the dice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from chaos.lab.killing import kill, kill_at_any_moment, problems_at_rest
from chaos.lab.scenarios import ON_SERVICE_BUS, Scenario
from chaos.lab.servicebus import ServiceBus
from chaos.lab.supervisor import Experiment
from support.amounts import SERVICE_BUS_KILLS

PLAIN = [(point, scenario) for point, several in ON_SERVICE_BUS["queues"].items() for scenario in several]
AT_RANDOM = math.ceil(SERVICE_BUS_KILLS / 5)
KILLS = {shape: math.ceil(SERVICE_BUS_KILLS / 60) for shape in ON_SERVICE_BUS} | {
    "queues": math.ceil((SERVICE_BUS_KILLS - AT_RANDOM) / len(PLAIN))
}
"""At each point; the other shapes share most of the code."""
CASES = [
    pytest.param(shape, point, scenario, id=f"{shape}-{point}-{scenario.__name__}")
    for shape, points in ON_SERVICE_BUS.items()
    for point, several in points.items()
    for scenario in several
]
OFTEN = 2.0
"""A worker connects before it begins: few are to end unharmed."""


@pytest.mark.timeout(120 + 20 * max(KILLS.values()))
@pytest.mark.parametrize(("namespace", "point", "scenario"), CASES, indirect=["namespace"])
def test_killed_at_this_point_nothing_is_lost_or_doubled(
    point: str, scenario: type[Scenario], experiment: Callable[..., Experiment], namespace: ServiceBus
) -> None:
    lab, play = experiment(sink=scenario.sink, broker=namespace), scenario(lots=3)

    kill(lab, play, point, KILLS[namespace.shape], often=OFTEN)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []


@pytest.mark.timeout(120 + 20 * AT_RANDOM)
def test_killed_at_any_moment_nothing_is_lost_or_doubled(
    experiment: Callable[..., Experiment], namespace: ServiceBus
) -> None:
    lab, play = experiment(broker=namespace), Scenario(lots=3)

    kill_at_any_moment(lab, play, AT_RANDOM, (0.2, 1.2))

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
