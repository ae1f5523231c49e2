"""`redrive edit --undo` and `--original`, before sending and with every revision kept; and `--schema`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Status
from support.dead_letters import dead, foreign
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from support.desk import Ended

COUNTED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def letter(desk: Desk) -> str:
    [letter_id] = desk.record(dead(foreign(b'{"n": 0}', headers=(("tenant", "acme"),))))
    return letter_id


def edit(desk: Desk, letter: str, *options: str) -> Ended:
    return desk.redrive("edit", letter, "--reason", "typo", "--yes", *options)


def give(desk: Desk, letter: str, text: str, *options: str) -> Ended:
    (desk.folder / "new").write_text(text)
    return edit(desk, letter, "--from", "new", *options)


def bodies(desk: Desk, letter: str) -> list[str]:
    return [(revision.message.body or b"").decode() for revision in desk.letter(letter).revisions]


def test_an_edit_is_taken_back_as_a_new_revision_and_history_tells_it(desk: Desk, letter: str) -> None:
    give(desk, letter, '{"n": 1}')

    ended = edit(desk, letter, "--undo")

    assert (ended.code, ended.out) == (0, f"Saved revision 2 of letter {letter}.\n"), ended.err
    assert bodies(desk, letter) == ['{"n": 0}', '{"n": 1}', '{"n": 0}']
    found = desk.letter(letter)
    assert (found.revision, found.message.body, found.message.headers) == (2, b'{"n": 0}', (("tenant", "acme"),))
    assert [(line.what, line.after) for line in found.history][-1] == ("edited", "revision 2")
    assert found.history[-1].reason == "back to revision 0: typo"


def test_one_edit_after_the_other_is_taken_back_until_there_is_none(desk: Desk, letter: str) -> None:
    for number in (1, 2, 3):
        give(desk, letter, f'{{"n": {number}}}')

    after = []
    for _ in range(3):
        assert edit(desk, letter, "--undo").code == 0
        after.append(desk.letter(letter).message.data["n"])
    ended = edit(desk, letter, "--undo")

    assert after == [2, 1, 0]
    assert (ended.code, "there is no edit to take back" in ended.err) == (5, True)
    assert desk.letter(letter).revision == 6


def test_an_edit_after_an_undo_can_be_taken_back_again(desk: Desk, letter: str) -> None:
    give(desk, letter, '{"n": 1}')
    edit(desk, letter, "--undo")
    give(desk, letter, '{"n": 5}')

    edit(desk, letter, "--undo")

    assert desk.letter(letter).message.data == {"n": 0}


def test_all_edits_are_taken_back_at_once(desk: Desk, letter: str) -> None:
    for number in (1, 2, 3):
        give(desk, letter, f'{{"n": {number}}}')

    assert edit(desk, letter, "--original").code == 0

    assert bodies(desk, letter)[-2:] == ['{"n": 3}', '{"n": 0}']
    assert desk.letter(letter).history[-1].reason == "back to revision 0: typo"
    assert edit(desk, letter, "--original").code == 5


@pytest.mark.parametrize("option", ["--undo", "--original"])
def test_a_letter_that_was_never_edited_has_nothing_to_take_back(desk: Desk, letter: str, option: str) -> None:
    ended = edit(desk, letter, option)

    assert (ended.code, f"letter {letter} is as it came" in ended.err) == (5, True)
    assert desk.letter(letter).revision == 0


@pytest.mark.parametrize("option", ["--undo", "--original"])
def test_what_was_sent_is_not_taken_back(desk: Desk, letter: str, option: str) -> None:
    give(desk, letter, '{"n": 1}', "--retry")

    ended = edit(desk, letter, option)

    assert (ended.code, "is REDRIVEN: cannot edit it" in ended.err) == (5, True)
    assert (desk.letter(letter).status, desk.letter(letter).revision) == (Status.REDRIVEN, 1)


def test_what_was_taken_back_is_sent_as_it_came(desk: Desk, letter: str) -> None:
    give(desk, letter, '{"n": 1}')
    assert edit(desk, letter, "--undo", "--retry").code == 0
    assert [each.message.body for each in desk.take("orders")] == [b'{"n": 0}']


def test_a_dry_run_shows_what_would_change(desk: Desk, letter: str) -> None:
    shown = give(desk, letter, '{"n": 1}', "--dry-run")
    give(desk, letter, '{"n": 1}')
    back = edit(desk, letter, "--undo", "--dry-run")

    assert shown.out == f"  ~ n: 0 -> 1\nWould save revision 1 of letter {letter}. Nothing was changed.\n"
    assert back.out.splitlines() == [
        "  ~ n: 1 -> 0",
        f"Would save revision 2 of letter {letter} (back to revision 0). Nothing was changed.",
    ]
    assert desk.letter(letter).revision == 1


@pytest.mark.parametrize(
    "options", [("--undo", "--original"), ("--undo", "--from", "new"), ("--original", "--body")]
)
def test_what_excludes_each_other_is_told(desk: Desk, letter: str, options: tuple[str, ...]) -> None:
    assert edit(desk, letter, *options).code == 2


def test_a_payload_that_does_not_fit_the_schema_is_not_saved(desk: Desk, letter: str) -> None:
    (desk.folder / "schema.json").write_text(json.dumps(COUNTED))

    refused = give(desk, letter, '{"n": "secret"}', "--schema", "schema.json")
    saved = give(desk, letter, '{"n": 1}', "--schema", "schema.json")

    assert refused.code == 5
    assert 'does not fit the schema: n: type: "integer"' in refused.err
    assert "secret" not in refused.err
    assert (saved.code, bodies(desk, letter)) == (0, ['{"n": 0}', '{"n": 1}'])


def test_an_editors_text_that_does_not_fit_is_kept(
    desk: Desk, letter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.folder / "schema.json").write_text(json.dumps(COUNTED))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/0/null/")

    ended = edit(desk, letter, "--schema", "schema.json")

    [draft] = tmp_path.glob("redrive-edit-*/*.json")
    assert (ended.code, str(draft) in ended.err) == (5, True), ended.err
    assert json.loads(draft.read_text()) == {"n": None}
    assert desk.letter(letter).revision == 0


def test_a_schema_that_cannot_be_used_is_told_before_anything_is_edited(desk: Desk, letter: str) -> None:
    (desk.folder / "schema.json").write_text("{")
    ended = give(desk, letter, '{"n": 1}', "--schema", "schema.json")
    assert (ended.code, "JSON Schema cannot be used" in ended.err) == (2, True)
