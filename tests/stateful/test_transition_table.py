"""K14: the store holds to the table of transitions, whatever comes in whatever order, on both databases.

`REDRIVE_STATEFUL_STEPS` is how many steps are made in all. A failure prints the steps that lead to it and the line
that repeats them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from stateful.ground import Ground
from stateful.machine import TransitionTable
from support.amounts import STATEFUL_STEPS
from support.postgres_server import PostgresServer

SHARES = {"sqlite": 0.7, "postgresql": 0.3}
PARTS = 4
"""Each store's steps are made in so many tests, which run beside each other."""
PER_EXAMPLE = 50


def steps_of(store: str) -> int:
    return math.ceil(STATEFUL_STEPS * SHARES[store] / PARTS)


@pytest.fixture(params=SHARES)
def store(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def ground(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ground]:
    url = f"sqlite:///{tmp_path}/letters.db"
    if store == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.emptied_store()
    opened = Ground(url)
    yield opened
    opened.close()


@pytest.mark.timeout(300 + STATEFUL_STEPS // 20)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_store_does_what_the_table_says(store: str, part: int, ground: Ground) -> None:  # noqa: ARG001  one of several
    machine = type("Table", (TransitionTable,), {"ground": ground})
    wanted = steps_of(store)
    checked = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

    def unseen() -> list[str]:
        return [name for name in ("came back", "taken", "taken over") if not ground.told[name]]

    # Hypothesis leaves out some rules in each example: what is rare may need more of them than usual.
    while ground.steps < wanted or (unseen() and ground.steps < 5 * wanted):
        run_state_machine_as_test(
            machine,
            settings=settings(
                # A few examples are cut short.
                max_examples=math.ceil(max(wanted - ground.steps, wanted / 10) / PER_EXAMPLE),
                stateful_step_count=PER_EXAMPLE,
                derandomize=False,
                print_blob=True,
                deadline=None,
                suppress_health_check=checked,
            ),
        )
    assert not unseen(), ground.told


def test_no_fewer_steps_are_made_than_were_promised() -> None:
    assert sum(steps_of(store) * PARTS for store in SHARES) >= 20_000
