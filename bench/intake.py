"""Intake of the PostgreSQL store: letters per second, each answered after its COMMIT, `synchronous_commit` on.

Every run has a new database, made from one with both schemas and no rows, on the same server. What is written is
made before the clock starts: entries for us, rows for S1's table. The first letters of every run, which open the
connections, are not counted. Consumers are tasks of one process, as a worker has them, and share one store; each
waits for its answer before it takes its next letter. Ours writes a letter with its group, counters, body,
stack trace and its first line of history; S1's table is one row. What is done behind the intake (folding counters
together, the search index) is measured apart. After each run the rows are counted and `redrive db check` compares
every counter with the letters.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg

from bench import naive_schema
from bench.behind import catch_up
from bench.corpus import letters
from bench.measuring import NO_AIM, Aim, Benchmark
from bench.recording import record_all
from bench.server import BenchServer, running
from redrive.stores.postgres import PostgresStore
from redrive.stores.upgrade import check, upgrade

FEW, SOME, MANY = 1_000, 6_000, 20_000
WARM_UP = 200
EMPTY = "intake_empty"
RUN = "intake_run"

Work = Callable[[str], Coroutine[Any, Any, float]]


class Intake:
    """The systems that are measured, on one server, with one set of letters."""

    def __init__(self, server: BenchServer) -> None:
        self._server = server
        made = list(letters(MANY + WARM_UP, datetime.now(UTC)))
        self.entries = [letter.entry for letter in made]
        self.rows = [naive_schema.row(letter) for letter in made]
        url = server.url(EMPTY)
        server.execute(f"CREATE DATABASE {EMPTY} TEMPLATE template0 ENCODING 'UTF8'")
        for statement in filter(str.strip, naive_schema.DEFINITION.split(";")):
            server.execute(statement, url=url)
        upgrade(url, view=naive_schema.VIEW)

    def redrive(self, number: int, consumers: int) -> Callable[[], float]:
        async def work(url: str) -> float:
            store = PostgresStore(url, view=naive_schema.VIEW)
            await record_all(store, self.entries[:WARM_UP], consumers)
            seconds = await _timed(record_all(store, self.entries[WARM_UP : WARM_UP + number], consumers))
            await store.close()
            return number / seconds

        return lambda: self._run(work, "redrive.letters", number, _adds_up)

    def behind(self, number: int) -> Callable[[], float]:
        """How fast what waits behind the intake is worked off: counters and search index."""

        async def work(url: str) -> float:
            store = PostgresStore(url, view=naive_schema.VIEW)
            await record_all(store, self.entries[: WARM_UP + number], 800)
            seconds = await _timed(catch_up(url))
            await store.close()
            return (WARM_UP + number) / seconds

        return lambda: self._run(work, "redrive.letters", number, _adds_up)

    def copy(self, number: int) -> Callable[[], float]:
        async def work(url: str) -> float:
            connection = await asyncpg.connect(url)
            await _copy(connection, self.rows[:WARM_UP])
            seconds = await _timed(_copy(connection, self.rows[WARM_UP : WARM_UP + number]))
            await connection.close()
            return number / seconds

        return lambda: self._run(work, "public.dlq_events", number)

    def insert(self, number: int, connections: int) -> Callable[[], float]:
        async def work(url: str) -> float:
            pool = [await asyncpg.connect(url) for _ in range(connections)]
            await _insert(pool, self.rows[:WARM_UP])
            seconds = await _timed(_insert(pool, self.rows[WARM_UP : WARM_UP + number]))
            for connection in pool:
                await connection.close()
            return number / seconds

        return lambda: self._run(work, "public.dlq_events", number)

    def _run(self, work: Work, table: str, number: int, verify: Callable[[str], None] = lambda _: None) -> float:
        self._server.execute(f"CREATE DATABASE {RUN} TEMPLATE {EMPTY}")
        self._server.execute("CHECKPOINT")
        url = self._server.url(RUN)
        rate = asyncio.run(work(url))
        assert self._server.fetch(f"SELECT count(*) FROM {table}", url=url) == [(WARM_UP + number,)]  # noqa: S608
        verify(url)
        self._server.execute(f"DROP DATABASE {RUN}")
        return rate


def _adds_up(url: str) -> None:
    found = check(url, view=naive_schema.VIEW)
    assert found.healthy, found.problems


async def _timed(work: Awaitable[Any]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


async def _copy(connection: asyncpg.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    await connection.copy_records_to_table(naive_schema.TABLE, records=rows, **naive_schema.COPIED)


async def _insert(pool: Sequence[asyncpg.Connection], rows: Sequence[tuple[Any, ...]]) -> None:
    left: Iterator[tuple[Any, ...]] = iter(rows)

    async def one_after_the_other(connection: asyncpg.Connection) -> None:
        statement = await connection.prepare(naive_schema.INSERT)
        for row in left:
            await statement.fetch(*row)

    await asyncio.gather(*map(one_after_the_other, pool))


def main() -> None:
    about = "letters of 1 KiB body and 2 KiB stack trace, every answer after its COMMIT"
    benchmark = Benchmark("intake", "letters/s", ("asyncpg", "sqlalchemy"), about)
    with running() as server:
        benchmark.facts = server.facts()
        intake = Intake(server)
        measure(benchmark, intake)
    benchmark.save()


ONE, EIGHT, WORKERS = "1 in flight", "8 in flight", "8 consumers, 100 in flight each"
COPY, INSERT, INSERT_8 = "COPY into S1's table", "S1's INSERT, 1 connection", "S1's INSERT, 8 connections"


def measure(benchmark: Benchmark, intake: Intake) -> None:
    benchmark.measure(
        "intake",
        {
            f"redrive, {ONE}": intake.redrive(FEW, 1),
            f"redrive, {EIGHT}": intake.redrive(SOME, 8),
            f"redrive, {WORKERS}": intake.redrive(MANY, 800),
            COPY: intake.copy(MANY),
            INSERT: intake.insert(FEW, 1),
            INSERT_8: intake.insert(SOME, 8),
        },
    )
    benchmark.compare(Aim("intake", f"redrive, {WORKERS}", COPY, "at least 0.4"))
    benchmark.compare(Aim("intake", f"redrive, {WORKERS}", INSERT, "at least 5"))
    benchmark.compare(Aim("intake", f"redrive, {WORKERS}", INSERT_8, NO_AIM))
    benchmark.compare(Aim("intake", f"redrive, {EIGHT}", INSERT_8, NO_AIM))
    benchmark.compare(Aim("intake", f"redrive, {ONE}", INSERT, NO_AIM))
    benchmark.measure("behind the intake", {"counters and search index": intake.behind(MANY)})
