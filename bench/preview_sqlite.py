"""A SQLite store with the letters of the benchmarks, recorded and settled by the store's own methods.

Its search index is left alone: what is searched for is measured on PostgreSQL.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

from bench.corpus import Letter, letters
from bench.seeding import SeedClock, Seeded
from redrive.dead_letter import Actor, Transition
from redrive.stores.sqlite import SqliteStore

TOGETHER = 1_000
_TRANSITIONS = {"RESOLVED": Transition.RESOLVE, "DISCARDED": Transition.DISCARD}


def seeded_file(folder: Path, at: Seeded) -> str:
    """The URL of a store with so many letters, filled now unless a kept one has the same ones already."""
    path = folder / f"letters_{at.letters}_{at.now:%Y%m%d%H%M%S}.db"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        half_way = path.with_suffix(".filling")
        half_way.unlink(missing_ok=True)
        asyncio.run(_fill(f"sqlite:///{half_way}", at))
        half_way.rename(path)
    return f"sqlite:///{path}"


async def _fill(url: str, at: Seeded) -> None:
    clock = SeedClock(at.now)
    store, every = SqliteStore(url, clock=clock), letters(at.letters, at.now)
    settled = []
    done = 0
    while chunk := list(islice(every, TOGETHER)):
        clock.at = chunk[0].entry.at
        settled += await _record(store, chunk)
        done += len(chunk)
        print(f"\r{done:,} letters", end="", file=sys.stderr)
    by = Actor("operator")
    for (clock.at, status), some in groupby(sorted(settled), key=itemgetter(0, 1)):
        assert not await store.change([letter_id for *_, letter_id in some], _TRANSITIONS[status], by=by)
    print(file=sys.stderr)
    await store.close()


async def _record(store: SqliteStore, chunk: Sequence[Letter]) -> list[tuple[object, str, str]]:
    answers = await store.record_together([letter.entry for letter in chunk])
    return [
        (letter.settled_at, letter.status, letter_id)
        for letter, (letter_id, _) in zip(chunk, answers, strict=True)
        if letter.settled_at is not None
    ]
