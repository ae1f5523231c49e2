"""Retention that has lost its lease purges nothing more (F30)."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.dead_letter import Transition
from redrive.errors import Refused
from redrive.keeping import KeepRules
from redrive.letter_query import LetterQuery
from redrive.stores import open_store
from redrive.testing import ManualClock
from redrive.testing.letters import an_entry
from redrive.testing.store_case import ANN
from redrive.upkeep.archive import Archive
from redrive.upkeep.clock_note import ClockNote
from redrive.upkeep.retention import Retention


async def test_a_run_that_is_nobodys_any_more_stops_before_the_next_purge(tmp_path: Path) -> None:
    clock = ManualClock()
    store = open_store("sqlite:///:memory:", clock=clock)
    ids = [(await store.record(an_entry(at=clock.now())))[0] for _ in range(4)]
    await store.change(ids, Transition.DISCARD, by=ANN)
    clock.advance(10)
    asked: list[int] = []

    def still_ours() -> None:
        asked.append(1)
        if len(asked) > 1:
            raise Refused("the lease was lost")

    archive = Archive(tmp_path / "archive")
    retention = Retention(
        store=store, archive=archive, clock=clock, clock_note=ClockNote(store, clock), actor="retention"
    )
    with pytest.raises(Refused, match="lease"):
        await retention.run(KeepRules.alike(1), batch=2, clock_is_right=True, still_ours=still_ours)

    assert retention.done.purged == 2
    left = {letter.id for letter in await store.find(LetterQuery())}
    await store.close()
    assert left == set(ids[2:])
    archived = [letter.id for path in archive.files() for letter in archive.read(path)]
    assert sorted(archived) == sorted(ids)
