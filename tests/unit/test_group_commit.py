import asyncio
import os
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from redrive import faults
from redrive.errors import CorruptFile, Unreachable
from redrive.faults import FaultInjected
from redrive.group_commit import GroupCommit, connect_sqlite, explain_sqlite, make_private

NumberFile = GroupCommit[sqlite3.Connection]


class Statements:
    """The BEGINs, COMMITs and ROLLBACKs a file has seen."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.refuse = ""

    def control(self, connection: sqlite3.Connection, statement: str) -> None:
        self.seen.append(statement)
        if statement == self.refuse:
            raise sqlite3.OperationalError("database or disk is full")
        connection.execute(statement)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "numbers.db")


@pytest.fixture
def statements() -> Statements:
    return Statements()


@pytest.fixture
async def file(path: str, statements: Statements) -> AsyncIterator[NumberFile]:
    group = open_file(path, statements)
    await group.run(create)
    statements.seen.clear()
    yield group
    await group.close()


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.arm("")


def open_file(path: str, statements: Statements) -> NumberFile:
    return GroupCommit(
        "broker",
        partial(connect_sqlite, path),
        control=statements.control,
        disconnect=sqlite3.Connection.close,
        explain=lambda error: explain_sqlite(error, path),
    )


def create(table: sqlite3.Connection) -> None:
    table.execute("CREATE TABLE IF NOT EXISTS numbers (number INTEGER UNIQUE)")


def insert(table: sqlite3.Connection, number: int) -> int:
    table.execute("INSERT INTO numbers VALUES (?)", (number,))
    return number


def insert_all(table: sqlite3.Connection, numbers: list[int]) -> list[str]:
    table.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in numbers])
    return [f"{number} of {len(numbers)}" for number in numbers]


def stored(path: str) -> list[int]:
    connection = sqlite3.connect(path)
    try:
        return [number for (number,) in connection.execute("SELECT number FROM numbers ORDER BY rowid")]
    finally:
        connection.close()


class Held:
    """Keeps the writing thread busy, so that what is handed in meanwhile becomes one group."""

    def __init__(self, file: NumberFile) -> None:
        self._file = file
        self._begun = threading.Event()
        self._go = threading.Event()

    async def __aenter__(self) -> None:
        self._waiting = self._file.look(self._hold)
        await asyncio.to_thread(self._begun.wait)

    async def __aexit__(self, *_: object) -> None:
        self._go.set()
        await self._waiting

    def _hold(self, _: sqlite3.Connection) -> None:
        self._begun.set()
        self._go.wait()


async def test_a_caller_is_answered_after_commit(file: NumberFile, path: str) -> None:
    assert await file.run(lambda table: insert(table, 7)) == 7
    assert stored(path) == [7]


async def test_callers_that_wait_together_share_one_commit(
    file: NumberFile, path: str, statements: Statements
) -> None:
    async with Held(file):
        waiting = [file.run(partial(insert, number=number)) for number in range(20)]
    assert await asyncio.gather(*waiting) == list(range(20))
    assert stored(path) == list(range(20))
    assert statements.seen == ["BEGIN IMMEDIATE", "COMMIT"]


async def test_items_of_one_batch_are_given_together_in_their_order_and_answered_each(
    file: NumberFile, path: str
) -> None:
    async with Held(file):
        waiting = [file.run_batched(insert_all, number) for number in (3, 1, 2)]
        alone = file.run(lambda table: insert(table, 9))
    assert await asyncio.gather(*waiting) == ["3 of 3", "1 of 3", "2 of 3"]
    assert await alone == 9
    assert stored(path) == [3, 1, 2, 9]


async def test_one_callers_error_is_not_anothers(file: NumberFile, path: str) -> None:
    async with Held(file):
        first = file.run(lambda table: insert(table, 1))
        broken = file.run(lambda table: insert(table, 1))
        batched = [file.run_batched(insert_all, number) for number in (2, 1, 3)]
    outcomes = await asyncio.gather(first, broken, *batched, return_exceptions=True)
    # Batches of a group run before its units, so number 1 is taken when the units come.
    wrong = [isinstance(outcome, sqlite3.IntegrityError) for outcome in outcomes]
    assert wrong.count(True) == 2
    assert outcomes[2] == "2 of 1"
    assert outcomes[4] == "3 of 1"
    assert sorted(stored(path)) == [1, 2, 3]


async def test_a_file_that_cannot_begin_tells_everybody_once(file: NumberFile, statements: Statements) -> None:
    statements.refuse = "BEGIN IMMEDIATE"
    async with Held(file):
        waiting = [file.run(partial(insert, number=number)) for number in range(5)]
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, Unreachable)
        assert "disk space" in outcome.remedy
    assert statements.seen == ["BEGIN IMMEDIATE"]


async def test_a_commit_that_fails_leaves_nothing_behind_and_the_next_one_works(
    file: NumberFile, path: str, statements: Statements
) -> None:
    statements.refuse = "COMMIT"
    with pytest.raises(Unreachable):
        await file.run(lambda table: insert(table, 1))
    statements.refuse = ""
    await file.run(lambda table: insert(table, 2))
    assert stored(path) == [2]


async def test_a_fault_before_commit_rolls_back(file: NumberFile, path: str) -> None:
    faults.arm("broker.before_commit=raise")
    with pytest.raises(FaultInjected):
        await file.run(lambda table: insert(table, 1))
    assert stored(path) == []


async def test_a_full_disk_before_commit_is_unreachable_with_its_remedy(file: NumberFile, path: str) -> None:
    faults.arm("broker.before_commit=enospc")
    with pytest.raises(Unreachable) as caught:
        await file.run(lambda table: insert(table, 1))
    assert "disk space" in caught.value.remedy
    assert stored(path) == []


async def test_a_fault_after_commit_does_not_run_the_units_again(file: NumberFile, path: str) -> None:
    faults.arm("broker.after_commit=raise")
    async with Held(file):
        waiting = [file.run(partial(insert, number=number)) for number in range(3)]
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [FaultInjected] * 3
    assert stored(path) == [0, 1, 2]


async def test_a_look_begins_no_transaction_and_sees_what_was_committed_with_it(
    file: NumberFile, statements: Statements
) -> None:
    async with Held(file):
        looked = file.look(lambda table: table.execute("SELECT count(*) FROM numbers").fetchone()[0])
        written = file.run(lambda table: insert(table, 1))
    assert await looked == 1
    await written
    assert await file.look(lambda table: table.in_transaction) is False
    assert statements.seen == ["BEGIN IMMEDIATE", "COMMIT"]


async def test_a_look_that_fails_is_explained(file: NumberFile) -> None:
    with pytest.raises(Unreachable, match="no such table"):
        await file.look(lambda table: table.execute("SELECT * FROM letters"))


async def test_work_handed_in_is_done_although_its_caller_was_cancelled(file: NumberFile, path: str) -> None:
    async def caller() -> None:
        await file.run(lambda table: insert(table, 1))

    async with Held(file):
        task = asyncio.create_task(caller())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await file.run(lambda table: insert(table, 2))
    assert stored(path) == [1, 2]


async def test_closing_waits_for_what_was_handed_in_and_may_be_repeated(file: NumberFile, path: str) -> None:
    waiting = [file.run(partial(insert, number=number)) for number in range(10)]
    await file.close()
    await file.close()
    assert stored(path) == list(range(10))
    assert await asyncio.gather(*waiting) == list(range(10))
    with pytest.raises(Unreachable, match="closed"):
        file.run(lambda table: insert(table, 11))


async def test_more_work_than_one_group_holds_is_all_done(file: NumberFile, path: str) -> None:
    async with Held(file):
        waiting = [file.run_batched(insert_all, number) for number in range(2000)]
    await asyncio.gather(*waiting)
    assert stored(path) == list(range(2000))


async def test_a_file_that_cannot_be_opened_is_tried_again_by_the_next_caller(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    file = open_file(str(folder / "numbers.db"), Statements())
    with pytest.raises(Unreachable) as caught:
        await file.run(lambda table: insert(table, 1))
    assert "folder exists" in caught.value.remedy
    folder.mkdir()
    await file.run(create)
    await file.close()


async def test_a_file_that_is_no_database_is_said_to_be_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "numbers.db"
    path.write_bytes(b"this is a letter to the reader" * 100)
    file = open_file(str(path), Statements())
    with pytest.raises(CorruptFile, match=r"numbers\.db"):
        await file.run(lambda table: insert(table, 1))
    await file.close()


def test_one_file_serves_one_event_loop_after_another(path: str) -> None:
    file = open_file(path, Statements())

    async def once(number: int) -> None:
        await file.run(create)
        await file.run(lambda table: insert(table, number))

    asyncio.run(once(1))
    asyncio.run(once(2))
    asyncio.run(file.close())
    assert stored(path) == [1, 2]


def test_a_missing_file_is_made_for_its_owner_only(path: str) -> None:
    make_private(path)

    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_a_file_that_exists_is_neither_opened_nor_changed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(path).write_bytes(b"there")
    Path(path).chmod(0o640)
    closed: list[int] = []
    monkeypatch.setattr("os.close", closed.append)

    make_private(path)

    assert closed == []
    assert (Path(path).read_bytes(), stat.S_IMODE(Path(path).stat().st_mode)) == (b"there", 0o640)


def test_nobody_goes_on_to_open_a_file_while_another_thread_still_makes_it(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, order, made = os.close, list[str](), threading.Event()

    def second() -> None:
        made.wait()
        make_private(path)
        order.append("the second goes on")

    def close_late(descriptor: int) -> None:
        made.set()
        other.join(0.05)  # time enough to overtake, for one that does not wait
        close(descriptor)
        order.append("the first has closed it")

    other = threading.Thread(target=second)
    monkeypatch.setattr("os.close", close_late)
    other.start()
    make_private(path)
    other.join()

    assert order == ["the first has closed it", "the second goes on"]
