"""F16, F17, K4: engines killed here and there, one, two or four on one run, on both stores and both brokers.
None lost, no letter with two redrive ids, duplicates within what was in flight, runs complete.

Each failpoint of an engine that is alone is walked in test_worker_kill.py.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from chaos.lab.killing import problems_at_rest
from chaos.lab.rabbit import Rabbit
from chaos.lab.scenarios import Running
from chaos.lab.supervisor import KILLED, Child, Experiment, Nursery
from support.rabbitmq_server import RabbitServer

IN_ALL = math.ceil(int(os.environ.get("REDRIVE_CHAOS_KILLS") or 200) / 4)
CASES = [(engines, store) for store in ("sqlite", "postgresql") for engines in (1, 2, 4)]
PER_CASE = math.ceil(IN_ALL / len(CASES) / 2)
DEADLY = ("engine.taken", "engine.sent", "engine.marked", "store.before_commit", "store.after_commit")


@pytest.fixture
def nurseries() -> Iterator[list[Nursery]]:
    """Engines live beside each other, and a nursery has one child at a time."""
    with ExitStack() as opened:
        yield [opened.enter_context(Nursery()) for _ in range(4)]


@pytest.mark.timeout(120 + 15 * PER_CASE)
@pytest.mark.parametrize(("engines", "store"), CASES)
def test_engines_that_are_killed_lose_nothing_and_complete_their_runs(
    engines: int,
    store: str,
    rabbit_or_none: Rabbit | None,
    experiment: Callable[..., Experiment],
    nurseries: list[Nursery],
) -> None:
    lab, play = experiment(store=store, rabbit=rabbit_or_none), Running(lots=20)
    while lab.kills < PER_CASE:
        play.set_stage(lab)
        _kill_one_of(lab, nurseries[:engines])
    play.come_to_rest(lab)

    assert problems_at_rest(lab, play, in_flight=play.in_flight) == []


@pytest.fixture(params=["embedded", "rabbitmq"])
def rabbit_or_none(request: pytest.FixtureRequest) -> Rabbit | None:
    if request.param == "embedded":
        return None
    server: RabbitServer = request.getfixturevalue("rabbitmq")
    return Rabbit(request.getfixturevalue("rabbitmq_url"), server.management_url, "quorum")


def _kill_one_of(lab: Experiment, nurseries: list[Nursery]) -> None:
    """The first of several engines dies, wherever the dice say; the others go on with what it leaves."""
    usual = lab.nursery
    children: list[Child] = []
    for nursery in nurseries:
        lab.nursery = nursery
        point = lab.dice.choice(DEADLY)
        children.append(lab.start("carry_out", "" if children else f"{point}=kill9:0.4"))
    lab.nursery = usual
    ends = [child.wait() for child in children]
    lab.kills += ends[0] == KILLED
    assert {*ends} <= {0, KILLED}, lab.told()
