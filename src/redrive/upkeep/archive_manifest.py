"""Which archives there should be: one line of JSON for each that was written, appended and synced before anything
of it is purged. The last line of a name counts.

An archive is noted behind its file: crash between the two, and the file is there without a line, as those of
earlier versions are; the next run notes it. One that is written anew, because letters of it are erased, is noted
before it is renamed, with the sums of what it replaces: crash between the two, and the file has one of those.
"""

from __future__ import annotations

import hashlib
import os
from enum import StrEnum
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from redrive.errors import CorruptFile
from redrive.upkeep.spool_segment import sync_folder

if TYPE_CHECKING:
    from pathlib import Path

NAME = "manifest.jsonl"
_AT_ONCE = 1024 * 1024


class Noted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    letters: int
    sha256: str
    """Of the file, as it lies there."""
    erased: int = 0
    """Letters that were in it before."""
    replaces: tuple[str, ...] = ()
    """Sums of the same file, before letters of it were erased."""
    gone: bool = False
    """Somebody has taken it away, and says so."""


class Standing(StrEnum):
    AS_NOTED = "as noted"
    UNKNOWN = "unknown"
    """No line: an earlier version wrote it."""
    OUTDATED = "outdated"
    """As it was before letters of it were erased."""
    CHANGED = "changed"


class Manifest:
    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    def entries(self) -> dict[str, Noted]:
        """By their names. CorruptFile if a line cannot be read that has an end: one without was being written."""
        try:
            lines = self._path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error
        try:
            noted = [msgspec.json.decode(line, type=Noted) for line in lines if line]
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._unreadable("a line of it is damaged") from None
        return {each.name: each for each in noted}

    def note(self, entry: Noted) -> None:
        """Durable when it returns."""
        is_new = not self._path.exists()
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":  # whoever wrote it last was killed at it
                file.truncate(self._path.read_bytes().rfind(b"\n") + 1)
            file.write(msgspec.json.encode(entry) + b"\n")
            os.fsync(file.fileno())
        if is_new:
            sync_folder(self._path.parent)

    def standing(self, path: Path) -> Standing:
        """Of an archive that is there."""
        noted = self.entries().get(path.name)
        if noted is None:
            return Standing.UNKNOWN
        found = sum_of(path)
        if found == noted.sha256:
            return Standing.AS_NOTED
        return Standing.OUTDATED if found in noted.replaces else Standing.CHANGED

    def _unreadable(self, why: str) -> CorruptFile:
        return CorruptFile(
            f"the list of archives {self._path} cannot be read: {why}",
            remedy="look at the disk; move the file away, and archives are taken as they are found",
        )


def sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return sum_in(file)


def sum_in(stream: BinaryIO) -> str:
    digest = hashlib.sha256()
    while data := stream.read(_AT_ONCE):
        digest.update(data)
    return digest.hexdigest()
