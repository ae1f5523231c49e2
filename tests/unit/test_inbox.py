from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from redrive import faults
from redrive.clock import SystemClock
from redrive.errors import ConfigurationError, CorruptFile, Unreachable
from redrive.inbox import Inbox, SqliteInbox, TransactionMisused
from support.spooled import start


@pytest.fixture
async def inbox(tmp_path: Path) -> AsyncIterator[SqliteInbox]:
    path = tmp_path / "shop.db"
    with contextlib.closing(sqlite3.connect(path)) as team:
        team.execute("CREATE TABLE charges (order_id UNIQUE)")
    made = SqliteInbox(path)
    yield made
    await made.close()


def charges(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as team:
        return [order for (order,) in team.execute("SELECT order_id FROM charges ORDER BY rowid")]


def nothing(_: sqlite3.Connection) -> object:
    return None


async def handle(
    inbox: Inbox,
    message_id: str,
    order: str,
    *,
    handler: str = "charge",
    then: Callable[[sqlite3.Connection], object] = nothing,
) -> bool:
    """Whether the handler ran."""
    async with inbox.once(message_id, handler) as connection:
        if connection is None:
            return False
        connection.execute("INSERT INTO charges VALUES (?)", (order,))
        then(connection)
        return True


async def test_three_deliveries_of_one_message_have_one_effect(inbox: SqliteInbox, tmp_path: Path) -> None:
    assert [await handle(inbox, "m1", f"order {time}") for time in range(3)] == [True, False, False]
    assert charges(tmp_path / "shop.db") == ["order 0"]


async def test_messages_and_handlers_are_told_apart(inbox: SqliteInbox) -> None:
    assert await handle(inbox, "m1", "a")
    assert await handle(inbox, "m2", "b")
    assert await handle(inbox, "m1", "c", handler="ship")


async def test_an_exception_takes_back_the_effect_and_the_mark(inbox: SqliteInbox, tmp_path: Path) -> None:
    def fail(_: sqlite3.Connection) -> None:
        raise RuntimeError("after the insert")

    with pytest.raises(RuntimeError, match="after the insert"):
        await handle(inbox, "m1", "half", then=fail)
    assert charges(tmp_path / "shop.db") == []

    assert await handle(inbox, "m1", "whole")
    assert charges(tmp_path / "shop.db") == ["whole"]


async def test_deliveries_at_the_same_time_have_one_effect(inbox: SqliteInbox, tmp_path: Path) -> None:
    other = SqliteInbox(tmp_path / "shop.db")
    ran = await asyncio.gather(
        *(handle(each, "m1", f"{number}") for number in range(10) for each in (inbox, other))
    )
    await other.close()

    assert sum(ran) == 1
    assert len(charges(tmp_path / "shop.db")) == 1


async def test_a_plain_handler_uses_the_connection_in_its_own_thread(inbox: SqliteInbox, tmp_path: Path) -> None:
    async with inbox.once("m1", "charge") as connection:
        assert connection is not None
        await asyncio.to_thread(connection.execute, "INSERT INTO charges VALUES ('from a thread')")

    assert charges(tmp_path / "shop.db") == ["from a thread"]


async def test_a_cancelled_handler_leaves_neither_effect_nor_mark_nor_lock(
    inbox: SqliteInbox, tmp_path: Path
) -> None:
    started = asyncio.Event()

    async def hang() -> None:
        async with inbox.once("m1", "charge") as connection:
            assert connection is not None
            connection.execute("INSERT INTO charges VALUES ('half')")
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await handle(inbox, "m1", "whole")
    assert charges(tmp_path / "shop.db") == ["whole"]


async def test_cancelled_while_it_waits_for_the_database_it_leaves_no_transaction_behind(
    inbox: SqliteInbox, tmp_path: Path
) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as team:
        team.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(handle(inbox, "m1", "never"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        team.execute("COMMIT")

    assert await handle(inbox, "m2", "next")
    other = SqliteInbox(tmp_path / "shop.db")
    assert await handle(other, "m1", "by another process")
    await other.close()
    assert charges(tmp_path / "shop.db") == ["next", "by another process"]


async def test_a_handler_whose_time_is_over_can_write_nothing_more(inbox: SqliteInbox, tmp_path: Path) -> None:
    started, go_on = threading.Event(), threading.Event()
    said: list[str] = []

    def slow(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO charges VALUES (?)", ("in time",))
        started.set()
        go_on.wait()
        for _ in range(2):
            try:
                connection.execute("INSERT INTO charges VALUES (?)", ("too late",))
            except sqlite3.ProgrammingError as refused:
                said.append(str(refused))

    async def deliver() -> None:
        async with inbox.once("m1", "charge") as connection:
            assert connection is not None
            stray.append(asyncio.ensure_future(asyncio.to_thread(slow, connection)))
            await asyncio.to_thread(started.wait)
            raise TimeoutError

    stray: list[asyncio.Future[None]] = []
    with pytest.raises(TimeoutError):
        await deliver()
    async with inbox.once("m2", "charge") as connection:  # the stray handler wakes up in somebody else's turn
        assert connection is not None
        connection.execute("INSERT INTO charges VALUES ('another message')")
        go_on.set()
        await stray[0]

    assert said == ["the transaction of this message has ended"] * 2
    assert charges(tmp_path / "shop.db") == ["another message"]


@pytest.mark.parametrize(
    "misuse",
    [
        lambda connection: connection.commit(),
        lambda connection: connection.rollback(),
        lambda connection: connection.__enter__(),
        lambda connection: connection.executescript("SELECT 1"),
        lambda connection: connection.execute(" commit ;"),
        lambda connection: connection.execute("END TRANSACTION"),
        lambda connection: connection.cursor().execute("ROLLBACK"),
    ],
)
async def test_a_handler_that_ends_the_transaction_is_refused_and_nothing_stays(
    misuse: Callable[[sqlite3.Connection], object], inbox: SqliteInbox, tmp_path: Path
) -> None:
    with pytest.raises(TransactionMisused):
        await handle(inbox, "m1", "half", then=misuse)

    assert charges(tmp_path / "shop.db") == []
    assert await handle(inbox, "m1", "whole")


async def test_savepoints_are_the_handlers_own(inbox: SqliteInbox, tmp_path: Path) -> None:
    async with inbox.once("m1", "charge") as connection:
        assert connection is not None
        connection.execute("SAVEPOINT try_it")
        connection.execute("INSERT INTO charges VALUES ('taken back')")
        connection.execute("ROLLBACK TO try_it")
        connection.executemany("INSERT INTO charges VALUES (?)", [("kept",), ("kept too",)])
        connection.execute("RELEASE try_it")

    assert charges(tmp_path / "shop.db") == ["kept", "kept too"]


async def test_a_transaction_that_sqlite_ended_is_not_taken_for_success(
    inbox: SqliteInbox, tmp_path: Path
) -> None:
    def go_on_after_a_rollback(connection: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.IntegrityError):
            connection.execute("INSERT OR ROLLBACK INTO charges VALUES ('there already')")
        with contextlib.suppress(sqlite3.ProgrammingError):
            connection.execute("INSERT INTO charges VALUES ('would stand alone')")

    await handle(inbox, "m0", "there already")
    with pytest.raises(sqlite3.DatabaseError, match="ended before the handler did"):
        await handle(inbox, "m1", "taken back", then=go_on_after_a_rollback)

    assert charges(tmp_path / "shop.db") == ["there already"]
    assert await handle(inbox, "m1", "again")


async def test_a_handler_that_closes_the_connection_has_no_effect_and_the_next_one_works(
    inbox: SqliteInbox, tmp_path: Path
) -> None:
    with pytest.raises(sqlite3.ProgrammingError):
        await handle(inbox, "m1", "half", then=sqlite3.Connection.close)

    assert await handle(inbox, "m1", "whole")
    assert charges(tmp_path / "shop.db") == ["whole"]


async def test_a_commit_that_fails_has_no_effect_and_is_said(inbox: SqliteInbox, tmp_path: Path) -> None:
    faults.arm("inbox.before_commit=enospc")
    try:
        with pytest.raises(Unreachable):
            await handle(inbox, "m1", "half")
    finally:
        faults.arm("")

    assert charges(tmp_path / "shop.db") == []
    assert await handle(inbox, "m1", "whole")


async def test_old_marks_are_forgotten_a_few_at_a_time(tmp_path: Path) -> None:
    class Calendar(SystemClock):
        today = datetime(2026, 3, 1, tzinfo=UTC)

        def now(self) -> datetime:
            return self.today

    clock = Calendar()
    inbox = SqliteInbox(tmp_path / "shop.db", table="done", keep="30d", clock=clock)
    for number in range(150):
        async with inbox.once(f"{number}", "charge") as connection:
            assert connection is not None
    clock.today += timedelta(days=31)
    left = []
    for number in range(3):
        async with inbox.once(f"new {number}", "charge") as connection:
            assert connection is not None
            left.append(connection.execute("SELECT count(*) FROM done").fetchone()[0])
    await inbox.close()

    assert left == [51, 2, 3]


async def test_a_message_id_may_be_any_text(tmp_path: Path) -> None:
    inbox = SqliteInbox(tmp_path / "shop.db")
    ids = ["", "\ud800", "\udcff", "a\x00b", "a", "1", "é" * 1000]
    for _ in range(2):
        marked = []
        for message_id in ids:
            async with inbox.once(message_id, "charge") as connection:
                marked.append(connection is not None)
    await inbox.close()

    assert marked == [False] * len(ids)


async def test_each_new_connection_is_prepared_as_the_team_wants_it(tmp_path: Path) -> None:
    def prepare(connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys=ON")

    inbox = SqliteInbox(tmp_path / "shop.db", prepare=prepare)
    async with inbox.once("m1", "charge") as connection:
        assert connection is not None
        assert connection.execute("PRAGMA foreign_keys").fetchone()["foreign_keys"] == 1
    await inbox.close()


async def test_a_file_that_is_no_database_is_said_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"not a database" * 100)
    inbox = SqliteInbox(path)
    with pytest.raises(CorruptFile):
        await handle(inbox, "m1", "a")
    await inbox.close()

    assert path.read_bytes() == b"not a database" * 100


def test_a_table_name_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        SqliteInbox(tmp_path / "shop.db", table="marks; DROP TABLE charges")


DIES = """
import asyncio, sys
from redrive import faults
from redrive.inbox import SqliteInbox

async def main(path, point):
    faults.arm(point)
    async with SqliteInbox(path).once("m1", "charge") as connection:
        connection.execute("INSERT INTO charges VALUES ('order')")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("point", "runs"), [("inbox.before_commit", [True, False]), ("inbox.after_commit", [False] * 2)]
)
async def test_killed_around_the_commit_the_effect_is_there_once_in_the_end(
    point: str, runs: list[bool], inbox: SqliteInbox, tmp_path: Path
) -> None:
    path = tmp_path / "shop.db"
    with start(DIES, path, f"{point}=kill9") as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL

    assert [await handle(inbox, "m1", "order") for _ in range(2)] == runs
    assert charges(path) == ["order"]
