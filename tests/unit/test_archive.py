"""The archive's files: exact, durable before anybody hears of them, and every kind of damage found and named."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.dead_letter import DeadLetter
from redrive.errors import CorruptFile, Refused, Unreachable
from redrive.upkeep import archive_file
from redrive.upkeep.archive import Archive, NewArchive, newest_first
from redrive.upkeep.archive_file import ArchiveReader, DamagedLine, digest_of, read_archive
from support.hostile import corpus
from support.whole_letters import a_whole_letter

if TYPE_CHECKING:
    from collections.abc import Iterator

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def written(folder: Path, *letters: DeadLetter) -> NewArchive:
    archive = Archive(folder)
    with archive.alone():
        file = archive.begin(NOON, by="redrive test")
        for letter in letters:
            assert file.add(letter)
        file.finish()
        file.abandon()
    return file


def test_what_is_written_is_read_back_in_its_order(tmp_path: Path) -> None:
    letters = [a_whole_letter() for _ in range(3)]

    file = written(tmp_path / "a" / "b", *letters)
    file.read_back()

    assert list(read_archive(file.path)) == letters
    assert file.versions == [letter.version for letter in letters]
    assert Archive(tmp_path / "a" / "b").files() == [file.path]


def test_every_hostile_message_is_archived_exactly(tmp_path: Path) -> None:
    letters = [a_whole_letter(each.message) for each in corpus()]

    file = written(tmp_path, *letters)
    file.read_back()

    assert [digest_of(letter) for letter in read_archive(file.path)] == [digest_of(letter) for letter in letters]


def test_an_archive_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = written(tmp_path / "archive", a_whole_letter())

    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


def test_any_program_that_reads_gzip_and_json_can_read_it(tmp_path: Path) -> None:
    letter = a_whole_letter()
    file = written(tmp_path, letter)

    head, line, end = (json.loads(each) for each in lines_of(file.path))

    assert head["redrive_archive"] == {"version": 1, "written_at": NOON.isoformat(), "by": "redrive test"}
    assert line["letter"]["id"] == letter.id
    assert line["letter"]["history"][1]["what"] == "resolved"
    assert end["redrive_archive_end"]["letters"] == 1


def test_an_archive_without_letters_is_whole(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.read_back()

    assert list(read_archive(file.path)) == []


def test_one_process_at_a_time_writes_into_a_folder(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from redrive.upkeep.archive import Archive\n"
        "with Archive(Path(sys.argv[1])).alone(): pass"
    )
    with Archive(tmp_path).alone():
        ended = subprocess.run(
            [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False
        )
        with pytest.raises(Refused, match="another process"), Archive(tmp_path).alone():
            pass
    assert "another process is archiving" in ended.stderr

    with Archive(tmp_path).alone():
        pass


def test_what_a_dead_process_left_half_written_is_thrown_away_and_nothing_else(tmp_path: Path) -> None:
    file = written(tmp_path, a_whole_letter())
    half = tmp_path / "letters-20260301T120000Z-018f0000-0000-7000-8000-000000000003.jsonl.gz.part"
    half.write_bytes(b"half")

    with Archive(tmp_path).alone():
        assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", file.path.name]


def test_a_file_that_is_abandoned_leaves_nothing(tmp_path: Path) -> None:
    file = Archive(tmp_path).begin(NOON, by="test")
    file.add(a_whole_letter())
    file.abandon()
    file.abandon()

    assert list(tmp_path.iterdir()) == []


def test_archives_are_read_newest_first_and_other_files_behind_them(tmp_path: Path) -> None:
    stamps = ["20260102T000000Z", "20260301T000000Z", "20251231T235959Z"]
    archives = [tmp_path / f"letters-{each}-018f0000-0000-7000-8000-000000000003.jsonl.gz" for each in stamps]
    other = tmp_path / "export.jsonl"

    assert newest_first([other, *archives]) == [archives[1], archives[0], archives[2], other]


# Disks that fail


@contextlib.contextmanager
def failing(owner: Any, name: str, error: OSError) -> Iterator[None]:
    def fail(*_arguments: Any, **_more: Any) -> Any:
        raise error

    patch = pytest.MonkeyPatch()
    patch.setattr(owner, name, fail)
    try:
        yield
    finally:
        patch.undo()


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
BROKEN = OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("error", [FULL, BROKEN], ids=["full", "broken"])
def test_a_disk_that_fails_when_it_is_synced_leaves_no_archive(tmp_path: Path, error: OSError) -> None:
    file = Archive(tmp_path).begin(NOON, by="test")
    file.add(a_whole_letter())

    with failing(os, "fsync", error), pytest.raises(Unreachable, match="cannot write the archive") as told:
        file.finish()
    file.abandon()

    assert "nothing of it was purged" in told.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_in_the_middle_of_a_letter_leaves_no_archive(tmp_path: Path) -> None:
    file = Archive(tmp_path).begin(NOON, by="test")
    with failing(file._part, "write", FULL), pytest.raises(Unreachable, match="No space left"):
        file.add(a_whole_letter())
    file.abandon()

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unreachable, match="file/archive"), Archive(tmp_path / "file" / "archive").alone():
        pass


def test_the_folder_is_synced_after_the_rename_and_the_file_before_it(tmp_path: Path) -> None:
    seen: list[str] = []
    patch = pytest.MonkeyPatch()
    real_sync, real_rename = os.fsync, Path.rename

    def sync(descriptor: int) -> None:
        seen.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_sync(descriptor)

    def rename(path: Path, target: Path) -> Path:
        seen.append("rename")
        return real_rename(path, target)

    file = Archive(tmp_path).begin(NOON, by="test")
    file.add(a_whole_letter())
    patch.setattr(os, "fsync", sync)
    patch.setattr(Path, "rename", rename)
    try:
        file.finish()
    finally:
        patch.undo()

    assert seen == ["file", "rename", "folder"]


# Damage


def lines_of(path: Path) -> list[bytes]:
    with gzip.open(path) as stream:
        return stream.readlines()


def packed(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(gzip.compress(b"".join(lines)))


def changed(lines: list[bytes], place: int, line: bytes) -> list[bytes]:
    return [*lines[:place], line, *lines[place + 1 :]]


DAMAGE: dict[str, Any] = {
    "an empty file": lambda _lines: [],
    "no head": lambda lines: lines[1:],
    "another version": lambda lines: changed(lines, 0, lines[0].replace(b'"version":1', b'"version":2')),
    "a head that was touched": lambda lines: changed(lines, 0, lines[0].replace(b"12:00", b"13:00")),
    "no end": lambda lines: lines[:-1],
    "half an end": lambda lines: changed(lines, -1 % len(lines), lines[-1][:30]),
    "a letter too few": lambda lines: [*lines[:1], *lines[2:]],
    "a letter twice": lambda lines: [*lines[:2], *lines[1:]],
    "letters in another order": lambda lines: [lines[0], lines[2], lines[1], lines[3]],
    "a letter that was touched": lambda lines: changed(lines, 1, lines[1].replace(b"orders", b"order5")),
    "a letter cut off": lambda lines: changed(lines, 2, lines[2][:200] + b"\n"),
    "no letter": lambda lines: changed(lines, 1, b"{}\n"),
    "something behind the end": lambda lines: [*lines, b"{}\n"],
    "a count that is wrong": lambda lines: changed(lines, 3, lines[3].replace(b'"letters":2', b'"letters":3')),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_and_the_file_is_named(tmp_path: Path, kind: str) -> None:
    file = written(tmp_path, a_whole_letter(), a_whole_letter())
    packed(file.path, DAMAGE[kind](lines_of(file.path)))

    with pytest.raises(CorruptFile, match="letters-2026") as told:
        list(read_archive(file.path))
    assert "nothing was purged" in told.value.remedy


@pytest.mark.parametrize("kept", [0, 0.001, 0.01, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_off_anywhere_is_found(tmp_path: Path, kept: float) -> None:
    file = written(tmp_path, *(a_whole_letter() for _ in range(20)))
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[: int(len(whole) * kept)])

    with pytest.raises(CorruptFile, match=file.path.name):
        list(read_archive(file.path))


def test_one_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="cannot be read"):
        list(read_archive(tmp_path / "nosuch"))


def test_an_archive_that_reads_back_differently_is_set_aside(tmp_path: Path) -> None:
    file = written(tmp_path, a_whole_letter(), a_whole_letter())
    other = written(tmp_path / "other", a_whole_letter(), a_whole_letter())
    file.path.write_bytes(other.path.read_bytes())  # sound, and not what was put in

    with pytest.raises(CorruptFile, match="does not hold what was written"):
        file.read_back()

    assert Archive(tmp_path).files() == []
    assert [path.name for path in tmp_path.glob("*.damaged")] == [f"{file.path.name}.damaged"]


@settings(max_examples=200)
@given(st.data())
def test_a_flipped_bit_is_never_read_as_another_letter(data: st.DataObject) -> None:
    letters = [a_whole_letter(id=f"018f0000-0000-7000-8000-00000000000{number}") for number in range(3)]
    lines = archive_file.ArchiveLines()
    made = [lines.head(written_at=NOON, by="test"), *(lines.letter(each) or b"" for each in letters), lines.end()]
    raw = bytearray(b"".join(made))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))

    found: list[DeadLetter | DamagedLine] = []
    with pytest.raises(DamagedLine):
        found.extend(each for _, each in ArchiveReader(io.BytesIO(bytes(raw))).letters())

    sound = {digest_of(each) for each in found if not isinstance(each, DamagedLine)}
    assert sound <= {digest_of(letter) for letter in letters}


@given(st.binary(max_size=300))
def test_whatever_the_bytes_are_reading_ends_with_damage_or_letters(raw: bytes) -> None:
    with contextlib.suppress(DamagedLine):
        list(ArchiveReader(io.BytesIO(raw)).letters())


def test_a_letter_too_long_for_any_reader_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_file, "MAX_LINE", 10_000)
    small, large = a_whole_letter(), a_whole_letter(text="x" * 20_000)
    file = Archive(tmp_path).begin(NOON, by="test")

    assert (file.add(large), file.add(small)) == (False, True)
    file.finish()
    file.read_back()

    assert list(read_archive(file.path)) == [small]


def test_a_line_that_never_ends_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_file, "MAX_LINE", 1000)
    with pytest.raises(DamagedLine, match="longer than"):
        list(ArchiveReader(io.BytesIO(b"x" * 5000)).letters())
