"""The SQLite store keeps the contract on a file and in memory, and its promises about the file itself."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from redrive import faults
from redrive.clock import Clock
from redrive.dead_letter import Recorded, Status, Transition
from redrive.errors import ConfigurationError, CorruptFile, Unreachable
from redrive.letter_query import LetterQuery
from redrive.statistics import FailureRate
from redrive.stores import DeadLetterStore, open_store
from redrive.stores.sqlite import SqliteStore
from redrive.stores.upgrade import check
from redrive.testing.letters import a_message, an_entry
from redrive.testing.store_case import ANN, letter, place
from redrive.testing.store_contract import StoreContract
from support.sealing import ENCRYPTION


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With all tables and no letter: a copy is quicker than making them anew for each of hundreds of tests."""
    path = tmp_path_factory.mktemp("empty") / "letters.db"

    async def make() -> None:
        async with opened(path) as store:
            await store.find(LetterQuery())

    asyncio.run(make())
    return path


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def location(self, tmp_path: Path, empty_file: Path) -> str:
        shutil.copy(empty_file, tmp_path / "letters.db")
        return f"sqlite:///{tmp_path}/letters.db"

    def open(self, location: str, clock: Clock) -> DeadLetterStore:
        return SqliteStore(location, clock=clock)


class TestSealedSqliteStoreInMemory(StoreContract):
    """Encryption changes nothing of what a store promises."""

    shared = False

    @pytest.fixture
    def location(self) -> str:
        return "sqlite:///:memory:"

    def open(self, location: str, clock: Clock) -> DeadLetterStore:
        return SqliteStore(location, clock=clock, encryption=ENCRYPTION)


@asynccontextmanager
async def opened(path: Path | str) -> AsyncIterator[DeadLetterStore]:
    store = open_store(f"sqlite:///{path}")
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "letters.db"


def write(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def read(file: Path) -> bytes:
    return file.read_bytes()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(file: Path) -> None:
    """Until the disk has no room for another page."""
    with file.open("wb", buffering=0) as filling, suppress(OSError):
        while True:
            filling.write(bytes(4096))


def run(script: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """A process of its own, which may die in the middle."""
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    return subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


RECORD_MANY = """
import asyncio, sys
from datetime import timedelta
from redrive.statistics import HandlerTally
from redrive.stores import open_store
from redrive.testing.letters import NOON, an_entry

async def main(path, name, first, last):
    store = open_store(f"sqlite:///{path}")
    at = NOON + timedelta(seconds=int(first))
    for start in range(int(first), int(last), 10):
        await asyncio.gather(*(store.record(an_entry(f"{number}", at=at)) for number in range(start, start + 10)))
        await store.tally([HandlerTally("charge", "orders", 10, 1)])
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_writing_at_once_lose_nothing_and_count_exactly(file: Path) -> None:
    writing = [run(RECORD_MANY, file, "a", 0, 200), run(RECORD_MANY, file, "b", 100, 300)]

    assert [ended(process) for process in writing] == [(0, "", "")] * 2

    async with opened(file) as store:
        letters = await store.find(LetterQuery(limit=500))
        assert sorted(int(each.identity) for each in letters) == list(range(300))
        assert sorted(each.deliveries for each in letters) == [1] * 200 + [2] * 100
        assert [(group.total, group.pending) for group in await store.groups()] == [(300, 300)]
        assert list((await store.statistics()).failure_rates) == [FailureRate("charge", 400, 40)]
    assert check(f"sqlite:///{file}").healthy


async def test_only_the_owner_may_read_the_file_and_what_lies_beside_it(file: Path) -> None:
    async with opened(file) as store:
        await store.record(an_entry())
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}

    assert modes == {f"letters.db{suffix}": 0o600 for suffix in ("", "-wal", "-shm")}


async def test_a_relative_path_begins_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///here.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    await store.record(an_entry())
    await store.close()

    assert (tmp_path / "here.db").exists()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/x.db", "sqlite:///x.db?mode=ro"])
def test_a_url_that_names_no_file_is_refused_with_the_right_forms(url: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        open_store(url)

    assert "sqlite:///redrive.db" in refusal.value.remedy


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to be read as one" * 20, b"\x00" * 4096]
)
async def test_a_file_that_is_no_database_is_a_corrupt_file(file: Path, content: bytes) -> None:
    write(file, content)

    async with opened(file) as store:
        for attempt in (store.record(an_entry()), store.get("12345678"), store.signing_key()):
            with pytest.raises(CorruptFile, match=r"letters\.db") as refusal:
                await attempt
            assert refusal.value.remedy

    assert read(file) == content


async def test_a_damaged_page_is_a_corrupt_file(file: Path) -> None:
    async with opened(file) as store:
        for _ in range(50):
            await store.record(an_entry())
    content = bytearray(read(file))
    content[4096:] = b"\xa5" * (len(content) - 4096)
    write(file, bytes(content))

    async with opened(file) as store:
        with pytest.raises(CorruptFile):
            await store.find(LetterQuery())
        with pytest.raises(CorruptFile):
            await store.record(an_entry())


@pytest.mark.parametrize("table", ["users", "alembic_version", "letters"])
async def test_another_applications_database_is_refused_and_left_as_it_is(file: Path, table: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE {table} (version_num TEXT)")
    content = read(file)

    async with opened(file) as store:
        for attempt in (store.record(an_entry()), store.groups()):
            with pytest.raises(Unreachable, match="another application") as refusal:
                await attempt
            assert "store.url" in refusal.value.remedy

    assert read(file) == content
    assert names_in(file.parent) == [file.name]


async def test_a_newer_schema_is_refused_and_left_as_it_is(file: Path) -> None:
    async with opened(file) as store:
        letter_id, _ = await store.record(an_entry())
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE redrive_version SET version_num = '9999'")
        connection.execute("UPDATE redrive_compatibility SET oldest = '9999'")

    async with opened(file) as store:
        with pytest.raises(Unreachable, match="newer Redrive: its schema is 9999") as refusal:
            await store.get(letter_id)
        with pytest.raises(Unreachable, match="newer"):
            await store.record(an_entry())

    assert "install" in refusal.value.remedy


async def test_a_folder_that_does_not_exist_is_unreachable_until_it_does(tmp_path: Path) -> None:
    folder = tmp_path / "later"

    async with opened(folder / "letters.db") as store:
        for attempt in (store.record(an_entry()), store.statistics()):
            with pytest.raises(Unreachable, match=r"letters\.db") as refusal:
                await attempt
            assert "folder" in refusal.value.remedy
        folder.mkdir()
        assert (await store.record(an_entry()))[1] is Recorded.NEW


async def test_a_folder_that_may_not_be_written_to_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async with opened(tmp_path / "file" / "letters.db") as store:
        with pytest.raises(Unreachable, match="Not a directory"):
            await store.record(an_entry())


@pytest.fixture
def disarmed() -> Iterator[None]:
    yield
    faults.arm("")


@pytest.mark.parametrize(
    ("action", "error"), [("raise", faults.FaultInjected), ("enospc", Unreachable), ("eio", Unreachable)]
)
@pytest.mark.usefixtures("disarmed")
async def test_what_was_not_committed_is_an_error_and_changes_nothing(
    file: Path, action: str, error: type[Exception]
) -> None:
    async with opened(file) as store:
        placed = await place(store, Status.PENDING)
        before = await letter(store, placed.id)
        faults.arm(f"store.before_commit={action}")

        attempts = (
            store.record(an_entry("new")),
            store.claim([placed.id], owner="engine", lease=1),
            store.change([placed.id], Transition.DISCARD, by=ANN),
            store.revise(placed.id, a_message(), base=0, by=ANN),
        )
        done = await asyncio.gather(*attempts, return_exceptions=True)

        faults.arm("")
        assert [type(each) for each in done] == [error] * len(attempts)
        assert await letter(store, placed.id) == before
        assert (await store.record(an_entry("new")))[1] is Recorded.NEW
    assert check(f"sqlite:///{file}").healthy


RECORD_ONE = """
import asyncio, sys
from redrive.stores import open_store
from redrive.testing.letters import a_message, an_entry

async def main(path):
    store = open_store(f"sqlite:///{path}")
    print(*await store.record(an_entry("it", message=a_message(id="it"), attempts=2)))
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("point", "recorded"), [("store.before_commit", Recorded.NEW), ("store.after_commit", Recorded.AGAIN)]
)
async def test_a_write_repeated_after_a_kill_is_there_once(file: Path, point: str, recorded: Recorded) -> None:
    assert ended(run(RECORD_ONE, file, REDRIVE_FAULTS=f"{point}=kill9"))[0] == -9

    code, out, err = ended(run(RECORD_ONE, file))

    assert (code, err) == (0, "")
    letter_id, done = out.split()
    assert done == recorded
    async with opened(file) as store:
        [listed] = await store.find(LetterQuery())
        found = await letter(store, letter_id)
        assert (listed.id, found.deliveries, len(found.failures)) == (letter_id, 1, 2)
        assert [group.total for group in await store.groups()] == [1]
    assert check(f"sqlite:///{file}").healthy


OPEN_TWICE = """
import asyncio, os, signal, subprocess, sys
from redrive.stores import open_store
from redrive.testing.letters import an_entry

async def main(path, guest):
    stores = [open_store(f"sqlite:///{path}") for _ in range(2)]
    for number in range(4):
        await stores[number % 2].record(an_entry(f"before-{number}"))
    subprocess.run([sys.executable, "-c", guest, path], check=True, stdout=subprocess.DEVNULL)
    for number in range(4):
        await stores[number % 2].record(an_entry(f"after-{number}"))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""
FIND_ALL = """
import asyncio, sys
from redrive.letter_query import LetterQuery
from redrive.stores import open_store

async def main(path):
    store = open_store(f"sqlite:///{path}")
    print(*sorted(letter.identity for letter in await store.find(LetterQuery())))
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def test_a_process_with_the_file_open_twice_loses_nothing_when_another_leaves_and_it_is_killed(file: Path) -> None:
    assert ended(run(OPEN_TWICE, file, RECORD_ONE))[0] == -9

    _, found, _ = ended(run(FIND_ALL, file))

    assert found.split() == [*(f"{when}-{n}" for when in ("after", "before") for n in range(4)), "it"]
    assert check(f"sqlite:///{file}").healthy


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes, where the machine lets us have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["/bin/mount", "-t", "tmpfs", "-o", "size=2m", "redrive-test", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no size-limited disk for this user: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["/bin/umount", str(folder)], check=True)


async def test_a_full_disk_refuses_the_letter_and_recovers(small_disk: Path) -> None:
    file, ballast = small_disk / "letters.db", small_disk / "ballast"
    async with opened(file) as store:
        first, _ = await store.record(an_entry())
        before = await letter(store, first)
        fill(ballast)
        large = an_entry("large", message=a_message(body=os.urandom(1_000_000)))

        for _ in range(3):
            with pytest.raises(Unreachable, match="full") as refusal:
                await store.record(large)
            assert "disk space" in refusal.value.remedy
        assert await letter(store, first) == before
        assert (await store.statistics()).total == 1
        ballast.unlink()

        assert (await store.record(large))[1] is Recorded.NEW
        assert (await store.statistics()).total == 2
    assert check(f"sqlite:///{file}").healthy


async def test_an_error_of_the_database_does_not_quote_the_message(file: Path) -> None:
    canary = os.urandom(8).hex()
    async with opened(file) as store:
        await store.record(an_entry())
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE UNIQUE INDEX one_letter_only ON letters (queue)")

        with pytest.raises(IntegrityError, match=r"letters\.queue") as refusal:
            await store.record(an_entry(message=a_message(id=canary, source=canary)))

    assert canary not in "".join(traceback.format_exception(refusal.value))


async def test_closing_waits_for_a_read_that_nobody_else_waits_for_any_more(file: Path) -> None:
    store = SqliteStore(f"sqlite:///{file}")
    begun, go_on = threading.Event(), threading.Event()

    def slow(_connection: Connection) -> None:
        begun.set()
        go_on.wait()

    reading = asyncio.create_task(store._read(slow))
    await asyncio.to_thread(begun.wait)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    closed = asyncio.create_task(store.close())
    for _ in range(100):
        await asyncio.sleep(0)
    done_too_early = closed.done()
    go_on.set()
    await closed

    assert not done_too_early
    assert names_in(file.parent) == [file.name]  # SQLite removes -wal and -shm with the last connection


async def test_a_read_sees_one_moment_while_others_write(file: Path) -> None:
    async with opened(file) as store:
        ids = [(await store.record(an_entry()))[0] for _ in range(20)]

        async def write() -> None:
            for each in ids:
                await store.change([each], Transition.RESOLVE, by=ANN)

        writing = asyncio.create_task(write())
        while not writing.done():
            numbers = await store.statistics()
            open_letters = numbers.by_status["PENDING"]
            assert sum(numbers.by_queue.values()) == open_letters
            assert sum(count for _, count in numbers.reasons) == open_letters
        await writing


async def test_alembic_is_imported_only_to_migrate(file: Path) -> None:
    script = RECORD_ONE + "\nprint('alembic' in sys.modules)\n"

    first, second = (ended(run(script, file))[1].split()[-1] for _ in range(2))

    assert (first, second) == ("True", "False")
