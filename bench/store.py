"""The PostgreSQL store at a million letters, question by question, beside S1's table in the same database.

Ours is asked through the store's public methods and gives nouns; S1's table is asked by asyncpg, with S1's own SQL
where S1 has some, and gives rows. Before anything is timed, the answers are compared wherever both give the same
thing. A tenth of the letters, in a database of its own, tells what growing costs.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import asyncpg

from bench import naive_schema
from bench.measuring import NO_AIM, Aim, Benchmark, Limit
from bench.seeding import SeedClock, Seeded, seeded
from bench.server import BenchServer, running
from bench.store_cases import S1, Ask, Case, Questions
from redrive.stores.postgres import PostgresStore

OURS = "redrive"


@dataclass(frozen=True)
class Opened:
    """One seeded database, asked by both sides."""

    store: PostgresStore
    naive: asyncpg.Connection
    cases: list[Case]
    runner: asyncio.Runner

    def timed(self, ask: Ask) -> Callable[[], float]:
        """Milliseconds of one question."""

        async def answer() -> float:
            started = time.perf_counter()
            await ask()
            return (time.perf_counter() - started) * 1000

        return lambda: self.runner.run(answer())

    def systems(self, case: Case) -> dict[str, Callable[[], float]]:
        naive = {name: self.timed(partial(self.naive.fetch, *asked)) for name, asked in case.naive.items()}
        return {OURS: self.timed(case.ours)} | naive

    def compare(self) -> None:
        for case in self.cases:
            if case.told is not None:
                ours = case.told[0](self.runner.run(_answer(case.ours)))
                for asked in case.naive.values():
                    other = case.told[1](self.runner.run(self.naive.fetch(*asked)))
                    assert ours == other, f"{case.name}: {ours} is not {other}"

    def close(self) -> None:
        self.runner.run(self.store.close())
        self.runner.run(self.naive.close())


async def _answer(ask: Ask) -> object:
    return await ask()


def opened(runner: asyncio.Runner, at: Seeded) -> Opened:
    store = PostgresStore(at.url, clock=SeedClock(at.now), view=naive_schema.VIEW)
    naive = runner.run(asyncpg.connect(at.url))
    return Opened(store, naive, runner.run(Questions(store, at).every()), runner)


def main(*options: str) -> None:
    parser = argparse.ArgumentParser(prog="bench store", description=__doc__)
    parser.add_argument("--letters", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the server's data here for the next run")
    given = parser.parse_args(options)
    about = f"questions at {given.letters:,} letters of 1 KiB body and 2 KiB stack trace"
    benchmark = Benchmark("store", "ms", ("asyncpg", "sqlalchemy"), about)
    with running(given.keep) as server, asyncio.Runner() as runner:
        small, large = seeded(server, given.letters // 10), seeded(server, given.letters)
        benchmark.facts = server.facts() | _sizes(server, large)
        server.warm()
        few, many = opened(runner, small), opened(runner, large)
        for each in (few, many):
            each.compare()
        _measure(benchmark, few, many, f"redrive, {small.letters:,} letters")
        for each in (few, many):
            each.close()
    benchmark.save()


def _measure(benchmark: Benchmark, few: Opened, many: Opened, few_name: str) -> None:
    for small, case in zip(few.cases, many.cases, strict=True):
        systems = many.systems(case) | ({few_name: few.timed(small.ours)} if case.flat else {})
        benchmark.measure_calls(case.name, systems)
        benchmark.keep_under(Limit(case.name, OURS, case.under))
        for name in case.naive:
            wanted = NO_AIM if case.times is None or name != S1 else f"at most 1/{case.times:g}"
            benchmark.compare(Aim(case.name, OURS, name, wanted))
        if case.flat:
            benchmark.compare(Aim(case.name, OURS, few_name, "under 2"))


def _sizes(server: BenchServer, at: Seeded) -> dict[str, str]:
    """On disk, indexes included."""
    total = "pg_size_pretty(sum(pg_total_relation_size(oid))) FROM pg_class WHERE relkind = 'r' AND relnamespace"
    ours = server.fetch(f"SELECT {total} = 'redrive'::regnamespace", url=at.url)
    search = server.fetch(
        f"SELECT {total} = 'redrive'::regnamespace AND relname LIKE 'search%'",
        url=at.url,
    )
    theirs = server.fetch("SELECT pg_size_pretty(pg_total_relation_size('public.dlq_events'))", url=at.url)
    return {
        "size on disk, redrive": f"{ours[0][0]}, of which the search index {search[0][0]}",
        "size on disk, S1's table": str(theirs[0][0]),
    }
