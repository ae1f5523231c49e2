from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from redrive.edit_schema import MAX_MISFITS, Misfit, SchemaCheck
from redrive.errors import ConfigurationError, UsageError
from redrive.message import Message

WHEN = datetime(2026, 2, 28, 22, 53, 42, tzinfo=UTC)


def foreign(body: bytes | None) -> Message:
    return Message(id="m-1", queue="orders", body=body, sent_at=WHEN)


def misfits(schema: Any, payload: Any) -> list[tuple[str, str]]:
    check = SchemaCheck(json.dumps(schema).encode())
    return [(each.place, each.rule) for each in check.misfits(foreign(json.dumps(payload).encode()))]


ORDER = {
    "type": "object",
    "required": ["id", "customer"],
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "customer": {"$ref": "#/$defs/customer"},
        "items": {"type": "array", "items": {"type": "string", "pattern": "^A-"}},
    },
    "patternProperties": {"^x-": {"type": "string"}},
    "additionalProperties": False,
    "$defs": {"customer": {"type": "object", "properties": {"a.b": {"enum": ["hidden"]}}}},
}


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"id": 1, "customer": {}}, []),
        ({"id": 1, "customer": {}, "x-note": "", "items": ["A-1"]}, []),
        ({"id": "hunter2", "customer": {}}, [("id", 'type: "integer"')]),
        ({"id": 0, "customer": {}}, [("id", "minimum: 1")]),
        ({"id": 1}, [("", 'required: ["customer"]')]),
        ({"id": 1, "customer": {"a.b": "hunter2"}}, [('customer."a.b"', 'enum: ["hidden"]')]),
        ({"id": 1, "customer": {}, "items": ["A-1", "hunter2"]}, [("items.1", 'pattern: "^A-"')]),
        ({"id": 1, "customer": {}, "x-note": 1}, [("x-note", 'type: "string"')]),
        ({"id": 1, "customer": {}, "other": 1}, [("other", "additionalProperties: false")]),
        ([], [("", 'type: "object"')]),
    ],
)
def test_misfits_name_place_and_rule_and_no_value(payload: Any, told: list[tuple[str, str]]) -> None:
    assert misfits(ORDER, payload) == told


def test_all_that_is_missing_is_told_once() -> None:
    assert misfits(ORDER, {}) == [("", 'required: ["id","customer"]')]


def test_other_properties_can_have_a_schema() -> None:
    schema = {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}
    assert misfits(schema, {"a": "x", "b": 1, "c": "x"}) == [("c", 'type: "integer"')]


def test_nothing_fits_false_and_everything_true() -> None:
    assert SchemaCheck(b"false").misfits(foreign(b"1")) == [Misfit("", "nothing may be there")]
    assert SchemaCheck(b"true").misfits(foreign(b"1")) == []


def test_what_is_checked_is_the_data_of_an_envelope() -> None:
    message = Message.create(id="m-1", sent_at=WHEN, queue="orders", data={"a": "x"})
    check = SchemaCheck(b'{"properties": {"a": {"type": "integer"}}}')

    assert check.misfits(message) == [Misfit("a", 'type: "integer"')]


@pytest.mark.parametrize("body", [None, b"", b"text", b"\xff", b"[" * 100_000])
def test_a_body_that_is_not_json_does_not_fit(body: bytes | None) -> None:
    assert SchemaCheck(b"{}").misfits(foreign(body)) == [Misfit("", "it is not JSON")]


def test_numbers_that_no_float_holds_are_checked_or_told() -> None:
    check = SchemaCheck(b'{"multipleOf": 0.01, "type": "number"}')
    for body in (b"1e400", b"1" + b"0" * 400, b"1e308"):
        assert all(each.place == "" for each in check.misfits(foreign(body)))


def test_text_that_is_no_unicode_is_told() -> None:
    (told,) = SchemaCheck(b'{"pattern": "a"}').misfits(foreign(b'"\\ud800"'))
    assert "cannot be checked" in told.rule


def test_the_list_of_misfits_is_bounded() -> None:
    assert len(misfits({"items": {"type": "string"}}, list(range(1000)))) == MAX_MISFITS


def test_a_pattern_takes_linear_time() -> None:
    assert misfits({"pattern": "^(a+)+$"}, "a" * 5000 + "b") == [("", 'pattern: "^(a+)+$"')]
    patterns = {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}
    assert misfits(patterns, {"a" * 100 + "b": 1})[0][1] == "additionalProperties: false"


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07"])
def test_older_drafts(draft: str) -> None:
    schema = {"$schema": f"http://json-schema.org/{draft}/schema#", "definitions": {"n": {"type": "integer"}}}
    assert misfits({**schema, "items": {"$ref": "#/definitions/n"}}, [1, "x"]) == [("1", 'type: "integer"')]


def test_a_schema_may_refer_to_a_part_of_itself_by_id() -> None:
    parts = {
        "c": {"$id": "parts/customer", "properties": {"next": {"$ref": "customer"}, "at": {"$ref": "address"}}},
        "a": {"$id": "parts/address", "type": "string"},
    }
    schema = {"$id": "https://example.com/order", "properties": {"c": {"$ref": "parts/customer"}}, "$defs": parts}
    assert misfits(schema, {"c": {"next": {"at": 1}}}) == [("c.next.at", 'type: "string"')]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b'{"type": "whole"}',
        b'{"$schema": "https://example.com/mine"}',
        b'{"$schema": 7}',
        b'{"$ref": "#/$defs/missing"}',
        b'{"$ref": "other.json"}',
        b'{"pattern": "(?=a)"}',
        b'{"patternProperties": {"(a)\\\\1": {}}}',
        b'{"anyOf": [{"patternProperties": {"a": {}}}], "unevaluatedProperties": false}',
        b'{"not":' * 5000 + b"{}" + b"}" * 5000,
    ],
    ids=range(11),
)
def test_what_is_no_usable_schema_is_told_before_any_message(document: bytes) -> None:
    with pytest.raises(UsageError, match="JSON Schema cannot be used") as wrong:
        SchemaCheck(document)
    assert wrong.value.remedy


def test_a_value_that_looks_like_a_reference_is_none() -> None:
    assert misfits({"const": {"$ref": "nowhere"}}, {"$ref": "nowhere"}) == []
    assert misfits({"properties": {"$ref": {"type": "string"}, "pattern": {}}}, {"$ref": "x"}) == []


def test_nothing_is_ever_fetched() -> None:
    asked: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/schema.json"
        for schema in ({"$ref": address}, {"$schema": address}, {"allOf": [{"$ref": f"{address}#/a"}]}):
            with pytest.raises(UsageError):
                SchemaCheck(json.dumps(schema).encode())
        hidden = {"$ref": "#/default/x", "default": {"x": {"$ref": address}}}
        with pytest.raises(UsageError):
            misfits(hidden, 1)
        server.shutdown()

    assert asked == []


def test_without_the_package_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(ConfigurationError) as missing:
        SchemaCheck(b"{}")
    assert missing.value.remedy == "pip install 'redrive[schema]'"
