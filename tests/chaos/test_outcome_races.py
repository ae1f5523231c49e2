"""F19: what a handler says about a redriven message arrives before the redriver has marked the letter as sent.

The redriver, or the engine of a run, stands still between its send and its mark, frozen for as long as the race
takes; the worker is as quick as it likes. The letter must end as the table of transitions says, never stuck.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import NamedTuple

import pytest

from chaos.lab.rows import rows
from chaos.lab.supervisor import KILLED, Child, Experiment, Nursery


class Letter(NamedTuple):
    status: str
    how: str | None
    generation: int
    fence: int
    claims: int
    story: list[str]
    """The statuses its history names, one after the other."""


def the_letter(lab: Experiment) -> Letter:
    told = "SELECT after FROM audit WHERE letter_id IN (SELECT id FROM letters) ORDER BY id"
    story = [after for (after,) in rows(lab.premises.letters, told)]
    query = "SELECT status, how, generation, fence, (SELECT count(*) FROM claims) FROM letters"
    [(status, how, generation, fence, claims)] = rows(lab.premises.letters, query)
    return Letter(status, how, generation, fence, claims, story)


class Race:
    """One letter, and a redriver that is frozen when it has sent and not marked it."""

    claimed, sent, marked = "redrive.after_claim", "redrive.after_send", "redrive.after_mark"

    def __init__(self, lab: Experiment, other: Nursery, plan: str, expect: str) -> None:
        self.lab = lab
        lab.produce((plan, expect))
        assert lab.run("work") == 0
        self._slow = self._freeze(self.start(f"{self.sent}=hang:1,{self.marked}=hang:0"))
        lab.nursery = other

    def start(self, faults: str = "") -> Child:
        """Somebody who sends what waits, and what others have claimed and not marked."""
        return self.lab.start_redriving(faults)

    def taken_over(self) -> Letter:
        """Somebody has the letter in hand instead, and dies before it is sent."""
        assert self.lab.ended(self.start(kill := f"{self.claimed}=kill9"), kill) == KILLED
        return the_letter(self.lab)

    def claimed_anew(self) -> Letter:
        """As above, if it is pending again: nobody's run knows of it."""
        assert self.lab.ended(self.lab.start_redriving(kill := f"{Race.claimed}=kill9"), kill) == KILLED
        return the_letter(self.lab)

    def _freeze(self, redriver: Child) -> Child:
        while not self.lab.struck(self.sent):
            assert not redriver.ended_within(0.01)
        redriver.signal(signal.SIGSTOP)
        return redriver

    def work(self) -> Letter:
        assert self.lab.run("work") == 0
        return the_letter(self.lab)

    def thaw(self) -> Letter:
        """The redriver has gone on, and made its mark."""
        assert not self._slow.ended_within(0)
        self._slow.signal(signal.SIGCONT)
        while not self.lab.struck(self.marked):
            # It may end as soon as it has made its mark, between one look and the other.
            assert not self._slow.ended_within(0.01) or self.lab.struck(self.marked), self.lab.told()
        return the_letter(self.lab)

    def problems(self, copies: int = 1) -> list[str]:
        assert self._slow.wait() == 0, self.lab.told()
        verdict = self.lab.verdict()
        return verdict.problems(duplicates_allowed=copies - 1)


class RaceOfEngines(Race):
    """The same, of engines that carry a run out: in the end it is done."""

    claimed, sent, marked = "engine.taken", "engine.sent", "engine.marked"
    _engines = 0

    def start(self, faults: str = "") -> Child:
        self._engines += 1
        later = 100.0 * self._engines
        return self.lab.start("carry_out", faults, ahead=later, lease=60.0, once=True, slowly=0.3)

    def problems(self, copies: int = 1) -> list[str]:
        found = super().problems(copies)
        undone = rows(self.lab.premises.letters, "SELECT id, status FROM runs WHERE status <> 'DONE'")
        return found + [f"run {run} is {status}" for run, status in undone]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=[Race, RaceOfEngines], ids=["redriver", "engine"])
def race(
    request: pytest.FixtureRequest, experiment: Callable[..., Experiment], store: str, second_nursery: Nursery
) -> Callable[[str, str], Race]:
    kind: type[Race] = request.param
    return lambda plan, expect: kind(experiment(store=store), second_nursery, plan, expect)


def test_f19_a_confirmation_before_the_mark_resolves_the_letter_and_the_mark_changes_nothing(
    race: Callable[[str, str], Race],
) -> None:
    racing = race("fail", "resolved")
    assert the_letter(racing.lab).status == "REDRIVING"

    confirmed = racing.work()
    assert confirmed[:5] == ("RESOLVED", "confirmed", 1, 1, 0)
    assert racing.thaw() == confirmed

    assert confirmed.story == ["PENDING", "REDRIVING", "RESOLVED"]
    assert racing.problems() == []


def test_f19_a_message_that_comes_back_before_the_mark_is_pending_and_the_mark_changes_nothing(
    race: Callable[[str, str], Race],
) -> None:
    racing = race("never", "letter")

    back = racing.work()
    assert back[:5] == ("PENDING", None, 2, 1, 0)
    assert racing.thaw() == back

    assert back.story == ["PENDING", "REDRIVING", "PENDING"]
    assert racing.problems() == []


def test_f19_the_mark_of_the_first_redrive_does_not_touch_the_second(race: Callable[[str, str], Race]) -> None:
    racing = race("never", "any")
    racing.work()
    claimed_again = racing.claimed_anew()
    assert claimed_again[:5] == ("REDRIVING", None, 2, 2, 1)

    assert racing.thaw() == claimed_again


def test_f19_the_mark_of_a_redriver_that_was_taken_over_fails_on_the_fence(
    race: Callable[[str, str], Race],
) -> None:
    racing = race("fail", "resolved")
    taken_over = racing.taken_over()
    assert taken_over[:5] == ("REDRIVING", None, 1, 2, 1)

    assert racing.thaw() == taken_over

    assert racing.start().wait() == 0
    assert the_letter(racing.lab)[:5] == ("REDRIVEN", None, 1, 3, 0)
    assert racing.work().status == "RESOLVED"
    assert racing.problems(copies=2) == []


def test_f19_two_copies_that_are_both_confirmed_before_the_mark_resolve_the_letter_once(
    race: Callable[[str, str], Race],
) -> None:
    racing = race("fail", "resolved")
    assert racing.start().wait() == 0

    confirmed = racing.work()
    assert racing.thaw() == confirmed

    assert confirmed.story == ["PENDING", "REDRIVING", "REDRIVING", "REDRIVEN", "RESOLVED"]
    assert racing.problems(copies=2) == []


def test_f19_of_two_copies_one_confirmed_and_one_back_before_the_mark_the_letter_waits_for_a_person(
    race: Callable[[str, str], Race],
) -> None:
    racing = race("once", "any")
    assert racing.start().wait() == 0

    back = racing.work()
    assert back[:3] == ("PENDING", None, 2)
    assert racing.thaw() == back

    assert racing.problems(copies=2) == []
    assert racing.start().wait() == 0
    assert racing.work().generation == 3
