"""The HTTP API over PostgreSQL at a million letters: one client, one connection kept open, question by question.

Beside each, what the same question costs without HTTP: asked of the store in this process, and, where the answer
is rows of a table, by plain SQL through asyncpg. Aims: the 99th percentile under 100 ms, and no more than 10 ms
over the store at the median.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg

from bench import naive_schema
from bench.causes import QUEUES
from bench.measuring import Benchmark, Limit
from bench.seeding import SeedClock, Seeded, seeded
from bench.server import running
from redrive.access import Grant, Role
from redrive.accounts import ApiToken, KeptToken
from redrive.clock import SystemClock
from redrive.dead_letter import Actor
from redrive.identity.tokens import digest, new_token
from redrive.letter_query import LetterQuery
from redrive.search import parse
from redrive.stores.postgres import PostgresStore

HTTP, STORE, SQL = "over HTTP", "the store", "plain SQL"
PAGE_UNDER = 100.0
CALLS = 100
_PAGE = "SELECT * FROM redrive.letters {} ORDER BY created_at DESC, id DESC LIMIT 50"
_WAIT = 60.0


class Api:
    """`redrive serve` on that database, and one connection to it."""

    def __init__(self, url: str, token: str) -> None:
        host, port = re.fullmatch(r"http://([^:/]+):(\d+)/api/v1", url).groups()  # type: ignore[union-attr]
        self.origin = url.removesuffix("/api/v1")
        self._connection = http.client.HTTPConnection(host, int(port))
        self._headers = {"authorization": f"Bearer {token}"}

    def timed(self, path: str) -> Callable[[], float]:
        def ask() -> float:
            started = time.perf_counter()
            self._connection.request("GET", f"/api/v1{path}", headers=self._headers)
            answer = self._connection.getresponse()
            answer.read()
            assert answer.status == 200, (path, answer.status)
            return (time.perf_counter() - started) * 1000

        return ask


def main(*options: str) -> None:
    parser = argparse.ArgumentParser(prog="bench api", description=__doc__)
    parser.add_argument("--letters", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the server's data here for the next run")
    given = parser.parse_args(options)
    about = f"the API over {given.letters:,} letters on PostgreSQL"
    benchmark = Benchmark("api", "ms", ("fastapi", "uvicorn", "asyncpg"), about, percentile="p99")
    with running(given.keep) as server, asyncio.Runner() as runner:
        at = seeded(server, given.letters)
        benchmark.facts = server.facts()
        server.warm()
        store = PostgresStore(at.url, clock=SeedClock(at.now), view=naive_schema.VIEW)
        plain = runner.run(asyncpg.connect(at.url))
        with serving(at, runner.run(a_token(store))) as api:
            for name, (path, ask, sql) in _cases(runner, store, at).items():
                systems = {HTTP: api.timed(path), STORE: _timed(runner, ask)}
                if sql is not None:
                    systems[SQL] = _timed(runner, partial(plain.fetch, *sql))
                benchmark.measure_calls(name, systems, most=CALLS)
                benchmark.keep_under(Limit(name, HTTP, PAGE_UNDER))
        runner.run(plain.close())
        runner.run(store.close())
    benchmark.save()


def _cases(
    runner: asyncio.Runner, store: PostgresStore, at: Seeded
) -> dict[str, tuple[str, Callable[[], Any], tuple[Any, ...] | None]]:
    """The path, the same question to the store, and by SQL."""
    letter_id = runner.run(store.find(LetterQuery(limit=1)))[0].id
    queue = QUEUES[0]
    return {
        "a page of 50": ("/dlq", partial(store.find, LetterQuery(limit=50)), (_PAGE.format(""),)),
        "a page of a queue, pending": (
            f"/dlq?queue={queue}&status=PENDING",
            partial(store.find, _query(f"queue:{queue} status:PENDING", at)),
            (_PAGE.format("WHERE queue = $1 AND status = $2"), queue, "PENDING"),
        ),
        "a page by filter": (
            f"/dlq?q=queue:{queue}%20age:%3E2d",
            partial(store.find, _query(f"queue:{queue} age:>2d", at)),
            None,
        ),
        "one letter": (f"/dlq/{letter_id}", partial(store.get, letter_id), None),
        "statistics": ("/stats", store.statistics, None),
        "groups": ("/groups", store.groups, None),
    }


def _query(text: str, at: Seeded) -> LetterQuery:
    return LetterQuery(where=parse(text, now=at.now), limit=50)


def _timed(runner: asyncio.Runner, ask: Callable[[], Any]) -> Callable[[], float]:
    async def answer() -> float:
        started = time.perf_counter()
        await ask()
        return (time.perf_counter() - started) * 1000

    return lambda: runner.run(answer())


async def a_token(store: PostgresStore) -> str:
    shown, now = new_token(), SystemClock().now()
    token = ApiToken(
        id=shown.id,
        name="bench",
        grants=(Grant(Role.VIEWER),),
        created_at=now,
        created_by="bench",
        expires_at=now + timedelta(days=1),
    )
    await store.add_token(KeptToken(token, digest(shown.secret)), by=Actor("bench"))
    return shown.text


@contextmanager
def serving(at: Seeded, token: str) -> Iterator[Api]:
    """Without engine and upkeep, which others would run beside it."""
    command = [str(Path(sys.executable).parent / "redrive"), "serve", "--port", "0", "--no-engine", "--no-upkeep"]
    with TemporaryDirectory(prefix="redrive-bench-") as folder:
        said = Path(folder) / "said"
        with said.open("wb") as file:
            given = {**os.environ, "REDRIVE_STORE__URL": at.url, "REDRIVE_STORE__VIEW": naive_schema.VIEW}
            process = subprocess.Popen(command, cwd=folder, stderr=file, env=given)
        try:
            yield Api(_url(said), token)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _url(said: Path) -> str:
    until = time.monotonic() + _WAIT
    while time.monotonic() < until:
        if found := re.search(r"http://\S+/api/v1", said.read_text()):
            return found[0]
        time.sleep(0.05)
    sys.exit(said.read_text())
