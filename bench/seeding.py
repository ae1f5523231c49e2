"""Fills a database twice with the same letters: our store by its own methods, S1's table by COPY.

1. Letters are recorded in the order in which they failed, by `record`, many waiting at once.
2. Those that somebody resolved or discarded are, by `change`, in the order and at the time in which it happened.
3. What works behind the intake is waited for: counters are folded, the search index has no letter waiting.
4. Both sides are vacuumed and analysed, and the server writes its checkpoint.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from operator import itemgetter

import asyncpg
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bench import naive_schema
from bench.behind import catch_up
from bench.corpus import DAYS, Letter, letters
from bench.server import BenchServer
from redrive.dead_letter import Actor, Transition
from redrive.stores.postgres import PostgresStore
from redrive.uptime import Uptime, uptime

TOGETHER = 2_000
FRESH = timedelta(hours=20)
"""How old kept letters may be: later, "the last seven days" would be other letters."""

_TRANSITIONS = {"RESOLVED": Transition.RESOLVE, "DISCARDED": Transition.DISCARD}

Settled = tuple[datetime, str, str]
"""When, as what, and which letter."""


@dataclass(frozen=True)
class Seeded:
    url: str
    letters: int
    now: datetime
    """The moment after the newest letter."""


class SeedClock:
    """Says what time it is in the story that is being told."""

    def __init__(self, start: datetime) -> None:
        self.at = start

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return time.monotonic()

    def uptime(self) -> Uptime:
        return uptime()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def seeded(server: BenchServer, count: int) -> Seeded:
    """The database with so many letters, filled now unless a kept one has them already."""
    name = f"letters_{count}"
    url = server.url(name)
    if name in server.databases():
        now = _told(server, url)
        if now is not None and datetime.now(UTC) - now < FRESH:
            return Seeded(url, count, now)
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    server.execute(f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'UTF8'")
    now = datetime.now(UTC)
    asyncio.run(_fill(url, count, now))
    server.execute("CHECKPOINT")
    server.execute(f"CREATE TABLE public.seeded AS SELECT timestamptz '{now.isoformat()}' AS now", url=url)
    return Seeded(url, count, now)


def _told(server: BenchServer, url: str) -> datetime | None:
    if not server.fetch("SELECT 1 FROM pg_tables WHERE tablename = 'seeded'", url=url):
        return None  # killed half-way
    found = server.fetch("SELECT now FROM public.seeded", url=url)[0][0]
    assert isinstance(found, datetime)
    return found


async def _fill(url: str, count: int, now: datetime) -> None:
    clock = SeedClock(now - timedelta(days=DAYS))
    store, naive = PostgresStore(url, clock=clock, view=naive_schema.VIEW), await asyncpg.connect(url)
    with _progress() as progress:
        await naive.execute(naive_schema.DEFINITION)
        settled = await _record(store, naive, clock, _chunks(count, now, progress))
        await _settle(store, clock, settled, progress)
        clock.at = now
        await _catch_up(url, progress)
        await naive.execute("VACUUM (ANALYZE)")
    await store.close()
    await naive.close()


def _progress() -> Progress:
    shown = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description:<10}"), *shown, console=Console(stderr=True))


def _chunks(count: int, now: datetime, progress: Progress) -> Iterator[list[Letter]]:
    every = letters(count, now)
    task = progress.add_task("letters", total=count)
    while chunk := list(islice(every, TOGETHER)):
        yield chunk
        progress.advance(task, len(chunk))


async def _record(
    store: PostgresStore, naive: asyncpg.Connection, clock: SeedClock, chunks: Iterable[list[Letter]]
) -> list[Settled]:
    """What is to be settled, in the order of time."""
    settled: list[Settled] = []
    for chunk in chunks:
        clock.at = chunk[0].entry.at  # nothing is younger than its own record
        answers = await asyncio.gather(*(store.record(letter.entry) for letter in chunk))
        await naive.copy_records_to_table(
            naive_schema.TABLE, records=map(naive_schema.row, chunk), **naive_schema.COPIED
        )
        for letter, (letter_id, _) in zip(chunk, answers, strict=True):
            if letter.settled_at is not None:
                settled.append((letter.settled_at, letter.status, letter_id))
    return sorted(settled)


async def _settle(store: PostgresStore, clock: SeedClock, settled: Sequence[Settled], progress: Progress) -> None:
    by, task = Actor("operator"), progress.add_task("settled", total=len(settled))
    for (clock.at, status), some in groupby(settled, key=itemgetter(0, 1)):
        ids = [letter_id for _, _, letter_id in some]
        assert not await store.change(ids, _TRANSITIONS[status], by=by)
        progress.advance(task, len(ids))


async def _catch_up(url: str, progress: Progress) -> None:
    tasks: dict[str, TaskID] = {}

    def tell(name: str, done: int) -> None:
        if name not in tasks:
            tasks[name] = progress.add_task(name, total=None)
        progress.advance(tasks[name], done)

    await catch_up(url, tell)
