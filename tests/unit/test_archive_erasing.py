"""Letters are erased from archives: the others stay byte for byte, and what cannot be reached is named. The
manifest finds what is missing or was changed.
"""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from redrive.dead_letter import DeadLetter
from redrive.errors import CorruptFile
from redrive.privacy.encryption.file_keys import NO_KEYS
from redrive.upkeep.archive import Archive
from redrive.upkeep.archive_checking import check_archive, missing_from
from redrive.upkeep.archive_erasing import ArchiveErasing
from redrive.upkeep.archive_manifest import NAME
from redrive.upkeep.archive_places import open_place
from support.sealing import SEALING
from support.whole_letters import a_whole_letter

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def written(archive: Archive, *letters: DeadLetter) -> Path:
    with archive.alone():
        file = archive.begin(NOON, by="test")
        for letter in letters:
            assert file.add(letter)
        file.finish()
        file.abandon()
        archive.note(file.path, len(letters))
        archive.keep_copy(file.path)
    return file.path


def erase(archive: Archive, *theirs: DeadLetter) -> list[str]:
    """What was left."""
    ids = {letter.id for letter in theirs}
    erasing = ArchiveErasing(archive, lambda letter: letter.id in ids)
    with archive.alone():
        held = erasing.look()
        for path in held.files:
            assert erasing.erase(path) == len(held.files[path])
        return [each.what for each in (*held.left, *erasing.bring_copies_up_to_date())]


def lines(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def test_the_other_lines_stand_as_they_did_and_the_last_one_says_how_many_went(tmp_path: Path) -> None:
    archive, letters = Archive(tmp_path), [a_whole_letter() for _ in range(4)]
    path = written(archive, *letters)
    before = lines(path)

    assert erase(archive, letters[1]) == []
    assert erase(archive, letters[3]) == []

    after = lines(path)
    assert after[:-1] == [before[0], before[1], before[3]]
    end = json.loads(after[-1])["redrive_archive_end"]
    assert (end["letters"], end["erased"]) == (2, 2)
    assert list(archive.read(path)) == [letters[0], letters[2]]
    assert check_archive(path, NO_KEYS, archive.manifest).letters == 2


def test_archives_that_hold_nothing_of_the_person_are_not_touched(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    path = written(archive, a_whole_letter())
    before = path.read_bytes(), path.stat().st_mtime_ns, (tmp_path / NAME).read_bytes()

    assert erase(archive, a_whole_letter()) == []

    assert (path.read_bytes(), path.stat().st_mtime_ns, (tmp_path / NAME).read_bytes()) == before


def test_an_archive_of_theirs_alone_stays_empty_and_sound(tmp_path: Path) -> None:
    archive, letter = Archive(tmp_path), a_whole_letter()
    path = written(archive, letter)

    erase(archive, letter)

    assert list(archive.read(path)) == []
    assert check_archive(path, NO_KEYS, archive.manifest).letters == 0


def test_a_sealed_archive_stays_sealed(tmp_path: Path) -> None:
    archive, letters = Archive(tmp_path, SEALING), [a_whole_letter() for _ in range(2)]
    path = written(archive, *letters)

    assert erase(archive, letters[0]) == []

    assert list(archive.read(path)) == [letters[1]]
    assert check_archive(path, archive.keys, archive.manifest).kek_id is not None


def test_what_cannot_be_read_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    archive, letters = Archive(tmp_path), [a_whole_letter() for _ in range(2)]
    damaged, sound = written(archive, letters[0]), written(archive, letters[0], letters[1])
    damaged.write_bytes(damaged.read_bytes()[:-20])
    sealed = written(Archive(tmp_path, SEALING), letters[0])
    aside = tmp_path / f"{sound.name}.damaged"
    aside.write_bytes(b"")
    before = damaged.read_bytes(), sealed.read_bytes()

    left = erase(archive, letters[0])

    assert [path.name for path in (damaged, sealed, aside) if not any(path.name in each for each in left)] == []
    assert (damaged.read_bytes(), sealed.read_bytes()) == before
    assert list(archive.read(sound)) == [letters[1]]


def test_a_copy_whose_archive_is_not_here_is_named(tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    archive = Archive(tmp_path / "archive", copies=open_place(f"file://{tmp_path}/copies"))
    letters = [a_whole_letter() for _ in range(2)]
    mine, other = written(archive, letters[0]), written(archive, letters[1])
    mine.unlink()
    other.unlink()

    [left] = erase(archive, letters[0])

    assert f"the copy {mine.name}, whose archive is not here, holds 1 letters of that person" in left


def test_copies_that_are_away_are_named(tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    archive = Archive(tmp_path / "archive", copies=open_place(f"file://{tmp_path}/copies"))
    letter = a_whole_letter()
    path = written(archive, letter)
    (tmp_path / "copies").rename(tmp_path / "unmounted")

    left = erase(archive, letter)

    assert any("copies of archives were not searched" in each for each in left)
    assert list(archive.read(path)) == []
    (tmp_path / "unmounted").rename(tmp_path / "copies")
    assert erase(archive, letter) == []
    assert (tmp_path / "copies" / path.name).read_bytes() == path.read_bytes()


# The manifest


def test_an_archive_that_is_gone_is_missed_until_somebody_says_so(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    path, _ = written(archive, a_whole_letter()), written(archive, a_whole_letter())
    path.unlink()

    [missed] = missing_from(archive)
    assert (missed.name, missed.letters) == (path.name, 1)
    archive.forget(path.name)
    assert missing_from(archive) == []


def test_an_archive_of_an_earlier_version_is_accepted_and_told(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    path = written(archive, a_whole_letter())
    (tmp_path / NAME).unlink()

    assert not check_archive(path, NO_KEYS, archive.manifest).is_noted


def test_another_archive_under_the_same_name_is_found(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    path, other = written(archive, a_whole_letter()), written(archive, a_whole_letter())
    path.write_bytes(other.read_bytes())

    with pytest.raises(CorruptFile, match="not the file that was written"):
        check_archive(path, NO_KEYS, archive.manifest)


def test_an_archive_that_came_back_from_before_an_erasure_is_found(tmp_path: Path) -> None:
    archive, letters = Archive(tmp_path), [a_whole_letter() for _ in range(2)]
    path = written(archive, *letters)
    before = path.read_bytes()
    erase(archive, letters[0])
    path.write_bytes(before)

    with pytest.raises(CorruptFile, match="before letters were erased"):
        check_archive(path, NO_KEYS, archive.manifest)


@pytest.mark.parametrize("torn", [b'{"name":"letters-1"', b'{"name":"letters-1","letters":1,"sha256":"ab"}'])
def test_a_line_that_was_being_written_is_as_none(tmp_path: Path, torn: bytes) -> None:
    archive = Archive(tmp_path)
    first = written(archive, a_whole_letter())
    with (tmp_path / NAME).open("ab") as file:
        file.write(torn)

    second = written(archive, a_whole_letter())

    assert set(archive.manifest.entries()) == {first.name, second.name}


def test_a_manifest_that_is_damaged_is_told(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    written(archive, a_whole_letter())
    (tmp_path / NAME).write_bytes(b"\xff\n")

    with pytest.raises(CorruptFile, match="list of archives"):
        archive.manifest.entries()
