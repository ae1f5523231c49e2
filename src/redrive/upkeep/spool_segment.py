"""Segments: the files of a spool, and who may touch them.

A segment is written by one process only, which holds its lock (flock) as long as it appends. Whoever gets the
lock of a segment later, its own process or another after a death, is its one adopter: replays it and deletes it.

Sealed segments have a name of their own: a process of a version that cannot read them leaves them alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from redrive import faults
from redrive.clock import new_id
from redrive.privacy.encryption.file_keys import NO_KEYS
from redrive.upkeep.spool_record import SEALED_FOR, Scan, opening, scan, seal_record

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.privacy.encryption.file_keys import FileKey, FileKeys

SEGMENT_BYTES = 4 * 1024 * 1024
"""A larger one gets no further record: after a crash, a segment is replayed from its beginning."""

_NAME = re.compile(r"spool-\d+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.seg(?:\.sealed)?")
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class FolderState(NamedTuple):
    bytes: int
    """Of every file, corrupt ones included: what counts against the limit."""
    segment_bytes: int
    segments: int
    corrupt: int


class LiveSegment:
    """The segment this process appends to. For one thread."""

    def __init__(self, path: Path, descriptor: int, key: FileKey | None = None) -> None:
        self.path = path
        self.size = 0
        self.durable = 0
        """How much of it a sync has covered."""
        self.broken = False
        """An error made the file suspect: nothing is appended any more, what is durable stays so."""
        self._descriptor = descriptor
        self._key = key
        self._mark = _mark(path.name)
        self._opening = opening(self._mark, sealed=key is not None)

    @classmethod
    def create(cls, folder: Path, keys: FileKeys = NO_KEYS) -> LiveSegment:
        """Its name is durable and its lock is ours when it returns. It is sealed if `keys` say so."""
        key = keys.new(SEALED_FOR) if keys.seals else None
        make_folder(folder)
        while True:
            path = folder / f"spool-{os.getpid()}-{new_id()}.seg{'' if key is None else '.sealed'}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            segment = cls(path, descriptor, key)
            try:
                if _lock(descriptor):
                    sync_folder(folder)
                    return segment
            except BaseException:
                segment.close()
                raise
            segment.close()  # an adopter saw it in this very moment and removes it: take another name

    @property
    def usable(self) -> bool:
        """Not broken, not full, and still in its folder: what is written to a deleted file is gone."""
        return not self.broken and self.size < SEGMENT_BYTES and os.fstat(self._descriptor).st_nlink > 0

    def framed(self, record: bytes) -> bytes:
        """The record as this segment has it: sealed, if the segment is."""
        return self._opening + (record if self._key is None else seal_record(record, self._key, self._mark))

    def write(self, whole: bytes) -> None:
        """All of a framed record or nothing of it. Durable only after `sync`."""
        try:
            faults.point("spool.before_write")
            self._write_all(whole)
        except BaseException as error:
            self._take_back(error)
            raise
        self.size += len(whole)

    def sync(self) -> None:
        """After a failure nobody knows what reached the disk, and a second sync would claim it did: broken."""
        try:
            faults.point("spool.before_sync")
            _sync_data(self._descriptor)
        except BaseException:
            self.broken = True
            raise
        self.durable = self.size
        faults.point("spool.after_sync")

    def close(self) -> None:
        """Leaves it to whoever replays. A segment in which nothing became durable is removed."""
        with contextlib.suppress(OSError):  # nothing is lost by it: what is durable stays durable
            if not self.durable:
                self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def _write_all(self, data: bytes) -> None:
        rest, at = memoryview(data), self.size
        while rest:
            limit = faults.point("spool.write")
            written = os.pwrite(self._descriptor, rest[:limit], at)  # on a full disk: fewer, and no error
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            rest, at = rest[written:], at + written

    def _take_back(self, error: BaseException) -> None:
        # A full disk is a sound disk: once the torn tail is cut off, the segment can be used again.
        if not (isinstance(error, OSError) and error.errno in _DISK_FULL):
            self.broken = True
        try:
            os.ftruncate(self._descriptor, self.size)
        except OSError:
            self.broken = True


class AdoptedSegment:
    """A segment that nobody else appends to or replays while this object is open."""

    def __init__(self, path: Path, descriptor: int, found: Scan) -> None:
        self.path = path
        self.entries = found.entries
        self.damage = found.damage
        self._descriptor: int | None = descriptor

    @classmethod
    def adopt(cls, path: Path, keys: FileKeys = NO_KEYS) -> AdoptedSegment | None:
        """None if somebody else has it, or had it and it is gone. KeyMissing if it is sealed by an unknown key."""
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            if _lock(descriptor):
                with open(descriptor, "rb", closefd=False) as file:  # the lock is on this descriptor
                    return cls(path, descriptor, scan(file.read(), _mark(path.name), keys))
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def remove(self) -> None:
        """Damage is durable in `<segment>.corrupt` before the segment goes. Repeating it changes nothing."""
        if self.damage:
            self._keep_damage()
        faults.point("spool.before_delete")
        self.path.unlink()
        sync_folder(self.path.parent)

    def close(self) -> None:
        """Gives the lock back. Safe to repeat."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()  # a replay cancelled while the thread adopts never sees the segment: its lock must not stay

    def _keep_damage(self) -> None:
        kept = self.path.with_name(f"{self.path.name}.corrupt")
        half = self.path.with_name(f"{self.path.name}.corrupt.tmp")
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(self.damage)
            file.flush()
            os.fsync(file.fileno())
        half.replace(kept)
        sync_folder(self.path.parent)


def segments(folder: Path) -> list[Path]:
    """Every segment, oldest first: the UUIDs in the names sort by time."""
    if not folder.is_dir():
        return []
    named = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return [path for _, path in sorted((match[1], path) for match, path in named if match)]


def look(folder: Path) -> FolderState:
    total = in_segments = count = corrupt = 0
    try:
        listing = os.scandir(folder)
    except FileNotFoundError:
        return FolderState(0, 0, 0, 0)
    with listing:
        for file in listing:
            size = _size(file)
            total += size
            if size and _NAME.fullmatch(file.name):
                in_segments, count = in_segments + size, count + 1
            corrupt += file.name.endswith(".corrupt")
    return FolderState(total, in_segments, count, corrupt)


def make_folder(folder: Path) -> None:
    """For this user only, and durable: each new folder's name is synced in the one above it."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Whether the lock is ours and the file still exists: it may have been deleted while we opened it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor).st_nlink > 0


def _mark(name: str) -> bytes:
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is not the name of a spool segment")
    return bytes.fromhex(match[1].replace("-", ""))


def _size(file: os.DirEntry[str]) -> int:
    try:
        return file.stat(follow_symlinks=False).st_size
    except FileNotFoundError:  # another process deleted it just now
        return 0
