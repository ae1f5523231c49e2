"""`redrive export`: everything that matches, bodies included, one page in memory at a time."""

from __future__ import annotations

import base64
import csv
import io
import json
import stat
from typing import TYPE_CHECKING

import pytest

from support.dead_letters import an_order, dead, foreign
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_every_matching_letter_is_written_once_however_many_pages_it_takes(desk: Desk) -> None:
    ids = desk.record(*(dead() for _ in range(230)), dead(queue="mail"))

    ended = desk.redrive("export", "--queue", "orders")

    assert [json.loads(line)["id"] for line in ended.out.splitlines()] == ids[229::-1]
    assert (ended.code, ended.err) == (0, "Exported 230 letters.\n")


@pytest.mark.parametrize("body", [None, b"", b"\xff\x00", b'{"a": 1.10}', "é\u2028\x1b".encode(), b"\r\n,\"'"])
def test_a_body_can_be_read_back_byte_for_byte(desk: Desk, body: bytes | None) -> None:
    desk.record(dead(foreign(body)))

    message = json.loads(desk.redrive("export", "--unmasked", "to look").out)["message"]

    assert read_back(message["body"], message["body_encoding"]) == body


def read_back(text: str | None, encoding: str | None) -> bytes | None:
    if text is None:
        return None
    return base64.b64decode(text) if encoding == "base64" else text.encode()


@pytest.mark.parametrize("properties", [None, b"", b"\xff\x00"])
def test_properties_can_be_read_back_byte_for_byte(desk: Desk, properties: bytes | None) -> None:
    desk.record(dead(foreign(b"{}", properties=properties)))

    for how in ((), ("--whole",)):
        message = json.loads(desk.redrive("export", "--unmasked", "to look", *how).out)["message"]
        assert read_back(message["properties"], "base64") == properties


def test_csv_holds_the_same_in_one_table_without_formulas(desk: Desk) -> None:
    message = an_order(7)
    desk.record(dead(foreign(b"=cmd|' /C calc'!A0")), dead(message))

    rows = list(csv.DictReader(io.StringIO(desk.redrive("export", "--output", "csv").out)))

    assert rows[0]["message_body"].encode() == message.body
    assert rows[1]["message_body"] == "'=cmd|' /C calc'!A0"


def test_a_file_is_for_its_owner_alone_and_not_replaced_unasked(desk: Desk) -> None:
    desk.record(dead())
    file = desk.folder / "out.jsonl"

    first = desk.redrive("export", "--file", str(file))
    second = desk.redrive("export", "--file", str(file))
    third = desk.redrive("export", "--file", str(file), "--force")

    assert (first.code, second.code, third.code) == (0, 5, 0)
    assert "--force" in second.err
    assert first.out == ""
    assert len(file.read_text().splitlines()) == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.with_name("out.jsonl.part").exists()


def test_a_folder_that_is_missing_is_told(desk: Desk) -> None:
    ended = desk.redrive("export", "--file", "no/such/folder.jsonl")

    assert (ended.code, "choose another folder" in ended.err) == (2, True)


def test_an_export_that_fails_leaves_no_file_behind(desk: Desk) -> None:
    (desk.folder / "redrive.db").write_bytes(b"not a database" * 100)

    assert desk.redrive("export", "--file", "out.jsonl").code == 6

    assert not list(desk.folder.glob("out.jsonl*"))


def test_the_whole_story_can_be_had_too(desk: Desk) -> None:
    desk.record(dead(attempts=3))

    told = json.loads(desk.redrive("export", "--whole").out)

    assert len(told["failures"]) == 3
    assert told["history"]
    assert desk.redrive("export", "--whole", "--output", "csv").code == 2


def test_no_more_than_the_limit_are_written(desk: Desk) -> None:
    desk.record(*(dead() for _ in range(5)))

    assert len(desk.redrive("export", "--limit", "3").out.splitlines()) == 3


def test_nothing_that_matches_is_exit_three(desk: Desk) -> None:
    ended = desk.redrive("export", "--queue", "nosuch")

    assert (ended.code, ended.out, ended.err) == (3, "", "Exported 0 letters.\n")
