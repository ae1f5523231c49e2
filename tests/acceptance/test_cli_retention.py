"""`redrive retention run`: S1's ninety days, with the archive before the purge (SD4). On both stores."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import stat
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from sqlalchemy import event

from redrive.dead_letter import Actor, DeadLetter, Status, Transition
from redrive.keeping import Limit, Limits
from redrive.letter_query import LetterQuery
from redrive.stores import sql_retention
from redrive.stores.sqlite import SqliteStore
from redrive.upkeep.archive import Archive
from redrive.upkeep.archive_file import read_archive
from redrive.uptime import NotedClock, uptime
from support.dead_letters import dead
from support.desk import Desk
from support.server_desk import ServerDesk, settled
from support.terminal import on_terminal

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from redrive.dead_letter import Version
    from redrive.stores import DeadLetterStore, Store
    from redrive.transports import Transport


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    if request.param == "sqlite":
        return Desk(tmp_path)
    return ServerDesk(tmp_path, request.getfixturevalue("postgres_store_url"))


@pytest.fixture
def in_use(desk: Desk) -> Desk:
    """A store where something has just failed."""
    desk.record(dead())
    return desk


def remaining(desk: Desk) -> dict[str, str]:
    async def work(store: DeadLetterStore, _transport: Transport) -> dict[str, str]:
        return {letter.id: str(letter.status) for letter in await store.find(LetterQuery(limit=500))}

    found: dict[str, str] = desk.do(work)
    return found


def archived(desk: Desk, folder: str = ".redrive/archive") -> list[DeadLetter]:
    return [letter for path in Archive(desk.folder / folder).files() for letter in read_archive(path)]


def test_old_settled_letters_go_into_the_archive_and_everything_else_stays(in_use: Desk) -> None:
    old = [*settled(in_use, 3), *settled(in_use, 2, Status.DISCARDED)]
    young = [*settled(in_use, 1, days=89), *settled(in_use, 1, Status.DISCARDED, days=1)]
    open_ones = [settled(in_use, 1, each)[0] for each in (Status.PENDING, Status.QUARANTINED, Status.REDRIVING)]
    whole = {each: in_use.letter(each) for each in old}

    ended = in_use.redrive("retention", "run", "--yes")

    assert (ended.code, ended.out, ended.err) == (0, "Purged 5 letters, archived in 1 file.\n", "")
    assert {letter.id: letter for letter in archived(in_use)} == whole
    assert remaining(in_use).keys() >= {*young, *open_ones}
    assert not remaining(in_use).keys() & set(old)
    assert len(remaining(in_use)) == 6


def test_the_line_of_the_purge_names_the_archive(in_use: Desk) -> None:
    [letter_id] = settled(in_use, 1)
    in_use.redrive("retention", "run", "--yes")
    [file] = Archive(in_use.folder / ".redrive/archive").files()

    in_use.redrive("import", str(file), "--yes")

    lines = in_use.letter(letter_id).history
    assert [line.what for line in lines] == ["recorded", "resolved", "purged", "imported"]
    assert lines[2].reason == f"older than 90d, archived in {file.name}"
    assert lines[2].by == lines[3].by != "ann"


def test_an_archive_is_for_its_owner_alone(in_use: Desk) -> None:
    settled(in_use, 1)
    in_use.redrive("retention", "run", "--yes")
    [file] = Archive(in_use.folder / ".redrive/archive").files()

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_batches_make_files_of_their_own_and_a_rate_only_slows_down(in_use: Desk) -> None:
    ids = settled(in_use, 7)
    configure(in_use, "batch = 3")

    ended = in_use.redrive("retention", "run", "--yes", "--rate", "1000")

    assert ended.out == "Purged 7 letters, archived in 3 files.\n"
    assert sorted(letter.id for letter in archived(in_use)) == sorted(ids)


def configure(desk: Desk, *lines: str) -> None:
    file = desk.folder / "redrive.toml"
    before = file.read_text() if file.exists() else ""
    file.write_text("\n".join([before, "[retention]", *lines, ""]))


def test_keep_comes_from_the_settings_or_the_command(in_use: Desk) -> None:
    settled(in_use, 1, days=10)
    configure(in_use, 'keep = "20d"')

    assert in_use.redrive("retention", "run", "--yes").err.startswith("Nothing to do")
    assert in_use.redrive("retention", "run", "--yes", "--keep", "9d").out.startswith("Purged 1 letter,")
    assert in_use.redrive("retention", "run", "--yes", "--keep", "long").code == 2


def test_no_more_than_the_limit_are_taken(in_use: Desk) -> None:
    ids = settled(in_use, 5)

    assert in_use.redrive("retention", "run", "--yes", "--limit", "2").out.startswith("Purged 2 letters")
    assert len(set(ids) & remaining(in_use).keys()) == 3
    assert in_use.redrive("retention", "run", "--yes").out.startswith("Purged 3 letters")


def test_a_dry_run_says_what_it_would_do_and_does_nothing(in_use: Desk) -> None:
    settled(in_use, 5)

    ended = in_use.redrive("retention", "run", "--dry-run", "--limit", "4")

    expected = (
        "Would archive 4 letters older than 90d into .redrive/archive and purge them. Nothing was changed.\n"
    )
    assert (ended.code, ended.err) == (0, expected)
    assert len(remaining(in_use)) == 6
    assert not (in_use.folder / ".redrive" / "archive").exists()


def test_a_dry_run_counts_by_queue_and_status(in_use: Desk) -> None:
    settled(in_use, 3)
    settled(in_use, 2, Status.DISCARDED)
    settled(in_use, 1, queue="payments")
    settled(in_use, 4, days=1)

    shown = in_use.redrive("retention", "run", "--dry-run")
    told = json.loads(in_use.redrive("retention", "run", "--dry-run", "--output", "json").out)

    assert [line.split()[:4] for line in shown.out.splitlines()] == [
        ["QUEUE", "STATUS", "KEPT", "LETTERS"],
        ["orders", "DISCARDED", "90d", "2"],
        ["orders", "RESOLVED", "90d", "3"],
        ["payments", "RESOLVED", "90d", "1"],
    ]
    assert [(row["queue"], row["status"], row["letters"], row["keep_seconds"]) for row in told] == [
        ("orders", "DISCARDED", 2, 90 * 86400),
        ("orders", "RESOLVED", 3, 90 * 86400),
        ("payments", "RESOLVED", 1, 90 * 86400),
    ]
    two, three, _ = (row["bytes"] for row in told)
    assert (two > 100, 3 * two) == (True, 2 * three)  # all of one queue have the same length


def test_a_dry_run_of_nothing_is_empty_json_for_a_script(in_use: Desk) -> None:
    ended = in_use.redrive("retention", "run", "--dry-run", "--output", "json")

    assert (ended.code, json.loads(ended.out)) == (0, [])


def test_each_letter_is_kept_as_its_queue_and_status_say(in_use: Desk) -> None:
    """The queue's own word first, for its DISCARDED letters or for all of them, then the general one."""
    configure(
        in_use,
        'keep = "90d"',
        'keep_discarded = "30d"',
        *("[queues.payments.retention]", 'keep = "36500d"', "[queues.mail.retention]", 'keep_discarded = "1d"'),
    )
    resolved, discarded = Status.RESOLVED, Status.DISCARDED
    goes = [
        *settled(in_use, 1, resolved, days=91),
        *settled(in_use, 1, discarded, days=31),
        *settled(in_use, 1, resolved, days=91, queue="mail"),
        *settled(in_use, 1, discarded, days=2, queue="mail"),
    ]
    stays = [
        *settled(in_use, 1, resolved, days=89),
        *settled(in_use, 1, discarded, days=29),
        *settled(in_use, 1, resolved, days=4000, queue="payments"),
        *settled(in_use, 1, discarded, days=4000, queue="payments"),
        *settled(in_use, 1, resolved, days=89, queue="mail"),
        *settled(in_use, 1, Status.PENDING, days=4000, queue="mail"),
    ]

    ended = in_use.redrive("retention", "run", "--yes")

    assert (ended.code, ended.out) == (0, "Purged 4 letters, archived in 1 file.\n")
    assert sorted(letter.id for letter in archived(in_use)) == sorted(goes)
    assert remaining(in_use).keys() >= set(stays)
    in_use.redrive("import", ".redrive/archive", "--yes")
    reasons = [in_use.letter(each).history[-2].reason.partition(",")[0] for each in goes]
    assert reasons == ["older than 90d", "older than 30d", "older than 90d", "older than 1d"]


def test_what_was_archived_and_not_purged_goes_by_the_rules_of_its_own_queue(in_use: Desk) -> None:
    first, second = settled(in_use, 1)[0], settled(in_use, 1, queue="payments")[0]
    in_use.process("retention", "run", "--yes", faults="retention.before_purge=kill9")
    configure(in_use, *("[queues.payments.retention]", 'keep = "200d"'))

    assert in_use.redrive("retention", "run", "--yes").out == "Purged 1 letter.\n"

    assert first not in remaining(in_use)
    assert second in remaining(in_use)


def test_nothing_old_is_nothing_to_do(in_use: Desk) -> None:
    settled(in_use, 1, days=10)

    ended = in_use.redrive("retention", "run", "--yes")

    expected = "Nothing to do: no RESOLVED or DISCARDED letter is older than 90d.\n"
    assert (ended.code, ended.out, ended.err) == (0, "", expected)


def test_without_yes_nobody_is_asked_and_nothing_happens(in_use: Desk) -> None:
    settled(in_use, 2)

    ended = in_use.redrive("retention", "run")

    assert (ended.code, "--yes" in ended.err) == (5, True)
    assert len(remaining(in_use)) == 3


def test_on_a_terminal_a_person_is_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.record(dead())
    settled(desk, 2)

    seen = on_terminal(desk.folder, "retention", "run", typed="y\n")

    assert seen.code == 0
    assert "Archive 2 letters older than 90d" in seen.text
    assert "Purged 2 letters, archived in 1 file." in seen.text


def test_purging_without_an_archive_has_to_be_said(in_use: Desk) -> None:
    settled(in_use, 2)
    configure(in_use, 'archive = "none"')

    refused = in_use.redrive("retention", "run")
    ended = in_use.redrive("retention", "run", "--yes")

    assert "for ever, without an archive" in refused.err
    assert ended.out == "Purged 2 letters.\n"
    assert not (in_use.folder / ".redrive" / "archive").exists()


def test_a_letter_that_changed_after_it_was_archived_stays(in_use: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = settled(in_use, 2)
    real = type(in_use.store()).purge

    async def meanwhile(self: Any, which: Any, **more: Any) -> Any:
        await self.change([first], Transition.RESTORE, by=more["by"])
        await self.change([first], Transition.RESOLVE, by=more["by"])
        return await real(self, which, **more)

    monkeypatch.setattr(type(in_use.store()), "purge", meanwhile)
    ended = in_use.redrive("retention", "run", "--yes")

    assert (ended.code, ended.out) == (0, "Purged 1 letter, archived in 1 file.\n")
    assert "1 letter stayed" in ended.err
    assert remaining(in_use)[first] == "RESOLVED"
    assert second not in remaining(in_use)


def test_a_letter_that_changed_before_it_was_archived_stays(in_use: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = settled(in_use, 2)
    real = type(in_use.store()).ended

    async def meanwhile(self: Any, *arguments: Any, **more: Any) -> Any:
        found = await real(self, *arguments, **more)
        if found:
            await self.change([first], Transition.RESTORE, by=Actor("ann", "wait"))
            await self.change([first], Transition.RESOLVE, by=Actor("ann", "now"))
        return found

    monkeypatch.setattr(type(in_use.store()), "ended", meanwhile)
    ended = in_use.redrive("retention", "run", "--yes")

    assert (ended.code, ended.out) == (0, "Purged 1 letter, archived in 1 file.\n")
    assert remaining(in_use)[first] == "RESOLVED"
    assert second not in remaining(in_use)


def test_what_is_not_in_the_archive_as_it_is_in_the_store_is_archived_again(in_use: Desk) -> None:
    [letter_id] = settled(in_use, 1)
    in_use.redrive("retention", "run", "--yes")
    in_use.redrive("import", ".redrive/archive", "--yes")  # now its history is longer

    ended = in_use.redrive("retention", "run", "--yes")

    assert ended.out == "Purged 1 letter, archived in 1 file.\n"
    newest, older = archived(in_use)
    assert (newest.id, older.id) == (letter_id, letter_id)
    assert [line.what for line in newest.history[len(older.history) :]] == ["purged", "imported"]


def test_what_an_earlier_run_archived_and_did_not_purge_is_not_archived_twice(in_use: Desk) -> None:
    ids = settled(in_use, 4)
    configure(in_use, "batch = 4")
    assert in_use.process("retention", "run", "--yes", faults="retention.before_purge=kill9").returncode == -9
    assert len(remaining(in_use)) == 5

    ended = in_use.redrive("retention", "run", "--yes")

    assert (ended.code, ended.out) == (0, "Purged 4 letters.\n")
    assert sorted(letter.id for letter in archived(in_use)) == sorted(ids)
    assert len(remaining(in_use)) == 1


def test_what_an_earlier_run_archived_stays_if_the_limit_is_longer_now(in_use: Desk) -> None:
    settled(in_use, 2)
    in_use.process("retention", "run", "--yes", faults="retention.before_purge=kill9")

    assert in_use.redrive("retention", "run", "--yes", "--keep", "200d").err.startswith("Nothing to do")
    assert len(remaining(in_use)) == 3


# When things break


def test_a_folder_that_cannot_be_written_purges_nothing(in_use: Desk) -> None:
    settled(in_use, 2)
    (in_use.folder / "taken").write_text("a file")
    configure(in_use, 'archive = "taken/archive"')

    ended = in_use.redrive("retention", "run", "--yes")

    assert (ended.code, ended.out) == (6, "")
    assert "taken/archive" in ended.err
    assert "nothing of it was purged" in ended.err
    assert len(remaining(in_use)) == 3


def test_a_disk_that_is_full_purges_nothing_and_the_next_run_goes_on(
    in_use: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = settled(in_use, 2)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        ended = in_use.redrive("retention", "run", "--yes")
    assert (ended.code, ended.out) == (6, "")
    assert "No space left on device" in ended.err
    assert len(remaining(in_use)) == 3
    assert Archive(in_use.folder / ".redrive/archive").files() == []

    assert in_use.redrive("retention", "run", "--yes").out == "Purged 2 letters, archived in 1 file.\n"
    assert sorted(letter.id for letter in archived(in_use)) == sorted(ids)


def full(_descriptor: int) -> None:
    raise OSError(28, os.strerror(28))


def test_an_archive_that_reads_back_damaged_purges_nothing(in_use: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    settled(in_use, 2)
    real = Path.rename

    def damaging(path: Path, target: Path) -> Path:
        renamed = real(path, target)
        if target.name.endswith(".gz"):
            raw = bytearray(target.read_bytes())
            raw[len(raw) // 2] ^= 0xFF
            target.write_bytes(bytes(raw))
        return renamed

    monkeypatch.setattr(Path, "rename", damaging)
    ended = in_use.redrive("retention", "run", "--yes")

    assert (ended.code, ended.out) == (6, "")
    assert "damaged" in ended.err
    assert len(remaining(in_use)) == 3
    assert len(list((in_use.folder / ".redrive/archive").glob("*.damaged"))) == 1


def test_a_newest_archive_that_is_damaged_stops_everything_and_is_named(in_use: Desk) -> None:
    settled(in_use, 1)
    in_use.redrive("retention", "run", "--yes")
    [file] = Archive(in_use.folder / ".redrive/archive").files()
    file.write_bytes(file.read_bytes()[:-20])
    settled(in_use, 1)

    ended = in_use.redrive("retention", "run", "--yes")

    assert (ended.code, file.name in ended.err, "move the file away" in ended.err) == (6, True, True)
    assert len(remaining(in_use)) == 2


def test_an_archive_whose_copy_cannot_be_kept_purges_nothing_until_it_can(in_use: Desk) -> None:
    """F30: the archive's target is down."""
    ids = settled(in_use, 2)
    copies = in_use.folder / "copies"
    configure(in_use, f'copy_to = "file://{copies}"')

    ended = in_use.redrive("retention", "run", "--yes")
    assert (ended.code, str(copies) in ended.err, "mount it" in ended.err) == (6, True, True)
    assert len(remaining(in_use)) == 3

    copies.mkdir()
    ended = in_use.redrive("retention", "run", "--yes")
    assert (ended.code, ended.out) == (0, "Purged 2 letters.\n")  # of the archive that was written before
    assert sorted(letter.id for letter in archived(in_use, "copies")) == sorted(ids)


@pytest.mark.parametrize("point", ["retention.after_archive", "retention.after_verify", "retention.before_purge"])
def test_killed_where_copies_are_kept_nothing_is_purged_that_has_none(in_use: Desk, point: str) -> None:
    ids = set(settled(in_use, 5))
    (in_use.folder / "copies").mkdir()
    configure(in_use, f'copy_to = "file://{in_use.folder}/copies"', "batch = 2")

    for _ in range(2):
        ended = in_use.process("retention", "run", "--yes", faults=f"{point}=kill9")
        assert ended.returncode == -9, ended.stderr
        gone = ids - remaining(in_use).keys()
        assert gone <= {letter.id for letter in archived(in_use, "copies")}
    assert in_use.redrive("retention", "run", "--yes").code == 0

    assert not ids & remaining(in_use).keys()
    assert {letter.id for letter in archived(in_use, "copies")} == ids


def test_two_at_once_are_one_too_many(in_use: Desk) -> None:
    settled(in_use, 1)
    with Archive(in_use.folder / ".redrive/archive").alone():
        ended = in_use.redrive("retention", "run", "--yes")

    assert (ended.code, "another process" in ended.err) == (5, True)
    assert len(remaining(in_use)) == 2


def test_f21_a_clock_that_jumped_purges_nothing_until_a_person_calls_it_right(in_use: Desk) -> None:
    settled(in_use, 1)
    then = NotedClock(datetime(2020, 1, 1, tzinfo=UTC), uptime())
    in_use.do(lambda store, _transport: cast("Store", store).note_clock(then))

    for _ in range(2):
        refused = in_use.redrive("retention", "run", "--yes")
        assert (refused.code, "the clock jumped" in refused.err) == (5, True)
        assert "`redrive retention run --clock-is-right`" in refused.err
    assert len(remaining(in_use)) == 2

    assert in_use.redrive("retention", "run", "--yes", "--clock-is-right").code == 0
    assert len(remaining(in_use)) == 1
    assert in_use.redrive("retention", "run", "--yes").code == 0


def test_numbers_are_right_after_it(in_use: Desk) -> None:
    settled(in_use, 3)
    in_use.redrive("retention", "run", "--yes")

    assert in_use.redrive("db", "check").code == 0
    statistics = json.loads(in_use.redrive("stats", "--output", "json").out)
    assert statistics["messages_by_status"]["RESOLVED"] == 0
    assert statistics["total_dead_letter_messages"] == 1


def test_the_choice_of_letters_is_served_by_an_index(tmp_path: Path) -> None:
    """Ten million letters are no reason to read ten million rows."""
    desk = Desk(tmp_path)
    settled(desk, 2)
    plans: list[str] = []

    async def look() -> None:
        store = desk.store()
        assert isinstance(store, SqliteStore)
        now = datetime.now(UTC)
        [seen] = await store.ended(Limits.alike(now), limit=1)
        differing = Limits(Limit(now, now - timedelta(days=1)), {"orders": Limit(now - timedelta(days=9), now)})
        for limits in (Limits.alike(now), differing):
            for after in (None, seen.version):
                plans.extend(await store._read(partial(plan_of, limits=limits, after=after)))
        await store.close()

    asyncio.run(look())

    expected = [
        "SEARCH letters USING INDEX ix_letters_settled (changed_at<?)",
        "SEARCH letters USING INDEX ix_letters_settled (changed_at>? AND changed_at<?)",
    ]
    assert [each for each in plans if "letters" in each] == expected * 2


def plan_of(connection: Connection, limits: Limits, after: Version | None) -> list[str]:
    """How SQLite goes about what is asked of it."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        asked.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    sql_retention.ended(connection, limits, after, 5)
    event.remove(connection, "before_cursor_execute", note)
    [(statement, parameters)] = asked
    return [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]


def test_an_archive_can_be_read_without_us(in_use: Desk) -> None:
    [letter_id] = settled(in_use, 1)
    in_use.redrive("retention", "run", "--yes")
    [file] = Archive(in_use.folder / ".redrive/archive").files()

    with gzip.open(file) as stream:
        lines = [json.loads(line) for line in stream]

    assert lines[1]["letter"]["id"] == letter_id
    assert json.loads(lines[1]["letter"]["message"]["body"])["data"] == {"order_id": 1}


def test_an_archive_that_is_gone_is_missed_until_somebody_says_that_it_was_on_purpose(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    settled(desk, 1)
    desk.redrive("retention", "run", "--yes")
    [path] = Archive(tmp_path / ".redrive/archive").files()
    assert desk.redrive("retention", "verify").out == f"ok: .redrive/archive/{path.name}: 1 letter\n"
    path.unlink()

    missed = desk.redrive("retention", "verify")
    assert (missed.code, f"the archive {path.name} with 1 letter is missing" in missed.err) == (6, True)
    assert desk.redrive("retention", "forget", "letters-of-nobody", "--yes").code == 3
    assert desk.redrive("retention", "forget", path.name, "--yes").code == 0
    assert desk.redrive("retention", "verify").code == 0
