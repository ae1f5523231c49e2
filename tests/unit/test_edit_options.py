"""The edit options of `retry`: applied as they were typed, read once, and held to what a plan can carry."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from redrive.cli.edit_options import EditOptions
from redrive.cli.given_file import check_stdin_once
from redrive.edit_schema import MAX_SCHEMA
from redrive.editing import (
    MAX_PAYLOAD,
    Operation,
    Remove,
    Rename,
    Replace,
    Set,
    SetHeader,
    SetPayload,
    json_value,
)
from redrive.errors import EditRefused, UsageError
from redrive.letter_query import LetterQuery
from redrive.run import RunPlan

PLAN = RunPlan(selection=LetterQuery(queue="orders"))
SET = Set(path="a", value=json_value(1))


def edits(*typed: str, **given: Any) -> tuple[Operation, ...]:
    return EditOptions(**given).onto(PLAN, typed).edit


def test_edits_are_applied_in_the_order_of_their_typing(tmp_path: Path) -> None:
    patch = tmp_path / "patch.json"
    patch.write_text('[{"op": "replace", "path": "/a", "value": 1}]')
    given = {"patch": [patch], "remove": ["c"], "set_": ["b=2", "d=x"], "rename": ["e=f"]}
    made: dict[str, list[Operation]] = {
        "patch": [Replace(path="/a", value=json_value(1))],
        "remove": [Remove(path="c")],
        "set_": [Set(path="b", value=json_value(2)), Set(path="d", value=json_value("x"))],
        "rename": [Rename(path="e", to="f")],
    }
    for typed in (
        ("set_", "rename", "patch", "set_", "remove"),
        ("remove", "patch", "set_", "set_", "rename"),
        ("ids", "rate", "rename", "set_", "dry_run", "remove", "set_", "patch"),
    ):
        values = {name: iter(each) for name, each in made.items()}
        assert edits(*typed, **given) == tuple(next(values[name]) for name in typed if name in values)


def test_what_was_not_typed_comes_behind_what_was() -> None:
    assert edits("remove", set_=["a=1"], remove=["c"]) == (Remove(path="c"), SET)
    assert edits(set_=["a=1"], remove=["c"]) == (SET, Remove(path="c"))


def test_no_option_is_no_edit() -> None:
    assert EditOptions().onto(PLAN) is PLAN


def test_a_locked_header_is_refused_before_any_run_is_made() -> None:
    for allowed in (False, True):
        with pytest.raises(EditRefused, match="locked"):
            edits(set_header=["x-redrive-id=1"], allow_sensitive=allowed)


def test_a_sensitive_header_needs_a_permission_that_the_plan_carries() -> None:
    with pytest.raises(EditRefused, match="sensitive"):
        edits(set_header=["authorization=x"])
    plan = EditOptions(set_header=["authorization=x"], allow_sensitive=True).onto(PLAN)
    assert plan.edit == (SetHeader(name="authorization", value=json_value("x")),)
    assert plan.allow_sensitive


def test_a_payload_comes_from_a_file_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "body.bin"
    file.write_bytes(b"\x00\xff")
    assert edits(payload_file=[file]) == (SetPayload(payload=b"\x00\xff"),)


def test_a_payload_that_no_plan_can_carry_is_refused_with_a_way_out(tmp_path: Path) -> None:
    file = tmp_path / "body.bin"
    file.write_bytes(b"x" * MAX_PAYLOAD)
    assert edits(payload_file=[file])
    file.write_bytes(b"x" * (MAX_PAYLOAD + 1))
    with pytest.raises(UsageError, match="131,072 bytes") as refused:
        edits(payload_file=[file])
    assert "redrive edit ID --from FILE" in refused.value.remedy


def test_stdin_can_be_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xfebody")))
    assert edits(payload_file=[Path("-")]) == (SetPayload(payload=b"\xfebody"),)


def test_stdin_is_read_once() -> None:
    twice = EditOptions(patch=[Path("-")], schema=Path("-"))
    with pytest.raises(UsageError, match="stdin"):
        check_stdin_once(twice.sources)
    with pytest.raises(UsageError, match="stdin"):
        check_stdin_once(["-", *EditOptions(payload_file=[Path("-")]).sources])
    check_stdin_once(["-", *EditOptions(patch=[Path("a"), Path("b")]).sources])


def test_the_plan_carries_the_schema_with_or_without_an_edit(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object"} ')
    assert EditOptions(schema=schema).onto(PLAN).schema == '{"type": "object"} '
    plan = EditOptions(schema=schema, set_=["a=1"]).onto(PLAN)
    assert (plan.schema, plan.edit) == ('{"type": "object"} ', (SET,))


@pytest.mark.parametrize(
    "content",
    [b"no JSON", b'{"type": 7}', b'{"$ref": "https://example.com/x"}', b"true".ljust(MAX_SCHEMA + 1)],
    ids=["text", "wrong", "elsewhere", "large"],
)
def test_what_is_no_usable_schema_is_refused_before_any_run_is_made(tmp_path: Path, content: bytes) -> None:
    schema = tmp_path / "schema.json"
    schema.write_bytes(content)
    with pytest.raises(UsageError):
        EditOptions(schema=schema).onto(PLAN)


def test_a_schema_in_another_encoding_is_refused(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_bytes('{"type": "object"}'.encode("utf-16"))
    with pytest.raises(UsageError, match="UTF-8"):
        EditOptions(schema=schema).onto(PLAN)


def test_passing_over_is_about_a_schema() -> None:
    with pytest.raises(UsageError, match="--pass-over"):
        EditOptions(pass_over=True, set_=["a=1"]).onto(PLAN)
