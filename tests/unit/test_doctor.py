"""The doctor's look at what is ours: store, spool and journal."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from redrive.errors import ConfigurationError, Unfinished, Unreachable
from redrive.finding import Finding, FindingLevel
from redrive.stores.upgrade import Checkup
from redrive.testing.letters import an_entry
from redrive.transports.inspection import Expected, Figures
from redrive.upkeep.doctor import examine_broker, examine_journal, examine_spool, examine_store
from redrive.upkeep.journal import Journal
from redrive.upkeep.spool import Spool

OK, WARN, PROBLEM = FindingLevel.OK, FindingLevel.WARN, FindingLevel.PROBLEM


def levels(found: list[Finding]) -> list[FindingLevel]:
    return [each.level for each in found]


def test_a_store_is_as_its_checkup_says() -> None:
    def checkup(*, damage: tuple[str, ...] = (), problems: tuple[str, ...] = ()) -> Checkup:
        return Checkup(current="0005", head="0005", damage=damage, problems=problems)

    assert levels(examine_store(checkup, place="s")) == [OK]
    found = examine_store(lambda: checkup(damage=("page 3",), problems=("2 letters",)), place="s")
    assert levels(found) == [PROBLEM, PROBLEM]
    assert [each.unreachable for each in found] == [False, False]


@pytest.mark.parametrize("error", [Unreachable, ConfigurationError])
async def test_what_cannot_be_asked_is_a_problem_and_told_apart(error: type[Exception]) -> None:
    class Silent:
        async def findings(self, expected: Expected) -> list[Finding]:
            raise error(f"no answer for {len(expected.queues)} queues")

        async def figures(self, *_: object, **__: object) -> Figures:
            raise AssertionError

        async def close(self) -> None: ...

    def check() -> Checkup:
        raise error("no answer")

    (store,) = examine_store(check, place="s")
    (broker,) = await examine_broker(Silent(), Expected(), place="amqp://***")
    for each in (store, broker):
        assert (each.level, each.unreachable) == (PROBLEM, error is Unreachable)
    assert broker.what == "amqp://***: no answer for 0 queues"


def test_a_store_that_is_too_large_to_be_looked_through_is_neither_well_nor_wrong() -> None:
    def check() -> Checkup:
        raise Unfinished("not done in 24 s")

    (found,) = examine_store(check, place="s")
    assert (found.level, found.unreachable) == (FindingLevel.UNKNOWN, False)
    assert "redrive db check" in found.remedy


class TestSpool:
    def test_a_folder_that_can_be_made_is_well_and_is_not_made(self, tmp_path: Path) -> None:
        assert levels(examine_spool(tmp_path / "a/b", max_bytes=100)) == [OK]
        assert list(tmp_path.iterdir()) == []

    def test_a_file_in_its_place_is_a_problem(self, tmp_path: Path) -> None:
        (tmp_path / "spool").touch(mode=0o755)
        assert levels(examine_spool(tmp_path / "spool", max_bytes=100)) == [PROBLEM]
        assert levels(examine_spool(tmp_path / "spool/in", max_bytes=100)) == [PROBLEM]

    async def test_letters_that_wait_are_a_warning_and_a_full_spool_a_problem(self, tmp_path: Path) -> None:
        spool = Spool(tmp_path, max_bytes=2**20)
        await spool.append(an_entry("one"))
        size = spool.pending().bytes
        await spool.close()
        assert levels(examine_spool(tmp_path, max_bytes=2**20)) == [WARN]
        assert levels(examine_spool(tmp_path, max_bytes=size)) == [PROBLEM, WARN]

    def test_damaged_letters_are_a_problem(self, tmp_path: Path) -> None:
        (tmp_path / "spool-1.seg.corrupt").write_bytes(b"x")
        assert levels(examine_spool(tmp_path, max_bytes=2**20)) == [PROBLEM]


class TestJournal:
    async def test_one_in_use_is_well(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path / "journal.db")
        await journal.begin("it")
        assert levels(examine_journal(tmp_path / "journal.db")) == [OK]
        await journal.close()
        assert levels(examine_journal(tmp_path / "journal.db")) == [OK]
        assert [each.name for each in tmp_path.iterdir()] == ["journal.db"]  # looking leaves nothing beside it

    def test_one_that_is_not_there_is_well_and_is_not_made(self, tmp_path: Path) -> None:
        assert levels(examine_journal(tmp_path / "a #1?/journal.db")) == [OK]
        assert list(tmp_path.iterdir()) == []

    def test_a_damaged_one_is_a_warning(self, tmp_path: Path) -> None:
        path = tmp_path / "journal #1?.db"
        path.write_bytes(b"no database" * 1000)
        assert levels(examine_journal(path)) == [WARN]
        path.unlink()
        sqlite3.connect(path).close()
        assert levels(examine_journal(path)) == [OK]

    def test_one_that_was_moved_aside_is_a_warning(self, tmp_path: Path) -> None:
        for suffix in ("", "-wal", "-shm"):
            (tmp_path / f"journal.db.corrupt-20260101T000000Z{suffix}").touch()
        assert levels(examine_journal(tmp_path / "journal.db")) == [WARN]

    def test_a_file_in_the_place_of_its_folder_is_a_problem(self, tmp_path: Path) -> None:
        (tmp_path / "x").touch()
        assert levels(examine_journal(tmp_path / "x/journal.db")) == [PROBLEM]
