"""The preview of a redrive run at a million letters, on PostgreSQL and on SQLite.

What counters know (queue, status, type, group, time) is told exactly; the rest is told of letters that are looked
at, of which there is a limit. The letters are those of the benchmark `store`; a tenth of them, in a database of
their own, tells what growing costs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench import naive_schema
from bench.causes import QUEUES, causes
from bench.corpus import RARE_WORD
from bench.measuring import NO_AIM, Aim, Benchmark, Limit
from bench.preview_sqlite import seeded_file
from bench.seeding import SeedClock, Seeded, seeded
from bench.server import running
from redrive.letter_query import LetterQuery
from redrive.previewing import preview
from redrive.run import RunPlan
from redrive.search import parse
from redrive.stores import RunStore
from redrive.stores.postgres import PostgresStore
from redrive.stores.sqlite import SqliteStore
from redrive.transports import open_transport

UNDER = 1000.0
"""Milliseconds."""

CASES = {
    "everything": "",
    "a queue": f"queue:{QUEUES[0]}",
    "a queue, older than two days": f"queue:{QUEUES[0]} age:>2d",
    "a type": "type:{type}",
    "a group": "group:{group}",
    "a rare group, older than three days": "group:{rare} age:>3d",
    "a kind in a queue": f"queue:{QUEUES[-1]} kind:transient",
    "looked at: attempts": "attempts:>=1",
    "looked at: attempts, none": "attempts:>1000",
}
SEARCHED = {
    "searched: a rare word": RARE_WORD,
    "searched: a frequent word": "customer",
    "searched: data in a queue": f"queue:{QUEUES[0]} data.channel:web",
}


def written(text: str) -> str:
    every = causes()
    facts = {"group": every[0].fingerprint.id, "rare": every[-1].fingerprint.id, "type": every[0].type}
    return text.format(**facts)


class Asked:
    """One store, asked for previews."""

    def __init__(self, runner: asyncio.Runner, store: RunStore, at: Seeded) -> None:
        self._runner = runner
        self._store = store
        self._clock = SeedClock(at.now)
        self._transport = open_transport("embedded:///:memory:", clock=self._clock)

    def timed(self, text: str) -> Callable[[], float]:
        plan = RunPlan(selection=LetterQuery(where=parse(written(text), now=self._clock.now())))

        async def ask() -> float:
            started = time.perf_counter()
            await preview(
                plan,
                store=self._store,
                transport=self._transport,
                clock=self._clock,
                expire_after=lambda _queue: 20 * 86400.0,
            )
            return (time.perf_counter() - started) * 1000

        return lambda: self._runner.run(ask())

    def close(self) -> None:
        self._runner.run(self._transport.close())
        self._runner.run(self._store.close())


def main(*options: str) -> None:
    parser = argparse.ArgumentParser(prog="bench preview", description=__doc__)
    parser.add_argument("--letters", type=int, default=1_000_000)
    parser.add_argument("--file-letters", type=int, default=200_000, help="letters in the SQLite file")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the server's data here for the next run")
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="keep the SQLite file here for the next run")
    given = parser.parse_args(options)
    benchmark = Benchmark("preview", "ms", ("asyncpg", "sqlalchemy"), "what a redrive run would do")
    with running(given.keep) as server, _folder(given.files) as folder, asyncio.Runner() as runner:
        small, large = seeded(server, given.letters // 10), seeded(server, given.letters)
        benchmark.facts = server.facts()
        server.warm()
        file = Seeded("", given.file_letters, large.now)
        asked = {
            _named("PostgreSQL", at): Asked(runner, PostgresStore(at.url, view=naive_schema.VIEW), at)
            for at in (large, small)
        }
        lite = {_named("SQLite", file): Asked(runner, SqliteStore(seeded_file(folder, file)), file)}
        _measure(benchmark, CASES, asked | lite)
        _measure(benchmark, SEARCHED, asked)
        for each in (asked | lite).values():
            each.close()
    benchmark.save()


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="redrive-bench-") as name:
        yield Path(name)


def _named(name: str, at: Seeded) -> str:
    return f"{name}, {at.letters:,} letters"


def _measure(benchmark: Benchmark, cases: Mapping[str, str], asked: Mapping[str, Asked]) -> None:
    many, few, *_ = asked
    for case, text in cases.items():
        benchmark.measure_calls(case, {name: each.timed(text) for name, each in asked.items()})
        for name in asked:
            benchmark.keep_under(Limit(case, name, UNDER))
        benchmark.compare(Aim(case, many, few, NO_AIM))
