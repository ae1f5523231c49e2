"""The folder of archives: what retention takes out of the store is whole in here first (SD4).

1. A file is written under a name that ends in `.part`, synced, renamed and its folder synced. From then on it is
   not written again, unless letters of it are erased (archive_erasing.py). Crash before the rename: the part is
   thrown away by the next run.
2. It is read back from the disk, letter by letter, and compared with what the store gave. One that differs is
   renamed to end in `.damaged`, and nothing of it is purged.
3. It is noted in the manifest of the folder, so that one that is missing later is found out.

One process at a time writes here: it holds the folder's lock (flock), which the kernel frees when it dies.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from redrive import faults
from redrive.clock import new_id
from redrive.errors import CorruptFile, Refused, Unreachable
from redrive.privacy.encryption.file_keys import NO_KEYS
from redrive.upkeep.archive_file import ArchiveLines, digest_of, read_archive
from redrive.upkeep.archive_manifest import Manifest, Noted, sum_of
from redrive.upkeep.archive_packing import PART, PackedPart
from redrive.upkeep.archive_places import keep_copy
from redrive.upkeep.archive_sealing import SEALED_FOR
from redrive.upkeep.spool_segment import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from redrive.dead_letter import DeadLetter, Version
    from redrive.privacy.encryption.file_keys import FileKeys
    from redrive.upkeep.archive_places import ArchivePlace

_NAME = re.compile(r"letters-\d{8}T\d{6}Z-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl\.gz(?:\.sealed)?")
_DAMAGED, _LOCK, _SEALED = ".damaged", ".lock", ".sealed"
_REMEDY = "nothing of it was purged; make room, or name another folder in [retention] archive"


class Archive:
    """`keys`: whether new files are sealed, and what opens those that are; plain ones are read in any case.
    `copies`: where every file has to be as well, before anything of it is purged.
    """

    def __init__(self, folder: Path, keys: FileKeys = NO_KEYS, copies: ArchivePlace | None = None) -> None:
        self._folder = folder
        self.keys = keys
        self.copies = copies
        self.manifest = Manifest(folder)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refused if another process writes here. What a dead one left half written is thrown away."""
        try:
            make_folder(self._folder)
            descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            self._fail(self._folder, error)
        try:
            self._take(descriptor)
            yield
        finally:
            os.close(descriptor)

    def files(self) -> list[Path]:
        """Every whole file, newest first."""
        if not self._folder.is_dir():
            return []
        return newest_first(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))

    def set_aside(self) -> list[Path]:
        """Files that were not what was written. Nothing of them was purged because of them."""
        if not self._folder.is_dir():
            return []
        return sorted(self._folder.glob(f"letters-*{_DAMAGED}"))

    def read(self, path: Path) -> Iterator[DeadLetter]:
        """Every letter of a file that is sound and whose key is known."""
        return read_archive(path, self.keys)

    def note(self, path: Path, letters: int) -> None:
        """The manifest names the file when it returns. Safe to repeat."""
        try:
            if path.name not in self.manifest.entries():
                self.manifest.note(Noted(name=path.name, letters=letters, sha256=sum_of(path)))
        except OSError as error:
            self._fail(path, error)
        faults.point("archive.noted")

    def forget(self, name: str) -> None:
        """The manifest does not miss it any more."""
        noted = self.manifest.entries().get(name)
        try:
            if noted is not None:
                self.manifest.note(replace(noted, gone=True))
        except OSError as error:
            self._fail(self._folder / name, error)

    def keep_copy(self, path: Path) -> None:
        """Where copies are asked for, one is there and right when it returns. Safe to repeat."""
        if self.copies is not None:
            noted = self.manifest.entries().get(path.name)
            keep_copy(path, self.copies, outdated=() if noted is None else noted.replaces)
            faults.point("archive.copied")

    def begin(self, at: datetime, *, by: str) -> NewArchive:
        ending = _SEALED if self.keys.seals else ""
        path = self._folder / f"letters-{at:%Y%m%dT%H%M%SZ}-{new_id()}.jsonl.gz{ending}"
        try:
            return NewArchive(path, at, by, self.keys)
        except OSError as error:
            self._fail(path, error)

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"another process is archiving into {self._folder}", remedy="wait until it has ended"
            ) from None
        for part in self._folder.glob(f"*{PART}"):
            part.unlink(missing_ok=True)

    @staticmethod
    def _fail(path: Path, error: OSError) -> NoReturn:
        raise _unwritable(path, error) from error


class NewArchive:
    """A file that is being written. For one thread at a time."""

    def __init__(self, path: Path, at: datetime, by: str, keys: FileKeys = NO_KEYS) -> None:
        self.path = path
        self.versions: list[Version] = []
        """The letters it holds, as they were when they were put in."""
        self._digests: dict[str, bytes] = {}
        self._keys = keys
        key = keys.new(SEALED_FOR) if keys.seals else None
        self._lines = ArchiveLines()
        self._part = PackedPart(path, packed_at=at.timestamp(), key=key)
        self._part.write(self._lines.head(written_at=at, by=by))

    def add(self, letter: DeadLetter) -> bool:
        """False, and it is not in the file, if no reader would take a line that long."""
        line = self._lines.letter(letter)
        if line is None:
            return False
        try:
            self._part.write(line)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self._digests[letter.id] = digest_of(letter)
        self.versions.append(letter.version)
        return True

    def finish(self) -> None:
        """Durable under its name when it returns."""
        try:
            self._part.write(self._lines.end())
            self._part.sync()
            self._part.rename()
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def read_back(self) -> None:
        """CorruptFile, and the file is set aside, unless every letter in it is what was put in."""
        try:
            self._compare()
        except CorruptFile:
            self.path.rename(self.path.with_name(self.path.name + _DAMAGED))
            raise

    def _compare(self) -> None:
        forget_pages(self.path)
        found = {letter.id: digest_of(letter) for letter in read_archive(self.path, self._keys)}
        if found != self._digests:
            raise CorruptFile(f"the archive {self.path} does not hold what was written", remedy=_REMEDY)

    def abandon(self) -> None:
        """Throws away what is not finished. Safe to repeat, and after `finish`."""
        self._part.abandon()


def is_archive(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """Archives by their names, which begin with the time; other files behind them, in their order."""
    given = list(paths)
    archives = [path for path in given if _NAME.fullmatch(path.name)]
    others = [path for path in given if not _NAME.fullmatch(path.name)]
    return [*sorted(archives, key=lambda path: path.name, reverse=True), *others]


def forget_pages(path: Path) -> None:
    """So that it is the disk that is read, not what is still in memory. Where that cannot be had: as it is."""
    if hasattr(os, "posix_fadvise"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> Unreachable:
    return Unreachable(f"cannot write the archive {path}: {error.strerror or error}", remedy=_REMEDY)
