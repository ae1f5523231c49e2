"""F19: what a handler says about a redriven message arrives before the redriver has marked the letter as sent.

The redriver stands still between its send and its mark, frozen for as long as the race takes; the worker is as
quick as it likes. The letter must end as the table of transitions says, and never be stuck.
"""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

import pytest

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
    with closing(sqlite3.connect(lab.premises.store)) as store:
        story = [after for (after,) in store.execute("SELECT after FROM audit ORDER BY id")]
        query = "SELECT status, how, generation, fence, (SELECT count(*) FROM claims) FROM letters"
        ((status, how, generation, fence, claims),) = store.execute(query).fetchall()
    return Letter(status, how, generation, fence, claims, story)


class Race:
    """One letter, and a redriver that is frozen when it has sent and not marked it."""

    def __init__(self, lab: Experiment, other: Nursery, plan: str, expect: str) -> None:
        self.lab = lab
        lab.produce((plan, expect))
        assert lab.run("work") == 0
        self._slow = self._freeze(lab.start_redriving("redrive.after_send=hang:1"))
        lab.nursery = other

    def _freeze(self, redriver: Child) -> Child:
        while not self.lab.struck("redrive.after_send"):
            assert not redriver.ended_within(0.01)
        redriver.signal(signal.SIGSTOP)
        return redriver

    def work(self) -> Letter:
        assert self.lab.run("work") == 0
        return the_letter(self.lab)

    def thaw(self) -> Letter:
        """The redriver goes on, with its mark."""
        assert not self._slow.ended_within(0)
        self._slow.signal(signal.SIGCONT)
        assert self._slow.wait() == 0, self.lab.told()
        return the_letter(self.lab)

    def problems(self, copies: int = 1) -> list[str]:
        verdict = self.lab.verdict()
        return verdict.problems(duplicates_allowed=copies - 1)


@pytest.fixture
def race(experiment: Callable[..., Experiment], second_nursery: Nursery) -> Callable[[str, str], Race]:
    return lambda plan, expect: Race(experiment(), second_nursery, plan, expect)


def test_a_confirmation_before_the_mark_resolves_the_letter_and_the_mark_changes_nothing(
    race: Callable[[str, str], Race],
) -> None:
    racing = race("fail", "resolved")
    assert the_letter(racing.lab).status == "REDRIVING"

    confirmed = racing.work()
    assert confirmed[:5] == ("RESOLVED", "confirmed", 1, 1, 0)
    assert racing.thaw() == confirmed

    assert confirmed.story == ["PENDING", "REDRIVING", "RESOLVED"]
    assert racing.problems() == []


def test_a_message_that_comes_back_before_the_mark_is_pending_and_the_mark_changes_nothing(
    race: Callable[[str, str], Race],
) -> None:
    racing = race("never", "letter")

    back = racing.work()
    assert back[:5] == ("PENDING", None, 2, 1, 0)
    assert racing.thaw() == back

    assert back.story == ["PENDING", "REDRIVING", "PENDING"]
    assert racing.problems() == []


def test_the_mark_of_the_first_redrive_does_not_touch_the_second(race: Callable[[str, str], Race]) -> None:
    racing = race("never", "any")
    racing.work()
    assert racing.lab.ended(racing.lab.start_redriving(kill := "redrive.after_claim=kill9"), kill) == KILLED
    claimed_again = the_letter(racing.lab)
    assert claimed_again[:5] == ("REDRIVING", None, 2, 2, 1)

    assert racing.thaw() == claimed_again


def test_the_mark_of_a_redriver_that_was_taken_over_fails_on_the_fence(race: Callable[[str, str], Race]) -> None:
    racing = race("fail", "resolved")
    assert racing.lab.ended(racing.lab.start_redriving(kill := "redrive.after_claim=kill9"), kill) == KILLED
    taken_over = the_letter(racing.lab)
    assert taken_over[:5] == ("REDRIVING", None, 1, 2, 1)

    assert racing.thaw() == taken_over

    assert racing.lab.start_redriving().wait() == 0
    assert the_letter(racing.lab)[:5] == ("REDRIVEN", None, 1, 3, 0)
    assert racing.work().status == "RESOLVED"
    assert racing.problems(copies=2) == []


def test_two_copies_that_are_both_confirmed_before_the_mark_resolve_the_letter_once(
    race: Callable[[str, str], Race],
) -> None:
    racing = race("fail", "resolved")
    assert racing.lab.start_redriving().wait() == 0

    confirmed = racing.work()
    assert racing.thaw() == confirmed

    assert confirmed.story == ["PENDING", "REDRIVING", "REDRIVING", "REDRIVEN", "RESOLVED"]
    assert racing.problems(copies=2) == []


def test_of_two_copies_one_confirmed_and_one_back_before_the_mark_the_letter_waits_for_a_person(
    race: Callable[[str, str], Race],
) -> None:
    racing = race("once", "any")
    assert racing.lab.start_redriving().wait() == 0

    back = racing.work()
    assert back[:3] == ("PENDING", None, 2)
    assert racing.thaw() == back

    assert racing.problems(copies=2) == []
    assert racing.lab.start_redriving().wait() == 0
    assert racing.work().generation == 3
