"""K5: every registered failpoint by {raise, hang}. Whatever breaks or stands still, the process goes on or ends by
itself with an error, and nothing is lost. (kill -9 at every point is test_worker_kill.py.)

On PostgreSQL, at the points around its transactions, with `REDRIVE_CHAOS_KILLS` of 1,000 and more.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from chaos.lab.breaking import make_hang, make_raise
from chaos.lab.scenarios import ON_A_SERVER, SCENARIOS, Scenario
from chaos.lab.supervisor import KILLED, Experiment, Nursery
from support.amounts import LONG

STORES = {"sqlite": SCENARIOS, **({"postgresql": ON_A_SERVER} if LONG else {})}
CASES = [
    pytest.param(store, point, scenario, id=f"{store}-{point}-{scenario.__name__}")
    for store, scenarios in STORES.items()
    for point, several in scenarios.items()
    for scenario in several
]
POINTS = [(store, point) for store, scenarios in STORES.items() for point in scenarios]
LEASE = 0.3
"""Shorter than `HANG`."""


@pytest.mark.parametrize(("store", "point", "scenario"), CASES)
def test_an_error_at_this_point_loses_nothing(
    store: str, point: str, scenario: type[Scenario], experiment: Callable[..., Experiment]
) -> None:
    lab, play = experiment(sink=scenario.sink, store=store), scenario(lots=2)

    make_raise(lab, play, point)

    verdict = lab.verdict(quiet=False)
    assert verdict.problems(duplicates_allowed=None, set_apart_allowed=lab.kills) == []


@pytest.mark.parametrize(("store", "point"), POINTS)
def test_a_process_that_stands_still_at_this_point_for_longer_than_its_lease_loses_nothing(
    store: str, point: str, experiment: Callable[..., Experiment], second_nursery: Nursery
) -> None:
    """The next process does not wait for it, so both have the same messages or letters in hand."""
    scenario = STORES[store][point][0]
    lab, play = experiment(sink=scenario.sink, lease=LEASE, store=store), scenario(lots=1)

    make_hang(lab, play, point, second_nursery)

    assert lab.verdict().problems(duplicates_allowed=None, set_apart_allowed=lab.kills) == []


def test_failpoints_are_armed_by_the_environment_variable_alone() -> None:
    program = "from redrive import faults; faults.point('worker.before_ack')"
    variables = {"REDRIVE_FAULTS": "worker.before_ack=kill9"}

    assert subprocess.run([sys.executable, "-c", program], env=variables, check=False).returncode == KILLED
    assert subprocess.run([sys.executable, "-c", program], env={}, check=False).returncode == 0
