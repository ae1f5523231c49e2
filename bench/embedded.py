"""Embedded broker: messages per second from send through an empty handler to the acknowledgement.

All on one SQLite file in WAL mode with every commit synced. Two cases: one message in flight (each step its own
commit), and a hundred (commits shared by those who wait together). The raw loop makes the same steps by hand with
the same commits: insert, lease, delete, one row per commit or a hundred. It runs twice: with an id and JSON
written and read, as ours has, and bare, moving constant bytes. Huey is set up as its documentation says for
durability (`fsync=True`), without a result store. It takes the row out before it runs the task, so a crash loses
the task, and its commits cannot be shared.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from huey import SqliteHuey

from bench.measuring import Aim, Benchmark
from redrive import metrics_wiring, wiring
from redrive.app import App
from redrive.settings import Settings
from redrive.telemetry.logs import configure_logs

MESSAGES = {"one in flight": 1_500, "100 in flight": 10_000}
BARE = b"x" * 256
BODY = {"order_id": 123, "note": "x" * 220}


class Took(NamedTuple):
    """Seconds of one run; `cpu`: the processor's per message, all threads together, after a fifth of them."""

    sending: float
    handling: float
    cpu: float


def redrive(case: str, together: int) -> float:
    count = MESSAGES[case]
    took = run_redrive(count, together)
    return count / (took.sending + took.handling)


def run_redrive(count: int, together: int, **sections: object) -> Took:
    """`sections` are further settings."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_redrive(Path(folder), count, together, sections))


async def _redrive(folder: Path, count: int, together: int, sections: dict[str, object]) -> Took:
    app = App("bench")
    done, warm, cpu = 0, count // 5, 0.0
    finished = asyncio.Event()

    @app.handler("orders", concurrency=together)
    async def handle(order: dict[str, object]) -> None:
        nonlocal done, cpu
        assert order
        done += 1
        if done == warm:
            cpu = time.process_time()
        if done == count:
            cpu = (time.process_time() - cpu) / (count - warm)
            finished.set()

    settings = Settings.model_validate(
        {
            "broker": {"url": f"embedded:///{folder}/broker.db"},
            "store": {"url": f"sqlite:///{folder}/store.db"},
            "spool": {"folder": folder / "spool"},
            "journal": {"path": folder / "journal.db"},
            **sections,
        }
    )
    async with wiring.worker(app, settings) as worker:
        started = time.perf_counter()
        for _ in range(count // together):
            await asyncio.gather(*(app.send("orders", BODY) for _ in range(together)))
        sent = time.perf_counter()
        async with metrics_wiring.of_worker(worker, settings):
            working = asyncio.create_task(worker.run(drain=False))
            await finished.wait()
            worker.stop()
            await working
        return Took(sent - started, time.perf_counter() - sent, cpu)


def huey(case: str) -> float:
    count = MESSAGES[case]
    with tempfile.TemporaryDirectory() as folder:
        queue = SqliteHuey("bench", filename=f"{folder}/huey.db", fsync=True, results=False, utc=True)

        @queue.task()  # type: ignore[untyped-decorator]  # huey ships no types
        def handle(body: dict[str, object]) -> None:
            pass

        started = time.perf_counter()
        for _ in range(count):
            handle(BODY)
        for _ in range(count):
            queue.execute(queue.dequeue())
        elapsed = time.perf_counter() - started
        queue.storage.close()
        return count / elapsed


def raw(case: str, together: int, *, bare: bool) -> float:
    count = MESSAGES[case]
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(f"{folder}/raw.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, message_id TEXT,"
            " source TEXT, sent_at INTEGER, due_at INTEGER NOT NULL, receipt INTEGER, headers BLOB, body BLOB)"
        )
        connection.execute("CREATE INDEX due ON messages (queue, due_at)")
        started = time.perf_counter()
        _raw_sends(connection, count, together, bare=bare)
        _raw_receives(connection, count, together, bare=bare)
        elapsed = time.perf_counter() - started
        connection.close()
        return count / elapsed


def _raw_sends(connection: sqlite3.Connection, count: int, together: int, *, bare: bool) -> None:
    for _ in range(count // together):
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(together):
            now = time.time_ns()
            name = "" if bare else str(uuid.uuid4())
            body = BARE if bare else json.dumps({"message_id": name, "timestamp": now, "data": BODY}).encode()
            connection.execute(
                "INSERT INTO messages (queue, message_id, source, sent_at, due_at, headers, body)"
                " VALUES ('orders', ?, 'bench', ?, ?, x'', ?)",
                (name, now, now, body),
            )
        connection.execute("COMMIT")


def _raw_receives(connection: sqlite3.Connection, count: int, together: int, *, bare: bool) -> None:
    for _ in range(count // together):
        now = time.time_ns()
        connection.execute("BEGIN IMMEDIATE")
        rows = connection.execute(
            "UPDATE messages SET due_at = ?, receipt = 7 WHERE id IN"
            " (SELECT id FROM messages WHERE queue = 'orders' AND due_at <= ? ORDER BY due_at LIMIT ?)"
            " RETURNING id, message_id, source, sent_at, headers, body",
            (now + 60_000_000_000, now, together),
        ).fetchall()
        connection.execute("COMMIT")
        for *_, body in rows:
            assert bare or json.loads(body)["data"]
        connection.execute("BEGIN IMMEDIATE")
        for row in rows:
            connection.execute("DELETE FROM messages WHERE id = ? AND receipt = 7", (row[0],))
        connection.execute("COMMIT")


def systems(case: str, together: int) -> dict[str, Callable[[], float]]:
    return {
        "redrive": lambda: redrive(case, together),
        "SqliteHuey": lambda: huey(case),
        "raw sqlite3": lambda: raw(case, together, bare=False),
        "raw sqlite3, bare": lambda: raw(case, together, bare=True),
    }


def main() -> None:
    configure_logs(level="error")
    benchmark = Benchmark(
        "embedded",
        "messages/s",
        ("huey", "msgspec"),
        "send, handle and acknowledge on one SQLite file, synced commits",
    )
    for case, together in (("one in flight", 1), ("100 in flight", 100)):
        benchmark.measure(case, systems(case, together))
        benchmark.compare(Aim(case, "redrive", "SqliteHuey", "at least 3"))
        benchmark.compare(Aim(case, "redrive", "raw sqlite3", "at least 0.5"))
        benchmark.compare(Aim(case, "redrive", "raw sqlite3, bare", "at least 0.5"))
    benchmark.save()
