"""Reads archives from beginning to end, to know that they can be read before they have to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from redrive.errors import CorruptFile
from redrive.upkeep.archive_file import read_archive
from redrive.upkeep.archive_sealing import sealed_by

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.privacy.encryption.file_keys import FileKeys


class SoundArchive(NamedTuple):
    path: Path
    letters: int
    kek_id: str | None
    """Of the key that opens it; None: it is not sealed."""


def check_archive(path: Path, keys: FileKeys) -> SoundArchive:
    """CorruptFile if it is not what was written, KeyMissing if nobody here can tell."""
    letters = sum(1 for _ in read_archive(path, keys))
    return SoundArchive(path, letters, _kek_of(path))


def _kek_of(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return sealed_by(stream)
    except OSError as error:
        raise CorruptFile(f"the archive {path} cannot be read: {error.strerror or error}") from error
