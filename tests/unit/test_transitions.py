"""The table of transitions, against GUARANTEES section 4 written down a second time."""

from __future__ import annotations

import pytest

from redrive.dead_letter import BY_HAND, TRANSITIONS, Status, Transition
from redrive.stores.sql_audit import HAPPENED

PENDING, REDRIVING, REDRIVEN = Status.PENDING, Status.REDRIVING, Status.REDRIVEN
RESOLVED, DISCARDED, QUARANTINED = Status.RESOLVED, Status.DISCARDED, Status.QUARANTINED

T = {
    3: (Transition.CAME_BACK, {REDRIVING, REDRIVEN, RESOLVED}, PENDING),
    4: (Transition.CLAIM, {PENDING}, REDRIVING),
    7: (Transition.SENT, {REDRIVING}, REDRIVEN),
    8: (Transition.REFUSED, {REDRIVING}, PENDING),
    10: (Transition.CONFIRM, {REDRIVING, REDRIVEN}, RESOLVED),
    11: (Transition.RESOLVE, {PENDING, REDRIVEN, QUARANTINED}, RESOLVED),
    12: (Transition.DISCARD, {PENDING, QUARANTINED}, DISCARDED),
    13: (Transition.RESTORE, {DISCARDED, RESOLVED}, PENDING),
    14: (Transition.QUARANTINE, {PENDING}, QUARANTINED),
    15: (Transition.RELEASE, {QUARANTINED}, PENDING),
    16: (Transition.UNCLAIM, {REDRIVING}, PENDING),
    17: (Transition.EDIT, {PENDING}, None),
    18: (Transition.PURGE, {RESOLVED, DISCARDED}, None),
    19: (Transition.EXPIRE, {PENDING}, DISCARDED),
}


@pytest.mark.parametrize(("transition", "sources", "target"), T.values(), ids=[f"T{number}" for number in T])
def test_the_table_is_the_one_that_was_promised(
    transition: Transition, sources: set[Status], target: Status | None
) -> None:
    rule = TRANSITIONS[transition]

    assert rule.sources == sources
    assert rule.target == target


def test_the_table_has_no_other_rows() -> None:
    assert set(TRANSITIONS) == set(Transition) == {transition for transition, _, _ in T.values()}


def test_a_pending_letter_can_reach_every_status_and_come_back_from_it() -> None:
    assert _reached_from({PENDING}) == set(Status)
    for status in Status:
        assert PENDING in _reached_from({status})


def _reached_from(statuses: set[Status]) -> set[Status]:
    reached = set(statuses)
    while True:
        further = {rule.target for rule in TRANSITIONS.values() if rule.sources & reached and rule.target}
        if further <= reached:
            return reached
        reached |= further


def test_nothing_that_still_waits_for_somebody_can_be_purged() -> None:
    assert TRANSITIONS[Transition.PURGE].sources == {RESOLVED, DISCARDED}


def test_only_a_claim_makes_a_letter_redriving() -> None:
    assert [name for name, rule in TRANSITIONS.items() if rule.target is REDRIVING] == [Transition.CLAIM]


def test_nothing_made_by_hand_touches_a_letter_on_its_way() -> None:
    assert all(REDRIVING not in TRANSITIONS[transition].sources for transition in BY_HAND)


def test_every_change_made_by_hand_has_a_status_of_its_own() -> None:
    assert all(TRANSITIONS[transition].target is not None for transition in BY_HAND)


def test_every_transition_has_a_word_in_the_history() -> None:
    assert set(HAPPENED) == set(Transition)
    assert len(set(HAPPENED.values())) == len(HAPPENED)
