"""F1, F11, F16 on PostgreSQL: kill -9 of processes that write to it, at every point around its transactions, and
of the server itself. None lost, no duplicate rows, counters equal to a recount.

`REDRIVE_CHAOS_KILLS` says how many kills in all (half as many as on files), `REDRIVE_CHAOS_SEED` repeats the dice.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable

import pytest

from chaos.lab.killing import kill
from chaos.lab.scenarios import ON_A_SERVER, Recording, Scenario
from chaos.lab.supervisor import KILLED, Experiment, Nursery
from support.amounts import POSTGRES_KILLS
from support.postgres_server import PrivatePostgres

KILLS = POSTGRES_KILLS
PAIRS = [(point, scenario) for point, several in ON_A_SERVER.items() for scenario in several]
PER_PAIR = math.ceil(KILLS / len(PAIRS))
AT_RANDOM = math.ceil(KILLS / 20)
SERVER_KILLS = math.ceil(KILLS / 50)


@pytest.mark.timeout(60 + 10 * PER_PAIR)
@pytest.mark.parametrize(("point", "scenario"), PAIRS, ids=[f"{point}-{each.__name__}" for point, each in PAIRS])
def test_killed_at_this_point_nothing_is_lost_or_doubled_on_the_server(
    point: str, scenario: type[Scenario], experiment: Callable[..., Experiment]
) -> None:
    lab, play = experiment(store="postgresql"), scenario()

    kill(lab, play, point, PER_PAIR)

    assert lab.problems(play.in_flight) == []


@pytest.mark.timeout(60 + 5 * AT_RANDOM)
def test_a_writer_killed_at_any_moment_loses_nothing_that_it_was_told_and_doubles_nothing(
    experiment: Callable[..., Experiment], second_nursery: Nursery
) -> None:
    lab = experiment(store="postgresql")
    while lab.kills < AT_RANDOM:
        lab.nursery, other = second_nursery, lab.nursery
        beside = lab.start("record", letters=50)  # and begins with what the others left, at the same time as they
        lab.nursery = other
        writer = lab.start("record", letters=100_000, at_once=200)
        assert not writer.ended_within(lab.dice.uniform(0.05, 0.4))
        writer.signal(signal.SIGKILL)
        assert writer.wait() == KILLED
        lab.kills += 1
        assert beside.wait() == 0, lab.told()
    Recording().come_to_rest(lab)

    assert lab.problems(in_flight=0) == []


@pytest.mark.timeout(60 + 20 * SERVER_KILLS)
def test_everything_that_was_answered_survives_kills_of_the_server_while_several_processes_write(
    own_postgres: PrivatePostgres,
    experiment: Callable[..., Experiment],
    nursery: Nursery,
    second_nursery: Nursery,
    third_nursery: Nursery,
) -> None:
    lab = experiment(store=own_postgres.new_database())
    assert lab.run("record", letters=1) == 0  # the tables are there
    writers = []
    for each in (nursery, second_nursery, third_nursery):
        lab.nursery = each
        writers.append(lab.start("record", letters=150 * SERVER_KILLS))
    for done in range(1, SERVER_KILLS + 1):
        while lab.acknowledged() < 120 * done:
            assert not all(writer.ended_within(0.02) for writer in writers)
        own_postgres.kill()
        own_postgres.start()

    assert [writer.wait() for writer in writers] == [0, 0, 0], lab.told()
    lab.nursery = nursery
    Recording().come_to_rest(lab)
    assert lab.acknowledged() == 3 * 150 * SERVER_KILLS + 6
    assert lab.problems(in_flight=0) == []


def test_two_workers_that_are_told_to_stop_at_once_under_load_lose_and_repeat_nothing(
    experiment: Callable[..., Experiment], second_nursery: Nursery
) -> None:
    lab, play = experiment(store="postgresql", lease=30.0), Scenario(lots=20)
    first = lab.nursery
    for _ in range(3):
        play.set_stage(lab)
        workers = []
        for each in (first, second_nursery):
            lab.nursery = each
            workers.append(lab.start("work", forever=True))
        lab.wait_until_they_listen(workers)
        assert not workers[0].ended_within(lab.dice.uniform(0.02, 0.3))
        for worker in workers:
            worker.signal(signal.SIGTERM)
        assert [worker.wait() for worker in workers] == [0, 0], lab.told()
        lab.nursery = first
    play.come_to_rest(lab)

    assert lab.kills == 0
    assert lab.problems(play.in_flight) == []
