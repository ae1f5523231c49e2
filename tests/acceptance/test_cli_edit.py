"""`redrive edit`: a new revision, the original kept."""

from __future__ import annotations

import stat
import sys
import tempfile
from pathlib import Path

import pytest

from redrive.dead_letter import Status
from redrive.message import Message
from support.dead_letters import an_order, dead, foreign
from support.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return Editor(tmp_path, monkeypatch)


class Editor:
    """A program that does to the file what a person would, by replacing a text in it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._program, self._seen = folder / "editor.py", folder / "seen"
        self._monkeypatch = monkeypatch

    def will(self, old: str, new: str, *, code: int = 0) -> None:
        self._program.write_text(
            "import pathlib, sys\n"
            "file = pathlib.Path(sys.argv[-1])\n"
            "text = file.read_bytes().decode()\n"
            f"pathlib.Path({str(self._seen)!r}).write_text(f'{{file.stat().st_mode:o}} {{file}}\\n{{text}}')\n"
            f"file.write_bytes(text.replace({old!r}, {new!r}).encode())\n"
            f"sys.exit({code})\n"
        )
        self._monkeypatch.delenv("VISUAL", raising=False)
        self._monkeypatch.setenv("EDITOR", f"{sys.executable} {self._program}")

    @property
    def shown(self) -> str:
        return self._seen.read_text().partition("\n")[2]

    @property
    def file(self) -> tuple[int, Path]:
        mode, _, path = self._seen.read_text().partition("\n")[0].partition(" ")
        return int(mode, 8), Path(path)


def edit(desk: Desk, letter_id: str, *options: str) -> tuple[int, str, str]:
    ended = desk.redrive("edit", letter_id, "--reason", "typo", "--yes", *options)
    return ended.code, ended.out, ended.err


def an_order_with_spaces() -> Message:
    message = an_order(12345678901234567890123)
    assert message.body is not None
    return foreign(message.body.replace(b'"retry_count":0', b'"retry_count" : 0 '))


def test_only_the_data_of_an_envelope_changes_and_the_original_stays(desk: Desk, editor: Editor) -> None:
    message = an_order_with_spaces()
    [letter_id] = desk.record(dead(message))
    editor.will("12345678901234567890123", "7")

    assert edit(desk, letter_id) == (0, f"Saved revision 1 of letter {letter_id}.\n", "")

    letter = desk.letter(letter_id)
    assert editor.shown == '{\n  "order_id": 12345678901234567890123\n}\n'
    assert message.body is not None
    assert letter.message.body == message.body.replace(b"12345678901234567890123", b"7")
    assert [revision.message.body for revision in letter.revisions] == [message.body, letter.message.body]
    assert (letter.revision, letter.history[-1].reason) == (1, "typo")


def test_the_draft_is_for_its_owner_alone_and_gone_afterwards(desk: Desk, editor: Editor) -> None:
    [letter_id] = desk.record(dead())
    editor.will("1", "2")

    edit(desk, letter_id)

    _, path = editor.file
    assert not path.exists()
    assert not path.parent.exists()


def test_the_folder_of_the_draft_is_closed_to_others(desk: Desk, editor: Editor) -> None:
    [letter_id] = desk.record(dead())
    editor.will("1", "{broken")

    edit(desk, letter_id)

    mode, path = editor.file
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(mode) & 0o077 == 0


def test_unchanged_is_nothing_done(desk: Desk, editor: Editor) -> None:
    [letter_id] = desk.record(dead())
    editor.will("nothing of it", "")

    assert edit(desk, letter_id) == (0, "Unchanged: nothing was done.\n", "")

    assert desk.letter(letter_id).revision == 0


def test_what_is_no_longer_json_is_refused_and_the_persons_text_is_kept(desk: Desk, editor: Editor) -> None:
    [letter_id] = desk.record(dead())
    editor.will("1", "one")

    code, _, err = edit(desk, letter_id)

    _, draft = editor.file
    assert (code, "this is not JSON" in err, str(draft) in err) == (2, True, True)
    assert draft.read_text() == '{\n  "order_id": one\n}\n'
    assert desk.letter(letter_id).revision == 0


def test_an_editor_that_fails_changes_nothing(desk: Desk, editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    [letter_id] = desk.record(dead())
    editor.will("1", "2", code=1)

    assert edit(desk, letter_id)[0] == 5
    monkeypatch.setenv("EDITOR", "no-such-editor")
    code, _, err = edit(desk, letter_id)

    assert (code, "set EDITOR" in err) == (2, True)
    assert not list(desk.folder.glob("redrive-edit-*"))
    assert desk.letter(letter_id).revision == 0


def test_the_whole_body_can_be_edited_as_it_is(desk: Desk, editor: Editor) -> None:
    message = an_order_with_spaces()
    [letter_id] = desk.record(dead(message))
    editor.will("checkout", "shop")

    edit(desk, letter_id, "--body")

    assert message.body is not None
    assert editor.shown == message.body.decode()
    assert desk.letter(letter_id).message.body == message.body.replace(b"checkout", b"shop")


def test_a_message_keeps_its_id_whatever_is_edited(desk: Desk, editor: Editor) -> None:
    [letter_id] = desk.record(dead(message := an_order()))
    editor.will(message.id, "another")

    code, _, err = edit(desk, letter_id, "--body")

    assert (code, f"message_id must stay {message.id}" in err) == (5, True)
    assert desk.letter(letter_id).revision == 0


def test_new_bytes_can_come_from_a_file_or_stdin(desk: Desk) -> None:
    first, second = desk.record(dead(), dead(foreign(b"\xff\x00")))
    file = desk.folder / "new"
    file.write_bytes(b'{"order_id": 2}')

    assert edit(desk, first, "--from", str(file))[0] == 0
    file.write_bytes(b'{"order_id": 2}\n')  # as editors end a file
    assert edit(desk, first, "--from", str(file)) == (0, "Unchanged: nothing was done.\n", "")
    assert desk.redrive("edit", second, "--from", "-", "--reason", "r", "--yes", stdin="\x00new").code == 0

    assert desk.letter(first).message.data == {"order_id": 2}
    assert desk.letter(second).message.body == b"\x00new"


def test_what_is_not_json_is_only_edited_from_a_file(desk: Desk, editor: Editor) -> None:
    [letter_id] = desk.record(dead(foreign(b"\xff")))
    editor.will("", "")

    code, _, err = edit(desk, letter_id)

    assert (code, "--from FILE" in err) == (5, True)


def test_a_file_that_is_not_json_does_not_replace_json_unless_the_whole_body_is_meant(desk: Desk) -> None:
    [letter_id] = desk.record(dead(foreign(b'{"a":1}')))
    file = desk.folder / "new"
    file.write_bytes(b"{")

    refused = edit(desk, letter_id, "--from", str(file))
    done = edit(desk, letter_id, "--from", str(file), "--body")

    assert (refused[0], done[0]) == (2, 0)
    assert desk.letter(letter_id).message.body == b"{"


def test_a_missing_file_is_told(desk: Desk) -> None:
    [letter_id] = desk.record(dead())

    code, _, err = edit(desk, letter_id, "--from", "nosuch")

    assert (code, "cannot read nosuch" in err) == (2, True)


def test_an_edited_letter_is_sent_as_edited(desk: Desk, editor: Editor) -> None:
    message = an_order(1)
    [letter_id] = desk.record(dead(message))
    editor.will(": 1", ": 2")

    code, out, _ = edit(desk, letter_id, "--retry")

    assert (code, out.splitlines()[-1]) == (0, "Sent 1 letter back.")
    [delivery] = desk.take("orders")
    assert (delivery.message.id, delivery.message.data) == (message.id, {"order_id": 2})
    shown = desk.redrive("show", letter_id).out
    assert "Revisions\n  0  " in shown
    assert "by " in shown
    assert ": typo" in shown


def test_only_a_pending_letter_can_be_edited(desk: Desk, editor: Editor) -> None:
    [letter_id] = desk.record(dead())
    desk.redrive("discard", letter_id, "--reason", "r", "--yes")
    editor.will("1", "2")

    code, _, err = edit(desk, letter_id)

    assert (code, "is DISCARDED: cannot edit it" in err) == (5, True)
    assert desk.letter(letter_id).status is Status.DISCARDED


def test_a_dry_run_and_a_missing_yes_save_nothing(desk: Desk, editor: Editor) -> None:
    [letter_id] = desk.record(dead())
    editor.will("1", "2")

    dry = edit(desk, letter_id, "--dry-run")
    refused = desk.redrive("edit", letter_id, "--reason", "typo")

    told = f"  ~ order_id: 1 -> 2\nWould save revision 1 of letter {letter_id}. Nothing was changed.\n"
    assert dry == (0, told, "")
    assert refused.code == 5
    assert desk.letter(letter_id).revision == 0


def test_what_an_editor_leaves_beside_the_text_is_no_trouble(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    [letter_id] = desk.record(dead(an_order(1)))
    monkeypatch.setenv("EDITOR", "sed -i~ s/1/7/")
    done = desk.redrive("edit", letter_id, "--reason", "typo", "--yes")
    assert done.code == 0, done.err


def test_without_an_editor_and_a_terminal_it_says_so_and_does_not_wait(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    [letter_id] = desk.record(dead(an_order(1)))
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    done = desk.redrive("edit", letter_id, "--reason", "typo", "--yes")
    assert done.code == 5
    assert "--from" in done.err
