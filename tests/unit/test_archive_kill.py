"""F30: whoever writes archives, or erases letters from them, is killed between any two steps. Nobody else's letter
is lost, nothing half is under an archive's name, and whoever goes on brings it to its end.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from redrive import faults
from redrive.dead_letter import DeadLetter
from redrive.faults import POINTS
from redrive.upkeep.archive import Archive
from redrive.upkeep.archive_checking import check_archive, missing_from
from redrive.upkeep.archive_erasing import ArchiveErasing
from redrive.upkeep.archive_places import open_place
from support.whole_letters import a_whole_letter

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WRITING = ["archive.written", "archive.synced", "archive.renamed"]
COPYING = ["archive.noted", "archive.copy_synced", "archive.copied"]
ERASING = ["archive.checked", "archive.replacing", "archive.replaced"]


def test_every_point_of_archives_is_walked_here() -> None:
    assert {*WRITING, *COPYING, *ERASING} == {each for each in POINTS if each.startswith("archive.")}


def killed_at(point: str, work: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        faults.arm(f"{point}=kill9")
        try:
            work()
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"it never came to {point}"
    assert os.WTERMSIG(status) == signal.SIGKILL


class Ground:
    """A folder of archives, and one of their copies."""

    def __init__(self, folder: Path) -> None:
        self.copies = folder / "copies"
        self.copies.mkdir()
        self.archive = Archive(folder / "archive", copies=open_place(f"file://{self.copies}"))
        self.theirs = a_whole_letter()
        self.others = [a_whole_letter(), a_whole_letter()]

    def write(self) -> Path:
        with self.archive.alone():
            file = self.archive.begin(NOON, by="test")
            for letter in (self.others[0], self.theirs, self.others[1]):
                assert file.add(letter)
            file.finish()
            file.abandon()
            file.read_back()
            self.archive.note(file.path, 3)
            self.archive.keep_copy(file.path)
        return file.path

    def erase(self) -> None:
        with self.archive.alone():
            erasing = self.erasing()
            for path in erasing.look().files:
                erasing.erase(path)
            assert erasing.bring_copies_up_to_date() == []

    def erasing(self) -> ArchiveErasing:
        return ArchiveErasing(self.archive, lambda letter: letter.id == self.theirs.id)

    def held(self) -> list[DeadLetter]:
        return [letter for path in self.archive.files() for letter in self.archive.read(path)]

    def in_copies(self) -> list[DeadLetter]:
        return [letter for path in Archive(self.copies).files() for letter in self.archive.read(path)]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.mark.parametrize("point", [*WRITING, *COPYING])
def test_an_archive_that_is_being_written_is_whole_or_not_there(ground: Ground, point: str) -> None:
    killed_at(point, ground.write)

    is_there = point not in ("archive.written", "archive.synced")
    assert len(ground.held()) == (3 if is_there else 0)
    assert ground.in_copies() == (ground.held() if point == "archive.copied" else [])
    for path in ground.archive.files():  # as the next retention goes on
        ground.archive.note(path, 3)
        ground.archive.keep_copy(path)
        assert check_archive(path, ground.archive.keys, ground.archive.manifest).is_noted
    assert ground.in_copies() == ground.held()
    assert missing_from(ground.archive) == []
    ground.write()
    assert not list((ground.archive.files()[0].parent).glob("*.part"))


@pytest.mark.parametrize("point", ["archive.written", "archive.synced", *ERASING, "archive.copy_synced"])
def test_whoever_erases_loses_no_other_letter_and_can_go_on(ground: Ground, point: str) -> None:
    path = ground.write()
    killed_at(point, ground.erase)

    replaced = point in ("archive.replaced", "archive.copy_synced")
    expected = ground.others if replaced else [ground.others[0], ground.theirs, ground.others[1]]
    assert ground.held() == expected
    assert ground.theirs in ground.in_copies()

    ground.erase()
    assert ground.archive.files() == [path]
    assert ground.held() == ground.in_copies() == ground.others
    assert check_archive(path, ground.archive.keys, ground.archive.manifest).letters == 2
    assert not list(path.parent.glob("*.part"))


def test_a_retention_that_comes_between_archive_and_copy_replaces_the_outdated_copy(ground: Ground) -> None:
    path = ground.write()
    killed_at("archive.replaced", ground.erase)
    assert ground.theirs in ground.in_copies()

    ground.archive.keep_copy(path)

    assert ground.in_copies() == ground.others
