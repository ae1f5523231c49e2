"""F16, F17, K4: engines killed at each of their failpoints, one, two or four on one run, on both stores and both
brokers. None lost, no letter with two redrive ids, duplicates within what was in flight, runs complete.

`REDRIVE_ENGINE_KILLS` says how many kills in all (`make chaos` gives more).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import pytest

from chaos.lab.killing import problems_at_rest
from chaos.lab.rabbit import Rabbit
from chaos.lab.rows import rows
from chaos.lab.scenarios import Running
from chaos.lab.supervisor import KILLED, Child, Experiment, Nursery
from support.amounts import ENGINE_KILLS
from support.rabbitmq_server import RabbitServer

IN_ALL = ENGINE_KILLS
CASES = [(engines, store) for store in ("sqlite", "postgresql") for engines in (1, 2, 4)]
PER_CASE = math.ceil(IN_ALL / len(CASES) / 2)
IN_FLIGHT = 10
"""So few that the letters of one stage are more than all engines have in hand at once."""
LEASE = 3.0
"""An engine that lives and gets no processor for so long loses what it holds too: no bound counts that."""
KILLS_PER_RUN = 5
"""Then everything is brought to rest: an engine that is alone would leave thousands of letters to the last one."""
SELDOM, OFTEN = 0.4, 0.03
"""How likely an engine dies at a point that it passes a few times, and at one that it passes with every letter."""
OF_THE_ENGINE = {
    "engine.taken": SELDOM,
    "engine.sent": SELDOM,
    "engine.marked": SELDOM,
    "store.before_commit": SELDOM,
    "store.after_commit": SELDOM,
}
ON_FILES = OF_THE_ENGINE | {"broker.before_commit": SELDOM, "broker.after_commit": SELDOM}
ON_RABBITMQ = OF_THE_ENGINE | {"rabbitmq.before_publish": OFTEN, "rabbitmq.confirmed": OFTEN}


@pytest.fixture
def nurseries(
    nursery: Nursery, second_nursery: Nursery, third_nursery: Nursery, fourth_nursery: Nursery
) -> list[Nursery]:
    """Engines live beside each other, and a nursery has one child at a time."""
    return [nursery, second_nursery, third_nursery, fourth_nursery]


@pytest.fixture(params=["embedded", "rabbitmq"])
def rabbit_or_none(request: pytest.FixtureRequest) -> Rabbit | None:
    if request.param == "embedded":
        return None
    server: RabbitServer = request.getfixturevalue("rabbitmq")
    return Rabbit(request.getfixturevalue("rabbitmq_url"), server.management_url, "quorum")


@pytest.mark.timeout(120 + 20 * PER_CASE)
@pytest.mark.parametrize(("engines", "store"), CASES)
def test_f16_f17_engines_that_are_killed_lose_nothing_and_complete_their_runs(
    engines: int,
    store: str,
    rabbit_or_none: Rabbit | None,
    experiment: Callable[..., Experiment],
    nurseries: list[Nursery],
) -> None:
    lab, play = experiment(store=store, broker=rabbit_or_none), Running(lots=10)
    points = list((ON_RABBITMQ if rabbit_or_none else ON_FILES).items())
    first = CASES.index((engines, store)) * PER_CASE  # so that the cases together come to all of them
    while lab.kills < PER_CASE:
        play.set_stage(lab)
        assert lab.run("request") == 0  # all engines share it
        point, chance = points[(first + lab.kills) % len(points)]
        _kill_one_of(lab, nurseries[:engines], f"{point}=kill9:{chance}")
        if lab.kills % KILLS_PER_RUN == 0:
            _come_to_rest(lab)
    _come_to_rest(lab)

    assert problems_at_rest(lab, play, in_flight=IN_FLIGHT) == []
    assert _unfinished(lab) == []
    _tell(lab)


def _come_to_rest(lab: Experiment) -> None:
    """With as few in flight as before: what a lost connection doubles is within the bound then."""
    assert lab.run("carry_out", lease=LEASE, in_flight=IN_FLIGHT) == 0, lab.told()
    assert lab.run("work") == 0, lab.told()


def _kill_one_of(lab: Experiment, nurseries: list[Nursery], faults: str) -> None:
    """The first of several engines dies; the others go on with what it leaves."""
    usual = lab.nursery
    children: list[Child] = []
    for nursery in nurseries:
        lab.nursery = nursery
        armed = "" if children else faults
        children.append(lab.start("carry_out", armed, lease=LEASE, in_flight=IN_FLIGHT))
    lab.nursery = usual
    ends = [child.wait() for child in children]
    lab.kills += ends[0] == KILLED
    assert {*ends} <= {0, KILLED}, lab.told()
    assert ends[1:] == [0] * (len(ends) - 1), lab.told()


def _unfinished(lab: Experiment) -> list[tuple[object, ...]]:
    """Runs that are not done, or of which a letter that they took is not confirmed, once."""
    query = """
        SELECT runs.id, runs.status, runs.total, runs.taken, count(redrive_id), count(DISTINCT letter_id)
        FROM runs LEFT JOIN redrives ON redrives.run_id = runs.id AND redrives.outcome = 'confirmed'
        GROUP BY runs.id, runs.status, runs.total, runs.taken
        HAVING runs.status <> 'DONE' OR count(redrive_id) <> runs.taken
            OR count(redrive_id) <> count(DISTINCT letter_id)
    """
    return rows(lab.premises.letters, query)


def _tell(lab: Experiment) -> None:
    """Shown by `-s`, or if the test fails."""
    verdict = lab.verdict()
    [(runs,)] = rows(lab.premises.letters, "SELECT count(*) FROM runs")
    sys.stdout.write(
        f"{lab.kills} kills, {runs} runs, {verdict.letters} letters, {len(verdict.lost)} lost, "
        f"{verdict.duplicated} duplicates\n"
    )
