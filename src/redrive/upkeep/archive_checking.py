"""Reads archives from beginning to end, to know that they can be read before they have to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from redrive.errors import CorruptFile
from redrive.upkeep.archive_file import read_archive
from redrive.upkeep.archive_manifest import Standing
from redrive.upkeep.archive_sealing import sealed_by

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.privacy.encryption.file_keys import FileKeys
    from redrive.upkeep.archive import Archive
    from redrive.upkeep.archive_manifest import Manifest, Noted


class SoundArchive(NamedTuple):
    path: Path
    letters: int
    kek_id: str | None
    """Of the key that opens it; None: it is not sealed."""
    is_noted: bool = True
    """The manifest knows it."""


def check_archive(path: Path, keys: FileKeys, manifest: Manifest | None = None) -> SoundArchive:
    """CorruptFile if it is not what was written, KeyMissing if nobody here can tell."""
    letters = sum(1 for _ in read_archive(path, keys))
    standing = Standing.AS_NOTED if manifest is None else manifest.standing(path)
    if standing is Standing.OUTDATED:
        raise CorruptFile(
            f"the archive {path} is as it was before letters were erased from it",
            remedy="approve that erasure again: `redrive erase list` shows it",
        )
    if standing is Standing.CHANGED:
        raise CorruptFile(
            f"the archive {path} is not the file that was written", remedy="bring it back from a copy"
        )
    return SoundArchive(path, letters, _kek_of(path), standing is not Standing.UNKNOWN)


def missing_from(archive: Archive) -> list[Noted]:
    """Archives that were written, and are not there."""
    there = {path.name for path in archive.files()}
    entries = archive.manifest.entries()
    return [each for name, each in sorted(entries.items()) if name not in there and not each.gone]


def _kek_of(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return sealed_by(stream)
    except OSError as error:
        raise CorruptFile(f"the archive {path} cannot be read: {error.strerror or error}") from error
