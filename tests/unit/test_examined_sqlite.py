"""The doctor's look at SQLite files: real ones, whole, damaged, large and odd."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from redrive.errors import Unfinished
from redrive.finding import Finding, FindingLevel
from redrive.group_commit import connect_sqlite
from redrive.stores.upgrade import check, upgrade
from redrive.upkeep.examined_sqlite import examine_sqlite

ROWS = 100_000
WITHIN = 60.0


def told(found: list[Finding]) -> list[tuple[str, FindingLevel]]:
    return [(each.check, each.level) for each in found]


def fill(path: Path) -> None:
    """With so many rows that no look at them all is done in no time."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE ballast (text TEXT)")
        connection.executemany("INSERT INTO ballast VALUES (?)", ((f"row {number}",) for number in range(ROWS)))
        connection.execute("CREATE INDEX heavy ON ballast (text)")
        connection.commit()


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    path = tmp_path / "a #1?.db"
    connect_sqlite(str(path)).close()
    return path


def test_a_file_of_ours_is_well(ours: Path) -> None:
    assert told(examine_sqlite(ours, within=WITHIN)) == [("journal-mode", FindingLevel.OK)]


def test_another_journal_mode_is_a_warning_and_is_not_changed(ours: Path) -> None:
    with closing(sqlite3.connect(ours)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    assert told(examine_sqlite(ours, within=WITHIN)) == [("journal-mode", FindingLevel.WARN)]
    with closing(sqlite3.connect(ours)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_looking_leaves_nothing_beside_a_file_whether_somebody_uses_it_or_not(ours: Path) -> None:
    examine_sqlite(ours, within=WITHIN)
    assert list(ours.parent.iterdir()) == [ours]
    with closing(connect_sqlite(str(ours))) as used:
        used.execute("CREATE TABLE written (id)")
        before = {each.name: each.read_bytes() for each in ours.parent.iterdir() if not each.name.endswith("-shm")}
        assert told(examine_sqlite(ours, within=WITHIN)) == [("journal-mode", FindingLevel.OK)]
        after = {each.name: each.read_bytes() for each in ours.parent.iterdir() if not each.name.endswith("-shm")}
        assert before == after
        used.execute("INSERT INTO written VALUES (1)")  # its locks are its own still
    assert list(ours.parent.iterdir()) == [ours]


def test_who_may_not_write_leaves_nothing_behind_either_and_is_told_less(
    ours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everything
    assert told(examine_sqlite(ours, within=WITHIN)) == [("journal-mode", FindingLevel.UNKNOWN)]
    assert list(ours.parent.iterdir()) == [ours]


def test_a_file_that_is_not_there_is_told_by_others_and_not_made(tmp_path: Path) -> None:
    assert examine_sqlite(tmp_path / "none.db", within=WITHIN) == []
    assert list(tmp_path.iterdir()) == []


def test_damaged_pages_are_a_problem(ours: Path) -> None:
    fill(ours)
    with closing(sqlite3.connect(ours)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with ours.open("r+b") as file:
        file.seek(size * 20)
        file.write(b"\xff" * size * 5)
    assert ("sqlite-file", FindingLevel.PROBLEM) in told(examine_sqlite(ours, within=WITHIN))
    assert told(examine_sqlite(ours, within=WITHIN, whole=False)) == [("journal-mode", FindingLevel.OK)]


def test_what_is_no_database_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database at all" * 1000)
    assert told(examine_sqlite(tmp_path / "x.db", within=WITHIN)) == [("sqlite-file", FindingLevel.PROBLEM)]


def test_a_file_that_is_too_large_to_be_looked_through_in_time_is_unknown(ours: Path) -> None:
    fill(ours)
    assert told(examine_sqlite(ours, within=0.0))[-1] == ("sqlite-file", FindingLevel.UNKNOWN)
    assert told(examine_sqlite(ours, within=WITHIN)) == [("journal-mode", FindingLevel.OK)]


def test_a_checkup_of_a_large_store_ends_when_its_time_is_over(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    upgrade(url)
    fill(tmp_path / "store.db")
    with pytest.raises(Unfinished):
        check(url, within=0.0)
    assert check(url).healthy
