"""Lets children run into an armed point that raises, or stands still."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from chaos.lab.scenarios import chance

if TYPE_CHECKING:
    from chaos.lab.scenarios import Scenario
    from chaos.lab.supervisor import Experiment, Nursery

HANG = 0.4
_TRIES = 100


def make_raise(lab: Experiment, play: Scenario, point: str) -> None:
    """Until it has raised once; then everything comes to rest."""
    faults = f"{point}=raise:{chance(point, type(play))}"
    for _ in range(_TRIES):
        play.set_stage(lab)
        lab.ended(play.begin(lab, faults), faults)
        if lab.struck(point):
            break
    play.come_to_rest(lab)
    assert lab.struck(point)


def make_hang(lab: Experiment, play: Scenario, point: str, second_nursery: Nursery) -> None:
    """One process stands still there, and the next one does not wait for it."""
    play.set_stage(lab)
    slow = play.begin(lab, f"{point}=hang:{HANG}")
    while not (lab.struck(point) or slow.ended_within(0.02)):
        pass
    lab.nursery = second_nursery
    play.come_to_rest(lab)
    if not slow.ended_within(HANG):
        slow.signal(signal.SIGTERM)
    assert slow.wait() in {0, -signal.SIGTERM}, lab.told()
    play.come_to_rest(lab)
    assert lab.struck(point)
