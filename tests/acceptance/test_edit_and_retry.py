"""Edits over a whole selection: as they were typed, checked by a schema, seen by whoever approves them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from redrive.dead_letter import Status
from redrive.message import Message
from support.dead_letters import an_order, dead, foreign
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from support.desk import Ended

INTEGER = {"type": "object", "properties": {"order_id": {"type": "integer"}}, "required": ["order_id"]}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def retry(desk: Desk, *options: str, stdin: str = "") -> Ended:
    return desk.redrive("retry", "--queue", "orders", "--yes", *options, stdin=stdin)


def payloads(desk: Desk) -> list[Any]:
    return [json.loads(delivery.message.payload or b"") for delivery in desk.take("orders")]


def a_schema(desk: Desk, schema: Any = None) -> str:
    (desk.folder / "schema.json").write_text(json.dumps(schema or INTEGER))
    return "schema.json"


def the_run(desk: Desk) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(desk.redrive("runs", "list", "--output", "json").out)[0]
    return run


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (("--rename", "order_id=id", "--set", "id=2"), {"id": 2}),
        (("--set", "id=2", "--remove", "id", "--rename", "order_id=id"), {"id": 7}),
        (("--set", "a=1", "--remove", "a", "--set", "a=2"), {"order_id": 7, "a": 2}),
        (("--set=a=1", "--patch", "copy.json", "--set=a=2"), {"order_id": 7, "a": 2, "b": 1}),
        (("--set", "a=2", "--payload-file", "new.json", "--set", "c=3"), {"new": True, "c": 3}),
    ],
    ids=["rename-set", "remove-rename", "set-remove-set", "set-patch-set", "payload-set"],
)
def test_operations_are_applied_as_they_were_typed(desk: Desk, options: tuple[str, ...], sent: Any) -> None:
    (desk.folder / "copy.json").write_text('[{"op": "copy", "from": "/a", "path": "/b"}]')
    (desk.folder / "new.json").write_text('{"new": true}')
    desk.record(dead(an_order(7)))

    ended = retry(desk, *options)

    assert (ended.code, payloads(desk)) == (0, [sent]), ended.err


def test_help_and_completion_know_the_options(desk: Desk) -> None:
    helped = desk.redrive("retry", "--help")
    words = {
        "COMP_WORDS": "redrive retry --set a=1 --payl",
        "COMP_CWORD": "4",
        "_REDRIVE_COMPLETE": "complete_bash",
    }
    completed = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'redrive'; from redrive.cli.main import main; main()"],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
        check=False,
    )

    assert helped.code == 0
    assert all(
        option in helped.out for option in ("--payload-file", "--schema", "--allow-sensitive", "--pass-over")
    )
    assert completed.stdout.split() == ["--payload-file"], completed.stderr


def test_a_dry_run_shows_where_the_first_letters_do_not_fit_the_schema(desk: Desk) -> None:
    fits, broken = desk.record(dead(an_order(7)), dead(foreign(b'{"order_id": "x"}')))
    schema = a_schema(desk)

    ended = retry(desk, "--set", "note=seen", "--schema", schema, "--dry-run")
    told = json.loads(retry(desk, "--schema", schema, "--dry-run", "--output", "json").out)

    assert f'Edit of letter {fits}\n  + note: "seen"\n' in ended.out
    misfit = 'order_id: type: "integer"'
    assert f'Edit of letter {broken}\n  + note: "seen"\n  ! does not fit the schema: {misfit}\n' in ended.out
    assert {each["letter_id"]: each["misfits"] for each in told["edited"]} == {fits: [], broken: [misfit]}


@pytest.mark.parametrize("named", [False, True])
def test_no_run_is_made_if_a_sample_does_not_fit(desk: Desk, *, named: bool) -> None:
    ids = desk.record(dead(an_order(7)), dead(foreign(b'{"order_id": "secret-4711"}')))
    schema = a_schema(desk)

    chosen = ids if named else ["--queue", "orders"]
    ended = desk.redrive("retry", *chosen, "--schema", schema, "--yes")

    assert ended.code == 5
    assert f'letter {ids[1]} would not fit the schema: order_id: type: "integer"' in ended.err
    assert "1 of the first 2 letters would not fit" in ended.err
    assert "--pass-over" in ended.err
    assert "secret-4711" not in ended.err
    assert desk.redrive("runs").err == "No runs.\n"
    assert desk.take("orders") == []


def test_what_does_not_fit_is_passed_over_and_told_if_somebody_says_so(desk: Desk) -> None:
    fits, broken = desk.record(dead(an_order(7)), dead(foreign(b'{"order_id": "x"}')))

    ended = retry(desk, "--set", "note=seen", "--schema", a_schema(desk), "--pass-over")

    assert (ended.code, ended.out.splitlines()[0]) == (4, "Sent 1 letter back."), ended.err
    assert f'letter {broken}: did not fit the schema: order_id: type: "integer"' in ended.err
    assert payloads(desk) == [{"order_id": 7, "note": "seen"}]
    assert [desk.letter(each).status for each in (fits, broken)] == [Status.REDRIVEN, Status.PENDING]
    assert desk.letter(broken).revision == 0


def test_letters_behind_the_samples_are_held_to_the_schema_when_they_are_taken(desk: Desk) -> None:
    ids = desk.record(*(dead(an_order(each)) for each in range(5)), dead(foreign(b'{"order_id": "x"}')))

    ended = retry(desk, "--schema", a_schema(desk))

    assert ended.code == 4
    assert f"letter {ids[-1]}: did not fit the schema" in ended.err
    assert len(desk.take("orders")) == 5


def test_an_edit_can_make_letters_fit(desk: Desk) -> None:
    desk.record(dead(foreign(b'{"order_id": "x"}')))
    assert retry(desk, "--schema", a_schema(desk), "--set", "order_id=8").code == 0
    assert payloads(desk) == [{"order_id": 8}]


def test_sensitive_headers_are_changed_only_if_somebody_says_so_and_their_values_are_not_shown(desk: Desk) -> None:
    desk.record(dead(an_order(7, headers=(("authorization", "Bearer old-4711"),))))
    edit = ("--set-header", "authorization=Bearer new-4712")

    refused = retry(desk, *edit)
    assert (refused.code, "this header is sensitive" in refused.err) == (5, True)
    assert "--allow-sensitive" in refused.err
    assert desk.redrive("runs").err == "No runs.\n"

    shown = retry(desk, *edit, "--allow-sensitive", "--dry-run")
    assert "~ header authorization: (hidden) -> (hidden)" in shown.out
    assert retry(desk, *edit, "--allow-sensitive").code == 0

    [delivery] = desk.take("orders")
    assert dict(delivery.message.headers)["authorization"] == "Bearer new-4712"
    run = the_run(desk)
    page = desk.redrive("runs", "show", run["id"]).out
    assert run["allow_sensitive"] is True
    assert "headers that let somebody in may be changed" in page
    for text in (shown.out, page, json.dumps(run)):
        assert "4711" not in text
        assert "4712" not in text


def test_the_same_bytes_for_each_letter_whatever_they_are(desk: Desk) -> None:
    ids = desk.record(dead(foreign(b"<order/>")), dead(foreign(b"\xff")))
    (desk.folder / "order.xml").write_bytes(b"<order>\xe9</order>\n")

    shown = retry(desk, "--payload-file", "order.xml", "--dry-run")
    assert f"Edit of letter {ids[0]}\n  ~ the whole payload: 8 bytes -> 17 bytes\n" in shown.out
    assert retry(desk, "--payload-file", "order.xml").code == 0

    assert [each.message.body for each in desk.take("orders")] == [b"<order>\xe9</order>\n"] * 2
    assert [each.message.body for each in desk.letter(ids[0]).revisions] == [b"<order/>", b"<order>\xe9</order>\n"]


def test_stdin_can_be_the_payload_and_only_that(desk: Desk) -> None:
    [letter] = desk.record(dead(foreign(b"<order/>")))
    both = desk.redrive("retry", "-", "--payload-file", "-", "--yes", stdin=letter)
    assert (both.code, "stdin" in both.err) == (2, True)
    assert retry(desk, "--payload-file", "-", stdin="<new/>").code == 0
    assert [each.message.body for each in desk.take("orders")] == [b"<new/>"]


def test_in_our_envelope_only_the_data_is_set_and_it_has_to_be_json(desk: Desk) -> None:
    order = an_order(7)
    [letter] = desk.record(dead(order))
    (desk.folder / "new").write_text("<order/>")

    ended = retry(desk, "--payload-file", "new")
    assert (ended.code, "whose data is JSON" in ended.err) == (5, True)
    assert desk.letter(letter).status is Status.PENDING

    (desk.folder / "new").write_text('{"order_id":8}')
    assert retry(desk, "--payload-file", "new").code == 0
    [delivery] = desk.take("orders")
    assert delivery.message.body == (order.body or b"").replace(b'{"order_id":7}', b'{"order_id":8}')
    assert delivery.message.id == order.id


def test_whoever_approves_sees_all_that_is_done(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text("[approval]\nedits = true\n")
    desk.record(dead(foreign(b"x")))
    (desk.folder / "new").write_text('{"order_id": 1}')
    edit = ("--payload-file", "new", "--set", "b=2", "--allow-sensitive", "--schema", a_schema(desk))
    assert retry(desk, *edit, "--as", "ann").code == 5

    run = the_run(desk)
    page = desk.redrive("runs", "show", run["id"]).out

    assert '{"op":"set-payload","payload":"15 bytes, sha256 ' in page.replace(": ", ":").replace(', "', ',"')
    assert page.index("set-payload") < page.index('"set"')
    assert "sensitive" in page
    assert "schema        " in page
    assert json.loads(run["schema"]) == INTEGER
    assert [each["op"] for each in run["edit"]] == ["set-payload", "set"]


def test_the_id_of_the_message_stays(desk: Desk) -> None:
    message = Message(id="m-1", queue="orders", body=b'{"a": 1}', sent_at=an_order().sent_at)
    desk.record(dead(message))
    retry(desk, "--set", "a=2")
    assert [each.message.id for each in desk.take("orders")] == ["m-1"]


def test_an_edited_letter_starts_with_all_its_attempts_again(desk: Desk) -> None:
    """Trap 18, where the message itself counts."""
    error = b'{"message":"timeout","code":"TimeoutError","trace":""}'
    exhausted = (an_order(7).body or b"").replace(b'"error":null', b'"error":' + error)
    exhausted = exhausted.replace(b'"retry_count":0', b'"retry_count":5')
    desk.record(dead(foreign(exhausted), attempts=5))

    assert retry(desk, "--set", "order_id=8").code == 0

    [delivery] = desk.take("orders")
    assert (delivery.message.retry_count, delivery.message.error) == (0, None)
    assert delivery.message.data == {"order_id": 8}
