"""Places for copies of archives keep their contract, and what is in the box says what it needs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from redrive.errors import ConfigurationError, Unreachable
from redrive.testing.archive_place_contract import ArchivePlaceContract
from redrive.upkeep.archive_places import ArchivePlace, keep_copy, open_place


class TestFolderPlace(ArchivePlaceContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> ArchivePlace:
        (tmp_path / "copies here").mkdir()
        return open_place(f"file://{tmp_path}/copies%20here")

    def test_a_copy_is_for_its_owner_alone(self, place: ArchivePlace, file: Path, tmp_path: Path) -> None:
        file.write_bytes(b"letters")
        keep_copy(file, place)

        [copy] = (tmp_path / "copies here").iterdir()
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A disk that is not mounted must not be taken for an empty one."""
    place = open_place(f"file://{tmp_path}/away")
    (tmp_path / "file").write_bytes(b"letters")

    for use in (lambda: place.put(tmp_path / "file"), place.names):
        with pytest.raises(Unreachable, match="away"):
            use()
    assert not (tmp_path / "away").exists()


@pytest.mark.parametrize("url", ["file://host/folder", "file:///", "file:folder", "s3://bucket", "nothing"])
def test_what_names_no_place_is_refused_with_the_remedy(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        open_place(url)
    assert refused.value.remedy
