"""`redrive archive search` and `restore`: what has left the store is found, and comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from redrive.dead_letter import DeadLetter, Status
from redrive.upkeep.archive import Archive
from support.dead_letters import dead, foreign
from support.desk import Desk
from support.retained import in_store
from support.server_desk import ServerDesk, settled
from support.terminal import on_terminal


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    if request.param == "sqlite":
        return Desk(tmp_path)
    return ServerDesk(tmp_path, request.getfixturevalue("postgres_store_url"))


@pytest.fixture
def plain(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def archived(desk: Desk, *ids: str) -> dict[str, DeadLetter]:
    """The letters as they were before all that is settled went into an archive."""
    whole = {each: desk.letter(each) for each in ids}
    desk.record(dead())  # so that nobody doubts the clock
    ended = desk.redrive("retention", "run", "--yes")
    assert ended.code == 0, ended.err
    return whole


def found(desk: Desk, *arguments: str) -> list[str]:
    ended = desk.redrive("archive", "search", *arguments, "--output", "jsonl")
    return [json.loads(line)["id"] for line in ended.out.splitlines()]


# Searching


def test_letters_are_found_by_a_filter_without_the_store(plain: Desk) -> None:
    orders, mail = settled(plain, 2), settled(plain, 1, Status.DISCARDED, queue="mail")
    archived(plain)
    for file in plain.folder.glob("redrive.db*"):
        file.unlink()

    assert sorted(found(plain)) == sorted([*orders, *mail])
    assert found(plain, "queue:mail") == mail
    assert found(plain, "status:DISCARDED") == mail
    assert sorted(found(plain, "type:ValueError -queue:mail age:>50d")) == sorted(orders)
    assert found(plain, '"no such customer" queue:mail') == mail
    assert found(plain, f"id:{orders[0]}") == [orders[0]]
    assert not (plain.folder / "redrive.db").exists()


def test_data_of_the_message_is_looked_into(plain: Desk) -> None:
    [letter_id] = plain.record(dead(foreign(b'{"order":{"number":77}}')))
    plain.redrive("resolve", letter_id, "--reason", "done", "--yes")
    archive_now(plain)

    assert found(plain, "data.order.number:77") == [letter_id]
    assert found(plain, "data.order.number:78") == []


def archive_now(desk: Desk) -> None:
    ended = desk.redrive("retention", "run", "--yes", "--keep", "0s")
    assert ended.out.startswith("Purged"), ended.err


def test_a_table_names_the_file(plain: Desk) -> None:
    [letter_id] = settled(plain, 1)
    archived(plain)
    [file] = Archive(plain.folder / ".redrive/archive").files()

    ended = plain.redrive("archive", "search", "queue:orders")

    assert (ended.code, ended.err) == (0, "")
    assert letter_id[:18] in ended.out
    assert file.name in ended.out


def test_nothing_found_is_exit_3_and_a_filter_that_cannot_be_read_exit_2(plain: Desk) -> None:
    settled(plain, 1)
    archived(plain)

    assert plain.redrive("archive", "search", "queue:nothing").code == 3
    assert plain.redrive("archive", "search", "queue:").code == 2
    refused = plain.redrive("archive", "search", "owner:ann")
    assert (refused.code, "kept in the store" in refused.err) == (2, True)
    assert plain.redrive("archive", "search", "--from", "nowhere").code == 2


def test_where_there_is_no_archive_nothing_is_found(plain: Desk) -> None:
    assert plain.redrive("archive", "search").code == 3


def test_no_more_than_the_limit_are_shown_and_that_is_said(plain: Desk) -> None:
    settled(plain, 3)
    archived(plain)

    ended = plain.redrive("archive", "search", "--limit", "2", "--output", "jsonl")

    assert len(ended.out.splitlines()) == 2
    assert "--limit" in ended.err


def test_what_is_personal_is_masked(plain: Desk) -> None:
    [letter_id] = plain.record(dead(foreign(b'{"customer":{"email":"bob@example.com"}}')))
    plain.redrive("resolve", letter_id, "--reason", "done", "--yes")
    archive_now(plain)

    ended = plain.redrive("archive", "search", "--whole", "--output", "json")

    assert (ended.code, "bob@example.com" in ended.out) == (0, False)
    assert json.loads(ended.out)[0]["id"] == letter_id
    assert found(plain, "data.customer.email:bob@example.com") == [letter_id]


def test_of_a_letter_that_was_archived_twice_the_newer_one_counts(plain: Desk) -> None:
    [letter_id] = settled(plain, 1)
    archived(plain)
    plain.redrive("archive", "restore", letter_id, "--yes")
    plain.redrive("restore", letter_id, "--reason", "again", "--yes")
    plain.redrive("discard", letter_id, "--reason", "enough", "--yes")
    archive_now(plain)

    assert found(plain) == [letter_id]
    assert found(plain, "status:DISCARDED") == [letter_id]
    assert found(plain, "status:RESOLVED") == []


def test_a_damaged_archive_is_told_and_the_others_are_searched(plain: Desk) -> None:
    first = settled(plain, 1)
    archived(plain)
    [damaged] = Archive(plain.folder / ".redrive/archive").files()
    second = settled(plain, 1)
    plain.redrive("retention", "run", "--yes")
    damaged.write_bytes(damaged.read_bytes()[:100])

    ended = plain.redrive("archive", "search", "--output", "jsonl")

    assert (ended.code, damaged.name in ended.err) == (4, True)
    assert [json.loads(line)["id"] for line in ended.out.splitlines()] == second
    assert first[0] not in ended.out


def test_sealed_archives_are_searched_with_their_key_and_named_without(plain: Desk) -> None:
    assert plain.redrive("keys", "new").code == 0
    (plain.folder / "redrive.toml").write_text("[encryption]\nenabled = true\n")
    ids = settled(plain, 2)
    archived(plain)
    [file] = Archive(plain.folder / ".redrive/archive").files()
    assert file.name.endswith(".sealed")

    assert sorted(found(plain, "queue:orders")) == sorted(ids)

    (plain.folder / "redrive.toml").write_text("")
    (plain.folder / ".redrive/encryption.key").unlink()
    ended = plain.redrive("archive", "search", "queue:orders")
    assert (ended.code, file.name in ended.err) == (1, True)


def test_on_a_terminal_the_table_stands_alone_when_it_is_done(plain: Desk) -> None:
    [letter_id] = settled(plain, 1)
    archived(plain)

    seen = on_terminal(plain.folder, "archive", "search", "queue:orders")

    assert seen.code == 0
    assert seen.text.splitlines()[-1].startswith(f"{letter_id[:18]}  RESOLVED  orders ")


# Restoring


def test_a_letter_comes_back_as_it_was_with_a_line_of_history(desk: Desk) -> None:
    ids = settled(desk, 3)
    whole = archived(desk, *ids)
    [file] = Archive(desk.folder / ".redrive/archive").files()

    ended = desk.redrive("archive", "restore", ids[0], ids[1][:-1], "--yes")

    assert (ended.code, ended.out, ended.err) == (0, "Restored 2 letters; 0 were there already.\n", "")
    assert ids[2] not in in_store(desk)
    for each in ids[:2]:
        back = desk.letter(each)
        assert msgspec.structs.replace(back, history=whole[each].history) == whole[each]
        assert [line.what for line in back.history[-2:]] == ["purged", "imported"]
        assert back.history[-1].reason == f"imported from .redrive/archive/{file.name}"
    assert desk.redrive("db", "check").code == 0


def test_by_a_filter_and_a_limit(desk: Desk) -> None:
    settled(desk, 2)
    mail = settled(desk, 2, queue="mail")
    archived(desk)

    would = desk.redrive("archive", "restore", "--where", "queue:mail", "--dry-run")
    assert (would.code, would.err) == (
        0,
        "Would restore 2 letters, those that are not there yet. Nothing was changed.\n",
    )
    assert len(in_store(desk)) == 1
    assert desk.redrive("archive", "restore", "--where", "queue:mail", "--limit", "1", "--yes").code == 0
    assert len(in_store(desk).keys() & set(mail)) == 1
    ended = desk.redrive("archive", "restore", "--where", "queue:mail", "--yes")
    assert ended.out == "Restored 1 letter; 1 were there already.\n"
    assert in_store(desk).keys() >= set(mail)


def test_what_no_archive_has_is_named(desk: Desk) -> None:
    ids = settled(desk, 1)
    archived(desk)
    unknown = "018f0000-0000-7000-8000-00000000000f"

    both = desk.redrive("archive", "restore", ids[0], unknown, "--yes")
    none = desk.redrive("archive", "restore", unknown, "--yes")

    assert (both.code, unknown in both.err) == (4, True)
    assert both.out.startswith("Restored 1 letter;")
    assert (none.code, unknown in none.err) == (3, True)


def test_nobody_restores_everything_by_saying_nothing(plain: Desk) -> None:
    settled(plain, 1)
    archived(plain)

    nothing = plain.redrive("archive", "restore", "--yes")
    short = plain.redrive("archive", "restore", "018f", "--yes")
    unasked = plain.redrive("archive", "restore", "--where", "queue:orders")

    assert (nothing.code, "redrive import" in nothing.err) == (2, True)
    assert (short.code, "too short" in short.err) == (2, True)
    assert unasked.code == 5
    assert len(in_store(plain)) == 1
