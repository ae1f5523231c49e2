"""Lets children run into an armed point until enough of them have died there."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from chaos.lab.scenarios import chance
from chaos.lab.supervisor import KILLED

if TYPE_CHECKING:
    from chaos.lab.scenarios import Scenario
    from chaos.lab.supervisor import Child, Experiment, Nursery

_TRIES = 20
_RESTS = 5


def kill(lab: Experiment, play: Scenario, point: str, times: int, *, often: float = 1.0) -> None:
    """Kills that many, then lets everything come to rest. `often` multiplies how likely each pass is the last."""
    hits, ended = 0, 0
    for _ in range(times * _TRIES):
        if ended == 0:
            play.set_stage(lab)
        faults = f"{point}=kill9:{often * chance(point, type(play))}"
        ended = lab.ended(play.begin(lab, faults), faults)
        hits += ended == KILLED
        if hits == times:
            break
    play.come_to_rest(lab)
    assert hits == times, f"killed {hits} times at {point}, {times} wanted"


def kill_at_any_moment(
    lab: Experiment, play: Scenario, times: int, within: tuple[float, float], *, lives: Nursery | None = None
) -> None:
    """Kills that many workers, each after a time within these seconds, then lets everything come to rest. `lives`:
    where one comes from that works beside them all the while.
    """
    steady = None if lives is None else _started_in(lives, lab)
    while lab.kills < times:
        play.set_stage(lab)
        worker = lab.start("work", forever=True)
        assert not worker.ended_within(lab.dice.uniform(*within))
        worker.signal(signal.SIGKILL)
        assert worker.wait() == KILLED
        lab.note_death()
    if steady is not None:
        steady.signal(signal.SIGTERM)
        assert steady.wait() == 0, lab.told()
    play.come_to_rest(lab)


def _started_in(nursery: Nursery, lab: Experiment) -> Child:
    first, lab.nursery = lab.nursery, nursery
    child = lab.start("work", forever=True)
    lab.nursery = first
    return child


def problems_at_rest(lab: Experiment, play: Scenario, *, in_flight: int | None, quiet: bool = True) -> list[str]:
    """What is wrong once all work is done. On its way from one queue of a broker to another a message is in
    neither, so a worker may leave too early: then the next one comes. What is lost stays lost.
    """
    for _ in range(_RESTS):
        problems = lab.problems(in_flight, quiet=quiet)
        if not problems:
            break
        play.come_to_rest(lab)
    return problems
