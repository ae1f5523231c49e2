"""`redrive import`: archives, exports, Laravel's failed_jobs and JSON lines; good rows come in, bad ones are told.
On both stores.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.upkeep.archive import Archive
from support.dead_letters import dead, foreign
from support.desk import Desk
from support.hostile import corpus, exactly
from support.server_desk import ServerDesk, settled
from support.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.dead_letter import DeadLetter
    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport

ROW = {
    "id": 7,
    "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "connection": "redis",
    "queue": "default",
    "payload": '{"displayName": "App\\\\Jobs\\\\Charge", "attempts": 3, "data": {"command": "O:1"}}',
    "exception": "App\\Down: no answer in /srv/Bank.php:41\nStack trace:\n#0 /srv/Job.php(7): charge()\n#1 {main}",
    "failed_at": "2026-03-01 12:00:05",
}
LINE = {"queue": "orders", "data": {"n": 1}, "at": "2026-03-01T12:00:05Z", "error": {"type": "Boom", "text": "x"}}


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    if request.param == "sqlite":
        return Desk(tmp_path)
    return ServerDesk(tmp_path, request.getfixturevalue("postgres_store_url"))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Desk:
    """Another store, to take letters from."""
    (tmp_path / "elsewhere").mkdir()
    return Desk(tmp_path / "elsewhere")


def everything(desk: Desk) -> dict[str, DeadLetter]:
    async def work(store: DeadLetterStore, _transport: Transport) -> dict[str, DeadLetter]:
        found = await store.find(LetterQuery(limit=500))
        return {letter.id: letter async for letter in store.whole([each.id for each in found])}

    letters: dict[str, DeadLetter] = desk.do(work)
    return letters


def story(letter: DeadLetter) -> Any:
    """All of it but the history, with the types of everything."""
    return exactly(
        [getattr(letter, name) for name in letter.__struct_fields__ if name not in {"history", "message"}]
    )


def facts(message: Message) -> Any:
    return exactly([getattr(message, name) for name in message.__struct_fields__])


def file_of(desk: Desk, text: str | bytes, name: str = "letters.jsonl") -> str:
    (desk.folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name


# From our own store to another


def test_an_export_of_the_hostile_corpus_comes_in_byte_for_byte(desk: Desk, elsewhere: Desk) -> None:
    elsewhere.record(*(dead(each.message) for each in corpus()))
    elsewhere.redrive("export", "--unmasked", "to move them", "--whole", "--file", "all.jsonl")

    ended = desk.redrive("import", str(elsewhere.folder / "all.jsonl"), "--yes")

    before, after = everything(elsewhere), everything(desk)
    assert (ended.code, ended.out) == (0, f"Imported {len(before)} letters; 0 were there already.\n")
    assert after.keys() == before.keys()
    assert [facts(after[each].message) for each in before] == [facts(before[each].message) for each in before]
    assert [story(after[each]) for each in before] == [story(before[each]) for each in before]
    assert all(after[each].history[:-1] == before[each].history for each in before)
    assert {letter.history[-1].what for letter in after.values()} == {"imported"}


def test_an_export_that_is_not_whole_comes_in_with_its_bodies(desk: Desk, elsewhere: Desk) -> None:
    elsewhere.record(*(dead(each.message) for each in corpus()))
    out = elsewhere.redrive("export", "--unmasked", "to move them").raw

    assert desk.redrive("import", file_of(desk, out), "--yes").code == 0

    before, after = everything(elsewhere), everything(desk)
    assert {each: facts(after[each].message) for each in after} == {
        each: facts(before[each].message) for each in before
    }
    assert all(len(letter.failures) == 1 for letter in after.values())


def test_an_archive_is_an_exact_copy_of_what_was_purged(desk: Desk) -> None:
    desk.record(dead())
    ids = [*settled(desk, 3), *settled(desk, 2, Status.DISCARDED)]
    before = everything(desk)
    numbers = desk.redrive("stats", "--output", "json").out
    desk.redrive("retention", "run", "--yes")
    assert not everything(desk).keys() & set(ids)

    ended = desk.redrive("import", ".redrive/archive", "--yes")

    after = everything(desk)
    assert ended.out == "Imported 5 letters; 0 were there already.\n"
    assert {each: story(after[each]) for each in after} == {each: story(before[each]) for each in before}
    assert (
        json.loads(desk.redrive("stats", "--output", "json").out)["messages_by_status"]
        == (json.loads(numbers)["messages_by_status"])
    )
    assert desk.redrive("db", "check").code == 0


def test_importing_twice_makes_no_second_letter(desk: Desk, elsewhere: Desk) -> None:
    elsewhere.record(dead(), dead())
    export = elsewhere.redrive("export", "--unmasked", "to move them", "--whole").raw
    files = [
        file_of(desk, export, "export.jsonl"),
        file_of(desk, json.dumps([ROW, ROW | {"uuid": "other"}]), "laravel.json"),
        file_of(desk, json.dumps(LINE) + "\n" + json.dumps(LINE | {"id": "1"}), "lines.jsonl"),
    ]

    first = desk.redrive("import", *files, "--yes")
    before = everything(desk)
    second = desk.redrive("import", *files, "--yes")

    assert first.out == "Imported 6 letters; 0 were there already.\n"
    assert second.out == "Imported 0 letters; 6 were there already.\n"
    assert everything(desk) == before


def test_a_letter_that_was_archived_twice_comes_back_as_it_was_last(desk: Desk) -> None:
    desk.record(dead())
    [letter_id] = settled(desk, 1)
    desk.redrive("retention", "run", "--yes")
    desk.redrive("import", ".redrive/archive", "--yes")
    desk.redrive("restore", letter_id, "--reason", "look again", "--yes")
    desk.redrive("discard", letter_id, "--reason", "no use", "--yes")
    desk.redrive("retention", "run", "--yes", "--keep", "0s")
    files = [str(path) for path in Archive(desk.folder / ".redrive" / "archive").files()]
    assert len(files) == 2

    ended = desk.redrive("import", *reversed(files), "--yes")

    assert ended.out == "Imported 1 letter; 1 were there already.\n"
    assert desk.letter(letter_id).status is Status.DISCARDED


def test_a_damaged_archive_gives_what_is_whole_and_says_what_is_not(desk: Desk) -> None:
    desk.record(dead())
    ids = settled(desk, 3)
    desk.redrive("retention", "run", "--yes")
    [file] = Archive(desk.folder / ".redrive" / "archive").files()
    with gzip.open(file) as stream:
        lines = stream.readlines()
    lines[2] = lines[2].replace(b"orders", b"order5")
    file.write_bytes(gzip.compress(b"".join(lines[:-1])))

    ended = desk.redrive("import", str(file), "--yes")

    assert (ended.code, ended.out) == (4, "Imported 2 letters; 0 were there already, 2 could not be read.\n")
    assert f"{file}:3: the letter's digest" in ended.err
    assert f"{file}:5: the archive is not whole: it is cut off" in ended.err
    assert len(set(ids) & everything(desk).keys()) == 2


# From others


def test_failed_jobs_of_laravel_come_in_with_their_payload_untouched(desk: Desk) -> None:
    table = io.StringIO()
    writer = csv.DictWriter(table, list(ROW))
    writer.writeheader()
    writer.writerow(ROW)

    ended = desk.redrive("import", file_of(desk, table.getvalue(), "failed_jobs.csv"), "--yes")

    assert (ended.code, ended.out, ended.err) == (0, "Imported 1 letter; 0 were there already.\n", "")
    [letter] = everything(desk).values()
    assert letter.message.body == str(ROW["payload"]).encode()
    assert (letter.status, letter.queue, letter.handler, letter.type) == (
        Status.PENDING,
        "default",
        "App\\Jobs\\Charge",
        "App\\Down",
    )
    assert (letter.attempts, letter.text, letter.created_at.isoformat()) == (
        3,
        "no answer",
        "2026-03-01T12:00:05+00:00",
    )
    assert "Bank.php" in letter.failures[0].trace


def test_what_came_in_can_be_listed_grouped_and_sent_back(desk: Desk) -> None:
    rows = [ROW | {"uuid": str(number), "queue": "orders"} for number in range(3)]
    desk.redrive("import", file_of(desk, "\n".join(map(json.dumps, rows))), "--yes")

    [group] = json.loads(desk.redrive("groups", "--output", "json").out)
    ids = [json.loads(line)["id"] for line in desk.redrive("list", "--output", "jsonl").out.splitlines()]
    ended = desk.redrive("retry", *ids, "--yes")

    assert group["total"] == 3
    assert (ended.code, ended.out) == (0, "Sent 3 letters back.\n")
    assert {each.message.body for each in desk.take("orders")} == {str(ROW["payload"]).encode()}


def test_bad_rows_are_told_with_file_and_line_and_the_rest_comes_in(desk: Desk) -> None:
    lines = [json.dumps(LINE), "{broken", json.dumps({"queue": 7}), "", json.dumps(LINE | {"id": "2"}), "\x00"]

    ended = desk.redrive("import", file_of(desk, "\n".join(lines)), "--yes")

    assert (ended.code, ended.out) == (4, "Imported 2 letters; 0 were there already, 3 could not be read.\n")
    assert [line.partition(": ")[2].partition(": ")[0] for line in ended.err.splitlines()] == [
        "letters.jsonl:2",
        "letters.jsonl:3",
        "letters.jsonl:6",
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01",
        b"\xff\xfe",
        b"{",
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"queue": ' + b"9" * 10_000 + b"}",
        b'{"queue": "' + b"\\u0000" * 1000 + b'", "data": 1, "at": 0}',
        b'{"queue": "\\ud800", "data": "\\udfff", "at": 0, "id": "\\u0000"}',
        b'{"queue": "a", "data": 1, "at": 1e400}',
        b'{"queue": "a", "data": 1, "at": -99999999999999}',
        b"x,y\n1,2\n",
        b"\x1f\x8bnot gzip",
        gzip.compress(b"[{", mtime=0)[:-4],
        b'{"redrive_archive":{"version":99,"written_at":"","by":""}}\n',
        b'{"redrive_archive":7}\n',
        b'{"id":"x","status":"PENDING","group_id":"y","identity":"z","message":{},"changed_at":""}\n',
        b'{"payload": "' + b"x" * (10 * 1024 * 1024) + b'", "exception": "x", "failed_at": "x"}',
    ],
    ids=lambda content: repr(content[:20]),
)
def test_no_file_is_so_strange_that_it_gives_a_stack_trace(tmp_path: Path, content: bytes) -> None:
    desk = Desk(tmp_path)
    for option in ((), *(("--format", name) for name in ("archive", "export", "laravel", "envelope", "jsonl"))):
        ended = desk.redrive("import", file_of(desk, content), "--yes", *option)
        assert ended.code in {0, 1, 3, 4}, ended.err
        assert "unexpected" not in ended.err
        assert len(ended.err) < 20_000


def test_texts_that_databases_choke_on_come_in_or_are_told(desk: Desk) -> None:
    texts = ["\x00", "\ud800", "\u241b0000", "' OR 1=1 --", "x" * 2000, "".join(map(chr, range(300, 900)))]
    names = ("queue", "handler", "id", "source", "key", "identity")
    lines = [json.dumps(LINE | {"id": text} | {name: text}) for text in texts for name in names]
    long = [json.dumps(LINE | {name: "".join(map(chr, range(1000, 9000)))}) for name in ("queue", "handler")]

    ended = desk.redrive("import", file_of(desk, "\n".join(lines + long)), "--yes")

    assert (ended.code, ended.out.endswith(" 2 could not be read.\n")) == (4, True), ended.err
    assert ended.err.count("is longer than 2000 bytes") == 2
    assert {letter.message.id for letter in everything(desk).values()} == set(texts)


def test_a_payload_is_in_no_complaint(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    secret = json.dumps(LINE | {"data": "4111 1111 1111 1111", "at": "never"})

    ended = desk.redrive("import", file_of(desk, secret + "\n{4111 1111 1111 1111"), "--yes")

    assert ended.code == 1
    assert "4111" not in ended.err


def test_a_hundred_complaints_are_enough(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    ended = desk.redrive("import", file_of(desk, "{\n" * 500), "--yes")

    assert len(ended.err.splitlines()) == 101
    assert ended.out == "Imported 0 letters; 0 were there already, 500 could not be read.\n"


def test_standard_input_and_gzip_are_read_too(desk: Desk) -> None:
    packed = file_of(desk, gzip.compress(json.dumps(LINE).encode()), "lines.gz")

    ended = desk.redrive("import", "-", packed, "--yes", stdin=json.dumps(LINE | {"id": "1"}))

    assert ended.out == "Imported 2 letters; 0 were there already.\n"


def test_a_dry_run_reads_everything_and_changes_nothing(desk: Desk) -> None:
    name = file_of(desk, json.dumps(LINE) + "\n{\n")

    ended = desk.redrive("import", name, "--dry-run")

    assert (ended.code, ended.out.startswith("Would import 1 letter,")) == (4, True)
    assert f"{name}:2" in ended.err
    assert everything(desk) == {}


def test_no_more_than_the_limit_are_read(desk: Desk) -> None:
    name = file_of(desk, "\n".join(json.dumps(LINE | {"id": str(number)}) for number in range(5)))

    assert desk.redrive("import", name, "--yes", "--limit", "2").out.startswith("Imported 2 letters")
    assert len(everything(desk)) == 2


def test_without_yes_nobody_is_asked_and_nothing_comes_in(desk: Desk) -> None:
    ended = desk.redrive("import", file_of(desk, json.dumps(LINE)))

    assert (ended.code, "--yes" in ended.err) == (5, True)
    assert everything(desk) == {}


def test_on_a_terminal_a_person_is_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    seen = on_terminal(tmp_path, "import", file_of(desk, json.dumps(LINE)), typed="y\n")

    assert seen.code == 0
    assert "Import letters from letters.jsonl?" in seen.text
    assert "Imported 1 letter" in seen.text


def test_a_file_that_is_not_there_is_told_before_anything_is_done(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    ended = desk.redrive("import", file_of(desk, json.dumps(LINE)), "nosuch.jsonl", "--yes")

    assert (ended.code, "nosuch.jsonl" in ended.err) == (2, True)
    assert everything(desk) == {}


def test_nothing_to_read_is_exit_three(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "empty").mkdir()

    assert desk.redrive("import", file_of(desk, ""), "--yes").code == 3
    assert desk.redrive("import", "empty", "--yes").code == 3


def test_more_letters_than_fit_into_a_batch_all_come_in(desk: Desk) -> None:
    lines = (json.dumps(LINE | {"id": str(number), "data": "x" * (number % 7)}) for number in range(450))

    ended = desk.redrive("import", file_of(desk, "\n".join(lines)), "--yes")

    assert ended.out == "Imported 450 letters; 0 were there already.\n"
    assert desk.redrive("db", "check").code == 0


# What export writes for spreadsheets


@pytest.mark.parametrize("beginning", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_of_an_export_is_a_formula(tmp_path: Path, beginning: str) -> None:
    desk = Desk(tmp_path)
    text = f'{beginning}cmd|" /C calc"!A0,"x"\r\n{beginning}1'
    desk.record(dead(foreign(text.encode()), error=ValueError(text)))

    out = desk.redrive("export", "--output", "csv").raw.decode()
    rows = list(csv.reader(io.StringIO(out, newline="")))

    assert len(rows) == 2
    assert all(not cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in rows[1])
    cells = dict(zip(rows[0], rows[1], strict=True))
    assert cells["message_body"] == f"'{text}"
