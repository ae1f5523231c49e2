from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.lab.premises import LEASE, Premises, Sink
from chaos.lab.supervisor import Experiment, Nursery

SEED = int(os.environ.get("REDRIVE_CHAOS_SEED") or random.SystemRandom().getrandbits(32))


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


@pytest.fixture(scope="session")
def second_nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


@pytest.fixture
def experiment(tmp_path: Path, nursery: Nursery) -> Iterator[Callable[..., Experiment]]:
    """A new experiment. The same `REDRIVE_CHAOS_SEED` throws the same dice; the files stay if the test fails."""
    made: list[Experiment] = []

    def make(*, sink: Sink = "store", lease: float = LEASE) -> Experiment:
        made.append(Experiment(Premises(tmp_path, sink=sink, lease=lease), nursery, SEED))
        return made[-1]

    yield make
    for each in made:
        each.clean_up()
