"""Silence is taken for success of letters alone that are on their way, whatever rows an older version has left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive.dead_letter import Status, Transition
from redrive.testing.store_case import ANN, letter, place
from support.store_database import Database, opened

WAYS = {
    Status.PENDING: [Transition.RESOLVE, Transition.RESTORE],
    Status.QUARANTINED: [Transition.RESOLVE, Transition.RESTORE, Transition.QUARANTINE],
    Status.DISCARDED: [Transition.RESOLVE, Transition.RESTORE, Transition.DISCARD],
}


@pytest.mark.parametrize("status", WAYS)
async def test_nothing_is_assumed_of_a_letter_that_somebody_has_decided_about(
    database: Database, status: Status
) -> None:
    """Versions without runs did not write down in a redrive's row that a person had resolved its letter."""
    async with opened(database) as store:
        runs: Any = store
        letter_id, _ = await place(store, Status.REDRIVEN)
        for transition in WAYS[status]:
            assert await store.change([letter_id], transition, by=ANN) == {}
        database.fetch("UPDATE redrives SET outcome = NULL, outcome_at = NULL")
        before = await letter(store, letter_id)

        later = datetime.now(UTC) + timedelta(hours=1)
        assert await runs.assume([letter_id], sent_before=later, by=ANN) == 0

        assert await letter(store, letter_id) == before
        assert before.status is status


async def test_of_a_letter_that_is_on_its_way_it_is(database: Database) -> None:
    async with opened(database) as store:
        runs: Any = store
        letter_id, _ = await place(store, Status.REDRIVEN)

        later = datetime.now(UTC) + timedelta(hours=1)
        assert await runs.assume([letter_id], sent_before=later, by=ANN) == 1

        assert (await letter(store, letter_id)).how == "assumed"
