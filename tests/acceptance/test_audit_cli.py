"""`redrive audit`: what commands did is listed, verified, exported, signed; a thief's edit is told with exit 1."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from redrive.ledger_keys import key_in
from support.dead_letters import dead
from support.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def in_use(desk: Desk) -> tuple[Desk, list[str]]:
    """Two letters were discarded and one of them was restored."""
    ids = desk.record(dead(), dead())
    assert desk.redrive("discard", *ids, "--reason", "a test", "--yes").code == 0
    assert desk.redrive("restore", ids[0], "--reason", "a mistake", "--yes").code == 0
    return desk, ids


def tampered(desk: Desk, statement: str) -> None:
    with closing(sqlite3.connect(desk.folder / "redrive.db")) as connection, connection:
        connection.execute(statement)


def listed(desk: Desk, *options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(desk.redrive("audit", "list", "-o", "json", *options).out)
    return rows


def test_what_commands_did_is_listed_newest_first(in_use: tuple[Desk, list[str]]) -> None:
    desk, ids = in_use

    restored, discarded = listed(desk)

    assert (discarded["what"], discarded["before"], discarded["after"]) == ("discarded", "PENDING", "DISCARDED")
    assert (discarded["reason"], discarded["kind"], discarded["ids"]) == ("a test", "letters", sorted(ids))
    assert (restored["what"], restored["seq"], restored["previous"]) == ("restored", 2, discarded["mac"])
    assert listed(desk, "--what", "restored") == listed(desk, "--limit", "1") == [restored]
    assert listed(desk, "--before", "2") == [discarded]
    assert listed(desk, "--since", "1h", "--who", restored["who"]) == [restored, discarded]
    assert listed(desk, "--denials") == []
    assert desk.redrive("audit", "list", "--who", "nobody").code == 3
    table = desk.redrive("audit", "list", "-n", "1")
    assert "restored" in table.out
    assert "--before 2" in table.err


def test_a_sound_ledger_is_verified_and_signed(in_use: tuple[Desk, list[str]]) -> None:
    desk, _ = in_use
    verified = desk.redrive("audit", "verify")
    assert (verified.code, verified.out) == (0, "ok: 2 rows, 0 checkpoints\n")
    assert "There is no checkpoint" in verified.err

    assert desk.redrive("audit", "checkpoint").out == "Signed row 2 in .redrive/ledger-checkpoints.jsonl.\n"

    assert desk.redrive("audit", "checkpoint").out.startswith("Nothing to sign")
    assert desk.redrive("audit", "verify", "--checkpoint").out == "ok: 3 rows, 1 checkpoint\n"
    assert desk.redrive("audit", "checkpoint", "--public-key").out.startswith("-----BEGIN PUBLIC KEY-----\n")


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE ledger SET who = 'eve' WHERE seq = 1", "edited: row 1 was edited"),
        ("DELETE FROM ledger WHERE seq = 1", "missing: row 1 is missing"),
        ("DELETE FROM ledger WHERE seq >= 2", "truncated: the rows from 2 to 2 at least are gone"),
        ("DELETE FROM ledger_head", "broken seal: what says where the ledger ends is gone"),
    ],
)
def test_what_a_thief_did_is_told(in_use: tuple[Desk, list[str]], statement: str, told: str) -> None:
    desk, _ = in_use
    desk.redrive("audit", "checkpoint")
    tampered(desk, statement)

    verified = desk.redrive("audit", "verify")

    assert verified.code == 1
    assert told in verified.err
    assert "keep a copy" in verified.err
    assert not verified.out


def test_a_ledger_that_was_built_anew_with_the_key_is_told_by_the_checkpoint(
    in_use: tuple[Desk, list[str]], tmp_path: Path
) -> None:
    desk, _ = in_use
    desk.redrive("audit", "checkpoint")
    checkpoints = (tmp_path / ".redrive" / "ledger-checkpoints.jsonl").read_bytes()
    with closing(sqlite3.connect(tmp_path / "redrive.db")) as connection, connection:
        connection.execute("DELETE FROM ledger")
        connection.execute(f"UPDATE ledger_head SET seq = 0, mac = '{'0' * 64}', key_id = '', seal = ''")  # noqa: S608  a constant
    (tmp_path / ".redrive" / "ledger-checkpoints.jsonl").unlink()
    other = desk.record(dead(), dead(), dead())
    for each in other:
        desk.redrive("discard", each, "--reason", "nothing to see", "--yes")
    assert desk.redrive("audit", "verify").code == 0
    (tmp_path / "copy.jsonl").write_bytes(checkpoints)

    verified = desk.redrive("audit", "verify", "--checkpoints", "copy.jsonl")

    assert verified.code == 1
    assert "rebuilt: row 2 is not the one that a checkpoint was made of" in verified.err


def test_rows_of_an_older_key_need_that_key(in_use: tuple[Desk, list[str]], tmp_path: Path) -> None:
    desk, ids = in_use
    key = tmp_path / ".redrive" / "ledger.key"
    key.rename(tmp_path / "old.key")
    assert desk.redrive("discard", ids[0], "--reason", "again", "--yes").code == 0

    alone = desk.redrive("audit", "verify")

    assert alone.code == 1
    assert (
        f"unknown key: row 1 and maybe more were made by the key '{key_in(tmp_path / 'old.key').id}'" in alone.err
    )
    assert desk.redrive("audit", "verify", "--key-file", "old.key").out == "ok: 4 rows, 0 checkpoints\n"


def test_rows_are_exported_in_their_order_and_from_where_one_stopped(in_use: tuple[Desk, list[str]]) -> None:
    desk, ids = in_use

    exported = desk.redrive("audit", "export")

    rows = [json.loads(line) for line in exported.out.splitlines()]
    assert [row["event"]["sequence"] for row in rows] == [1, 2]
    assert rows[0]["event"]["action"] == "letters discarded"
    assert rows[0]["redrive"]["subject"]["ids"] == sorted(ids)
    assert rows[1]["related"]["hash"] == [rows[1]["event"]["hash"], rows[0]["event"]["hash"]]
    assert desk.redrive("audit", "export", "--after", "1").out == exported.out.splitlines(keepends=True)[1]
    assert desk.redrive("audit", "export", "--after", "2").code == 3


def test_no_key_is_made_by_whoever_only_looks(desk: Desk) -> None:
    desk.record(dead())
    assert desk.redrive("list").code == 0
    assert desk.redrive("audit", "list").code == 3
    verified = desk.redrive("audit", "verify")
    assert (verified.code, verified.out) == (0, "ok: 0 rows, 0 checkpoints\n")
    assert "There is no key in .redrive/ledger.key" in verified.err
    assert not (desk.folder / ".redrive").exists()
