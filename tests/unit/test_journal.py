from __future__ import annotations

import asyncio
import sqlite3
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from redrive.clock import SystemClock
from redrive.dead_letter import MAX_DEATHS
from redrive.errors import Unreachable
from redrive.upkeep.journal import Journal
from support.spooled import start


class Calendar(SystemClock):
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.today = datetime(2026, 3, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.today


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    made = Journal(tmp_path / "journal.db")
    yield made
    await made.close()


async def test_each_beginning_counts_one_death_more(journal: Journal) -> None:
    assert [await journal.begin("poison") for _ in range(MAX_DEATHS)] == [1, 2, 3]
    assert await journal.begin("another") == 1


async def test_a_message_its_process_outlived_is_forgotten(journal: Journal) -> None:
    await journal.begin("harmless")
    await journal.begin("poison")
    await journal.clear("harmless")
    await journal.clear("never counted")

    assert await journal.begin("harmless") == 1
    assert await journal.begin("poison") == 2


DIES = """
import asyncio, os, signal, sys
from redrive.upkeep.journal import Journal

async def main():
    print(await Journal(sys.argv[1]).begin("poison"), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_beginning_that_is_taken_back_leaves_the_deaths_before_it(journal: Journal) -> None:
    await journal.begin("poison")
    await journal.begin("poison")
    await journal.take_back("poison")
    assert await journal.deaths("poison") == 1
    for _ in range(2):  # more often than there is anything to take back
        await journal.take_back("poison")
    assert await journal.begin("poison") == 1


async def test_f22_counts_survive_the_process_that_made_them(tmp_path: Path) -> None:
    path = tmp_path / "not yet there" / "journal.db"
    counted = []
    for _ in range(2):
        with start(DIES, path) as process:
            counted.append(process.communicate()[0])
    journal = Journal(path)
    last = await journal.begin("poison")
    await journal.close()

    assert counted == ["1\n", "2\n"]
    assert last == 3


async def test_processes_of_one_host_count_together(tmp_path: Path) -> None:
    first, second = Journal(tmp_path / "journal.db"), Journal(tmp_path / "journal.db")
    counts = await asyncio.gather(*(each.begin("poison") for each in (first, second) for _ in range(10)))
    await first.close()
    await second.close()

    assert sorted(counts) == list(range(1, 21))


async def test_counts_expire_after_a_week() -> None:
    clock = Calendar()
    journal = Journal(":memory:", clock=clock)
    await journal.begin("old")
    await journal.begin("recent")
    clock.today += timedelta(days=6)
    assert await journal.begin("recent") == 2
    clock.today += timedelta(days=2)

    assert await journal.begin("old") == 1
    assert await journal.begin("recent") == 3
    await journal.close()


async def test_an_identity_may_be_any_text(journal: Journal) -> None:
    for identity in ("", "\ud800", "\x00", "é" * 1000, "\udcff\ud800"):
        assert await journal.begin(identity) == 1
        assert await journal.begin(identity) == 2
        await journal.clear(identity)
        assert await journal.begin(identity) == 1


@pytest.mark.parametrize("garbage", [b"not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
async def test_a_damaged_file_is_moved_aside_and_counting_starts_anew(garbage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(garbage)
    journal = Journal(path)

    with capture_logs() as logs:
        assert await journal.begin("poison") == 1
    assert await journal.begin("poison") == 2
    await journal.close()

    (kept,) = list_of(tmp_path, "*.corrupt-*")
    assert kept.read_bytes() == garbage
    assert [line["log_level"] for line in logs] == ["warning"]
    assert str(logs[0]["kept"]) == str(kept)


async def test_several_who_meet_a_damaged_file_move_it_once_and_share_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(b"not a database" * 100)
    journals = [Journal(path) for _ in range(4)]

    counts = await asyncio.gather(*(journal.begin("poison") for journal in journals))
    for journal in journals:
        await journal.close()

    assert sorted(counts) == [1, 2, 3, 4]
    assert len(list_of(tmp_path, "*.corrupt-*")) == 1


async def test_damage_found_while_running_does_not_stop_the_count(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal, unaware = Journal(path), Journal(path)
    await unaware.begin("poison")
    for number in range(500):
        await journal.begin(f"{number}" * 20)
    spoil(path)

    counts = await asyncio.gather(*(journal.begin(f"{number}" * 20) for number in range(500)))
    assert set(counts) <= {1, 2}
    assert len(list_of(tmp_path, "*.corrupt-*Z")) == 1

    # Who still has the old file open moves on to the new one, and leaves its log alone when it closes.
    await journal.begin("goes on")
    assert await unaware.begin("goes on") == 2
    await unaware.close()
    assert await journal.begin("goes on") == 3
    await journal.close()
    assert await read(path, "goes on") == 3


async def test_closing_a_file_that_was_moved_away_leaves_the_log_of_the_new_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    unaware = Journal(path)
    await unaware.begin("poison")
    for each in list_of(tmp_path, "*"):
        each.rename(f"{each}.corrupt-somewhen")
    journal = Journal(path)
    await journal.begin("poison")

    await unaware.close()
    assert await read(path, "poison") == 1
    await journal.close()


async def test_a_file_somebody_deleted_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = Journal(path)
    await journal.begin("poison")
    for each in list_of(tmp_path, "*"):
        each.unlink()

    assert await journal.begin("poison") == 1
    await journal.close()
    assert await read(path, "poison") == 1


async def read(path: Path, identity: str) -> int:
    """What a process that starts now would find."""
    journal = Journal(path)
    count = await journal.begin(identity)
    await journal.close()
    return count - 1


def spoil(path: Path) -> None:
    """Everything into the file, then every page but the first overwritten."""
    other = sqlite3.connect(path)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.execute("DELETE FROM probable_deaths WHERE identity = x''")
    other.execute("INSERT INTO probable_deaths VALUES (x'00', 1, 9e9)")
    other.commit()
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xee" * (path.stat().st_size - 4096))


async def test_only_the_owner_may_read_the_counts_and_what_lies_beside_them(
    journal: Journal, tmp_path: Path
) -> None:
    await journal.begin("poison")

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in list_of(tmp_path, "*")}
    assert modes == {f"journal.db{suffix}": 0o600 for suffix in ("", "-wal", "-shm")}


async def test_a_file_begun_anew_is_the_owners_too(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(b"not a database" * 100)
    journal = Journal(path)
    await journal.begin("poison")
    await journal.close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_place_that_cannot_be_looked_at_any_more_is_unreachable(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    journal = Journal(folder / "journal.db")
    await journal.begin("poison")
    folder.rename(tmp_path / "elsewhere")
    folder.write_bytes(b"")

    for asked in (journal.begin("poison"), journal.deaths("poison"), journal.clear("poison")):
        with pytest.raises(Unreachable) as refused:
            await asked
        assert refused.value.remedy
    await journal.close()


async def test_a_place_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    journal = Journal(tmp_path / "file" / "journal.db")

    with pytest.raises(Unreachable) as refused:
        await journal.begin("a")
    assert refused.value.remedy
    await journal.close()


def list_of(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))
