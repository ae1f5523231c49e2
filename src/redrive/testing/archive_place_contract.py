"""The contract of `ArchivePlace`, for any driver: a test of it gives `place` and inherits the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from redrive.errors import CorruptFile, NotFound
from redrive.upkeep.archive_manifest import sum_of
from redrive.upkeep.archive_places import keep_copy

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.upkeep.archive_places import ArchivePlace

_NAME = "letters-20260301T030000Z-018f0000-0000-7000-8000-00000000000f.jsonl.gz"
_LARGE = bytes(range(256)) * 20_000


class ArchivePlaceContract:
    @pytest.fixture
    def place(self) -> ArchivePlace:
        raise NotImplementedError("a driver's test gives the place, empty")

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        (tmp_path / "written").mkdir()
        return tmp_path / "written" / _NAME

    @pytest.mark.parametrize("content", [b"", b"\x00", _LARGE], ids=["empty", "a byte", "large"])
    def test_what_was_put_is_given_back_byte_for_byte(
        self, place: ArchivePlace, file: Path, content: bytes
    ) -> None:
        file.write_bytes(content)

        keep_copy(file, place)

        with place.open(_NAME) as stream:
            assert stream.read() == content
        assert place.names() == [_NAME]

    def test_it_is_safe_to_repeat(self, place: ArchivePlace, file: Path) -> None:
        file.write_bytes(b"letters")
        keep_copy(file, place)
        keep_copy(file, place)

        assert place.names() == [_NAME]

    def test_another_content_under_the_same_name_is_found_and_not_written_over(
        self, place: ArchivePlace, file: Path
    ) -> None:
        file.write_bytes(b"letters")
        keep_copy(file, place)
        file.write_bytes(b"others")

        with pytest.raises(CorruptFile, match="not what was written"):
            keep_copy(file, place)
        with place.open(_NAME) as stream:
            assert stream.read() == b"letters"

    def test_what_is_replaced_is_there_alone_under_its_name(self, place: ArchivePlace, file: Path) -> None:
        file.write_bytes(b"letters")
        keep_copy(file, place)
        outdated = sum_of(file)
        file.write_bytes(b"fewer")

        keep_copy(file, place, outdated=[outdated])

        with place.open(_NAME) as stream:
            assert stream.read() == b"fewer"
        assert place.names() == [_NAME]

    def test_what_is_not_there_is_not_found(self, place: ArchivePlace) -> None:
        assert place.names() == []
        with pytest.raises(NotFound):
            place.open(_NAME)
