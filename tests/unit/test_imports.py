"""What `redrive import` reads, format by format, and what it says about everything else."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.cli.importing import ImportFormat
from redrive.cli.letter_record import record, whole_record
from redrive.cli.output import json_text
from redrive.dead_letter import DeadLetter, Entry
from redrive.imports import ARCHIVE, FORMATS, Bad, Found, read
from redrive.imports.php_exception import read_exception
from redrive.message import Message
from support.hostile import Hostile, corpus, exactly
from support.whole_letters import a_whole_letter

HOSTILE = corpus()
FAILED_AT = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
EXCEPTION = """\
App\\Exceptions\\BankDown: no answer: timeout in bank in /srv/shop/app/Bank.php:41
Stack trace:
#0 /srv/shop/app/Jobs/Charge.php(17): App\\Bank->charge(Object(App\\Order))
#1 [internal function]: App\\Jobs\\Charge->handle('4111 1111')
#2 /srv/shop/vendor/laravel/framework/src/Illuminate/Container/BoundMethod.php(36): call_user_func_array(Array)
#3 {main}

Next RuntimeException: could not charge
the customer in /srv/shop/app/Jobs/Charge.php:19
Stack trace:
#0 /srv/shop/vendor/laravel/framework/src/Illuminate/Queue/CallQueuedHandler.php(127): App\\Jobs\\Charge->handle()
#1 {main}
"""
JOB = {
    "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "displayName": "App\\Jobs\\Charge",
    "job": "Illuminate\\Queue\\CallQueuedHandler@call",
    "maxTries": 3,
    "attempts": 2,
    "createdAt": 1772366000,
    "data": {"commandName": "App\\Jobs\\Charge", "command": 'O:15:"App\\Jobs\\Charge":0:{}'},
}
ROW = {
    "id": 7,
    "uuid": JOB["uuid"],
    "connection": "redis",
    "queue": "default",
    "payload": json.dumps(JOB),
    "exception": EXCEPTION,
    "failed_at": "2026-03-01 12:00:05",
}


def given_text(text: str | bytes, name: str | None = None) -> list[Found | Bad]:
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return list(read(io.BytesIO(raw), format=name))


def entry_of(text: str | bytes, name: str | None = None) -> Entry:
    [found] = given_text(text, name)
    assert isinstance(found, Found), found
    assert isinstance(found.letter, Entry)
    return found.letter


def letter_of(text: str | bytes, name: str | None = None) -> DeadLetter:
    [found] = given_text(text, name)
    assert isinstance(found, Found), found
    assert isinstance(found.letter, DeadLetter)
    return found.letter


def why(text: str | bytes, name: str | None = None) -> str:
    [found] = given_text(text, name)
    assert isinstance(found, Bad), found
    return found.why


def facts(message: Message) -> Any:
    return exactly([getattr(message, name) for name in message.__struct_fields__])


def test_the_command_offers_every_format_there_is() -> None:
    assert {str(each) for each in ImportFormat} == {ARCHIVE, *FORMATS}


# Our own exports


@pytest.mark.parametrize("hostile", HOSTILE, ids=[each.name for each in HOSTILE])
def test_what_export_writes_comes_back_byte_for_byte(hostile: Hostile) -> None:
    letter = a_whole_letter(hostile.message)

    bare, whole = (letter_of(json_text(told(letter)) + "\n") for told in (record, whole_record))

    assert facts(whole.message) == facts(hostile.message)
    assert facts(bare.message) == facts(hostile.message)
    assert facts(whole.revisions[0].message) == facts(letter.revisions[0].message)


def test_a_whole_export_comes_back_equal() -> None:
    letter = a_whole_letter()

    assert letter_of(json_text(whole_record(letter))) == letter


def test_a_bare_export_comes_back_with_what_the_list_knows() -> None:
    letter = a_whole_letter()

    back = letter_of(json_text(record(letter)))

    assert (back.id, back.identity, back.status, back.changed_at) == (
        letter.id,
        letter.identity,
        letter.status,
        letter.changed_at,
    )
    assert [(each.type, each.text, each.frames) for each in back.failures] == [(letter.type, letter.text, ())]
    assert [each.message for each in back.revisions] == [letter.message]
    assert (back.revision, back.history) == (0, ())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"revision": 5}, "revisions"),
        ({"revisions": ()}, None),
        ({"queue": "x" * 3000}, "queue is longer"),
        ({"queue": ""}, "queue"),
        ({"type": "x" * 3000}, "type is longer"),
        ({"how": "x" * 20_000}, "text"),
        ({"generations": (1, 1, 1)}, "attempt is told twice"),
    ],
)
def test_a_letter_that_contradicts_itself_is_refused(change: dict[str, Any], reason: str | None) -> None:
    told = json_text(whole_record(msgspec.structs.replace(a_whole_letter(), **change)))

    if reason is None:
        assert letter_of(told).revision == 0
    else:
        assert reason in why(told)


# Laravel


def test_a_row_of_failed_jobs_is_a_letter_with_the_payload_untouched() -> None:
    entry = entry_of(json.dumps(ROW))

    assert entry.message.body == str(ROW["payload"]).encode()
    assert (entry.queue, entry.handler, entry.at) == ("default", "App\\Jobs\\Charge", FAILED_AT)
    assert (entry.message.id, entry.message.queue) == (JOB["uuid"], "default")
    assert entry.message.sent_at == datetime(2026, 3, 1, 11, 53, 20, tzinfo=UTC)
    [failure] = entry.failures
    assert (failure.type, failure.text, failure.attempt) == (
        "RuntimeException",
        "could not charge\nthe customer",
        2,
    )


def test_its_identity_is_connection_queue_and_uuid() -> None:
    same = [entry_of(json.dumps(ROW | {"id": number})).identity for number in (1, 2)]
    others = [entry_of(json.dumps(ROW | {name: "x"})).identity for name in ("uuid", "connection", "queue")]

    assert same[0] == same[1]
    assert len({same[0], *others}) == 4


def test_json_lines_an_array_and_csv_give_the_same() -> None:
    other = ROW | {"uuid": "other", "payload": 'not JSON, "é\n'}
    table = io.StringIO()
    writer = csv.DictWriter(table, list(ROW))
    writer.writeheader()
    writer.writerows([ROW, other])
    texts = [
        "\n".join(json.dumps(each) for each in (ROW, other)),
        json.dumps([ROW, other]),
        json.dumps([ROW, other], indent=4, ensure_ascii=False),
        table.getvalue(),
        "\ufeff" + table.getvalue(),
    ]

    found = [[each.letter for each in given_text(text) if isinstance(each, Found)] for text in texts]

    assert all(len(each) == 2 for each in found)
    assert all(each == found[0] for each in found)


def test_bytes_of_a_csv_that_are_no_utf8_are_kept() -> None:
    text = b'uuid,connection,queue,payload,exception,failed_at\na,b,c,"\xff\x00",x,2026-03-01 12:00:05\n'

    assert entry_of(text).message.body == b"\xff\x00"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"payload": {"uuid": "x"}}, "payload should be a text"),
        ({"payload": None}, "payload should be a text"),
        ({"exception": 7}, "exception should be a text"),
        ({"failed_at": "yesterday"}, "failed_at should be a time"),
        ({"failed_at": None}, "failed_at should be a time"),
        ({"queue": None}, "queue should be"),
        ({"queue": ""}, "queue should be"),
        ({"queue": "x" * 5000}, "queue is longer"),
        ({"uuid": None, "id": None, "payload": "{}"}, "neither a uuid nor an id"),
    ],
)
def test_a_row_that_is_wrong_is_told(change: dict[str, Any], told: str) -> None:
    assert told in why(json.dumps(ROW | change))


@pytest.mark.parametrize(
    ("change", "attempts"),
    [
        ({}, 2),
        ({"attempts": None}, 3),
        ({"attempts": 0, "maxTries": None}, 1),
        ({"attempts": "many"}, 3),
        ({"attempts": True}, 3),
        ({"attempts": 10**30}, 1_000_000),
    ],
)
def test_attempts_are_those_made_or_else_allowed(change: dict[str, Any], attempts: int) -> None:
    payload = json.dumps(JOB | change)

    assert entry_of(json.dumps(ROW | {"payload": payload})).failures[0].attempt == attempts


@pytest.mark.parametrize(
    ("given_at", "expected"),
    [
        ("2026-03-01 12:00:05", FAILED_AT),
        ("2026-03-01T12:00:05.000000Z", FAILED_AT),
        ("2026-03-01 09:00:05-03", FAILED_AT),
        (FAILED_AT.timestamp(), FAILED_AT),
        (10**30, None),
    ],
)
def test_times_are_read_as_databases_write_them(given_at: Any, expected: datetime | None) -> None:
    text = json.dumps(ROW | {"failed_at": given_at})

    if expected is None:
        assert "failed_at" in why(text)
    else:
        assert entry_of(text).at == expected


def test_a_php_exception_is_read_with_its_cause_and_its_frames_the_way_ours_are() -> None:
    cause, outer = read_exception(EXCEPTION)

    assert (cause.type, cause.text, cause.link) == (
        "App\\Exceptions\\BankDown",
        "no answer: timeout in bank",
        "cause",
    )
    assert [(frame.file.rpartition("/")[2], frame.line, frame.function, frame.own) for frame in cause.frames] == [
        ("BoundMethod.php", 36, "{main}", False),
        ("[internal function]", 0, "call_user_func_array", False),
        ("Charge.php", 17, "App\\Jobs\\Charge->handle", True),
        ("Bank.php", 41, "App\\Bank->charge", True),
    ]
    assert (outer.type, outer.text, outer.link) == ("RuntimeException", "could not charge\nthe customer", "")
    assert "4111" not in str((cause, outer))  # arguments are data


@pytest.mark.parametrize(
    ("text", "type_", "told"),
    [
        ("", "Exception", ""),
        ("it just failed", "Exception", "it just failed"),
        ("Error: x", "Error", "x"),
        ("RuntimeException in /srv/a.php:3\nStack trace:\n#0 {main}", "RuntimeException", ""),
        ("a b: c", "Exception", "a b: c"),
        ("Error: in the beginning in nowhere", "Error", "in the beginning in nowhere"),
        ("\x00\ud800", "Exception", "\x00\\ud800"),
    ],
)
def test_any_text_of_an_exception_says_something(text: str, type_: str, told: str) -> None:
    [raised] = read_exception(text)

    assert (raised.type, raised.text) == (type_, told)


@given(st.text(st.sampled_from("#0123 \n:(){}mainNextStack trace:in/.php\\Error->"), max_size=200))
def test_no_text_of_an_exception_is_too_strange(text: str) -> None:
    chain = read_exception(text)

    assert 1 <= len(chain) <= 5
    assert all(len(raised.frames) <= 64 for raised in chain)


def test_a_trace_of_a_hundred_thousand_frames_is_cut() -> None:
    text = "Error: deep in /a.php:1\nStack trace:\n" + "\n".join(f"#{n} /a.php({n}): f()" for n in range(100_000))

    [raised] = read_exception(text)

    assert len(raised.frames) == 64
    assert (raised.frames[-1].line, raised.frames[-1].function) == (1, "f")


# Our envelope, and anybody's lines


def test_an_envelope_is_a_message_as_it_stands() -> None:
    message = Message.create(id="m-1", sent_at=FAILED_AT, queue="orders", data={"n": 1}, source="shop")
    body = message.with_error("no answer", "BankDown", "line 1\nline 2").with_incremented_retry().to_json()

    entry = entry_of(body + b"\n")

    assert entry.message.body == body
    assert (entry.message.id, entry.queue, entry.message.source) == ("m-1", "orders", "shop")
    assert (entry.failures[0].type, entry.failures[0].text, entry.failures[0].attempt) == (
        "BankDown",
        "no answer",
        1,
    )
    assert [frame.source for frame in entry.failures[0].frames] == ["line 1", "line 2"]


LINE: dict[str, Any] = {"queue": "orders", "data": {"n": 1}, "at": "2026-03-01T12:00:05Z"}


def test_the_least_a_line_must_say_is_where_what_and_when() -> None:
    entry = entry_of(json.dumps(LINE))

    assert (entry.queue, entry.message.body, entry.at) == ("orders", b'{"n": 1}', FAILED_AT)
    assert (entry.handler, entry.failures[0].type) == ("unknown", "Error")
    for name in ("data", "at"):
        assert name in why(json.dumps({key: value for key, value in LINE.items() if key != name}))
    assert "none of the formats" in why(json.dumps({"data": 1}))
    assert "queue" in why(json.dumps({"data": 1}), "jsonl")


def test_a_line_may_say_much_more() -> None:
    more = {
        "id": "m-1",
        "handler": "charge",
        "headers": {"x": 1, "y": {"base64": "AA=="}},
        "key": "k",
        "source": "shop",
        "attempts": 4,
        "kind": "transient",
        "sent_at": "2026-03-01T12:00:00Z",
        "error": {"type": "TimeoutError", "text": "no answer", "trace": "a\nb"},
    }

    entry = entry_of(json.dumps(LINE | more))

    message, [failure] = entry.message, entry.failures
    assert (message.id, message.key, message.source, message.headers) == (
        "m-1",
        b"k",
        "shop",
        (("x", 1), ("y", b"\x00")),
    )
    assert message.sent_at == FAILED_AT - timedelta(seconds=5)
    assert (failure.type, failure.text, failure.attempt, failure.kind) == (
        "TimeoutError",
        "no answer",
        4,
        "transient",
    )


@pytest.mark.parametrize(
    ("error", "type_", "text"),
    [
        ("boom", "Error", "boom"),
        ({"code": 500, "message": "m"}, "500", "m"),
        (None, "Error", ""),
        ({}, "Error", ""),
    ],
)
def test_an_error_may_be_told_in_several_ways(error: Any, type_: str, text: str) -> None:
    [failure] = entry_of(json.dumps(LINE | {"error": error})).failures

    assert (failure.type, failure.text) == (type_, text)


def test_data_keeps_its_digits() -> None:
    raw = b'{"queue":"orders","at":0,"data":{"big":123456789012345678901234567890,"f":1.10,"e":1e400}}'

    assert entry_of(raw).message.body == b'{"big":123456789012345678901234567890,"f":1.10,"e":1e400}'


@pytest.mark.parametrize("body", [b"", b"\xff\x00", b"plain"])
def test_a_body_may_be_text_or_base64_or_nothing(body: bytes) -> None:
    bare = {key: value for key, value in LINE.items() if key != "data"}
    told = base64.b64encode(body).decode()

    assert entry_of(json.dumps(bare | {"body_base64": told})).message.body == body
    assert entry_of(json.dumps(bare | {"body": "é"})).message.body == "é".encode()
    assert entry_of(json.dumps(bare | {"body": None})).message.body is None
    assert "base64" in why(json.dumps(bare | {"body_base64": "%"}))
    assert "one of" in why(json.dumps(LINE | {"body": "x"}))


def test_a_line_is_known_by_its_identity_its_id_or_itself() -> None:
    texts = [LINE, LINE | {"id": "1"}, LINE | {"id": "1", "data": 2}, LINE | {"identity": "i"}, LINE | {"data": 2}]

    identities = [entry_of(json.dumps(each)).identity for each in texts]

    assert identities[1] == identities[2]
    assert identities[3] == "i"
    assert len(set(identities)) == 4


# Whatever else


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (b"\x00\x01\x02", 1, "neither JSON nor CSV"),
        (b"\xff\xfea\x00,\x00b\x00\n\x00", 1, "neither JSON nor CSV"),
        (b"{", 1, "not JSON"),
        (b"\n\n{]\n", 3, "not JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"}\n", 1, "deep"),
        (b'{"a": ' + b"9" * 5000 + b"}\n", 1, "number is too long"),
        (b'{"a": "\xff"}\n', 1, "UTF-8"),
        (b'{"a": 1}\n', 1, "none of the formats"),
        (b"[", 1, "cut off"),
        (b"[1]", 1, "an object is wanted, not a number"),
        (b"[{}", 1, "none of the formats"),
        (b'[{"queue": "a"} {"queue": "b"}]', 1, "missing"),
        (b"[" * 100_000, 1, "deep"),
        (b'[\n\n{"queue": "\xff"}]', 1, "UTF-8"),
        (b"a,b\n1\n", 2, "1 cells, and the header 2"),
        (b'a,b\n"1" 2,3\n', 2, "not CSV"),
        (b"\x1f\x8b\x08\x00nonsense", 1, "damaged"),
    ],
)
def test_what_is_none_of_these_is_told_with_its_line(text: bytes, line: int, told: str) -> None:
    [bad] = given_text(text)[:1]

    assert isinstance(bad, Bad)
    assert bad.line == line
    assert told in bad.why


def test_nothing_is_nothing() -> None:
    for text in (b"", b"\n\n", b"[]", b" [ ] ", gzip.compress(b""), b"\xef\xbb\xbf"):
        assert given_text(text) == []


def test_a_bad_line_holds_up_no_other() -> None:
    lines = [json.dumps(LINE), "{", "7", json.dumps(LINE | {"queue": 7}), json.dumps(LINE | {"id": "2"})]

    found = given_text("\n".join(lines))

    assert [(each.line, type(each)) for each in found] == [(1, Found), (2, Bad), (3, Bad), (4, Bad), (5, Found)]


def test_a_line_that_is_too_long_is_told_and_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redrive.imports.rows.LONGEST_ROW", 1000)
    text = json.dumps(LINE) + "\n" + '{"queue": "' + "x" * 5500 + '"}\n' + json.dumps(LINE | {"id": "2"})

    found = given_text(text)

    assert [(each.line, type(each)) for each in found] == [(1, Found), (2, Bad), (3, Found)]


def test_an_element_of_an_array_that_never_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redrive.imports.rows.LONGEST_ROW", 1000)
    monkeypatch.setattr("redrive.imports.rows._READ_AT_ONCE", 100)
    text = "[" + json.dumps(LINE) + ', {"queue": "' + "x" * 100_000

    assert [type(each) for each in given_text(text)] == [Found, Bad]


def test_an_array_is_read_piece_by_piece_with_the_lines_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redrive.imports.rows._READ_AT_ONCE", 7)
    many = [LINE | {"id": str(number), "data": "é" * number} for number in range(50)]

    found = given_text("[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in many) + "\n]\n")

    assert [each.line for each in found] == list(range(2, 52))
    assert [each.letter.message.id for each in found if isinstance(each, Found)] == [str(n) for n in range(50)]


def test_gzip_is_taken_off_and_what_is_cut_off_is_told() -> None:
    dice = random.Random(7)  # noqa: S311  not a secret
    lines = [json.dumps(LINE | {"id": str(n), "data": dice.getrandbits(4000)}) for n in range(200)]
    whole = gzip.compress("\n".join(lines).encode())

    assert len([each for each in given_text(whole) if isinstance(each, Found)]) == 200
    cut = given_text(whole[: len(whole) // 2])
    assert isinstance(cut[-1], Bad)
    assert 0 < len(cut) - 1 < 200


def test_a_pipe_that_gives_one_byte_at_a_time_is_read_like_a_file() -> None:
    class Slow(io.RawIOBase):
        def __init__(self, raw: bytes) -> None:
            self._rest = io.BytesIO(raw)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            part = self._rest.read(1)
            buffer[: len(part)] = part
            return len(part)

    for text in (json.dumps(LINE), json.dumps([LINE])):
        for raw in (text.encode(), gzip.compress(text.encode())):
            assert [type(each) for each in read(io.BufferedReader(Slow(raw)))] == [Found]


@settings(max_examples=300)
@given(
    st.binary(max_size=200)
    | st.text(st.sampled_from('[]{}",:\\ \nqueuedatbody017e-'), max_size=200).map(str.encode)
)
def test_whatever_the_bytes_are_there_is_an_answer(raw: bytes) -> None:
    for name in (None, "archive", *FORMATS):
        assert all(isinstance(each, Found | Bad) for each in read(io.BytesIO(raw), format=name))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300)
@given(st.sampled_from([ROW, LINE, json.loads(json_text(whole_record(a_whole_letter())))]), st.data())
def test_a_field_of_any_value_is_taken_or_refused(row: dict[str, Any], data: st.DataObject) -> None:
    changed = row | {data.draw(st.sampled_from(sorted(row))): data.draw(json_values)}

    [found] = given_text(json.dumps(changed))

    assert isinstance(found, Found | Bad)
