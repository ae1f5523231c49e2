"""What a file of ours stands on: the kind of file system, how much room it has, who may read it."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

import msgspec

_MOUNTS = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
_ELSEWHERE = frozenset({
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "ncpfs", "coda", "virtiofs", "gpfs"),
    *("fuse.sshfs", "fuse.glusterfs", "glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.cephfs"),
})  # fmt: skip
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108  they are looked for, not written to


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """The file system under a path, or under the nearest folder above it that exists."""

    device: int
    kind: str | None
    """As the system names it, such as `ext4`; None: it does not tell."""
    free: int
    """Bytes that this user may still write."""
    total: int

    @property
    def in_memory(self) -> bool:
        """What is there is gone when the machine stops."""
        return self.kind in _IN_MEMORY

    @property
    def elsewhere(self) -> bool:
        """Over a network, where locks and syncs do not always mean what SQLite takes them for."""
        return self.kind in _ELSEWHERE


def ground_of(path: Path) -> Ground:
    """OSError if nobody may look there."""
    there = nearest(path)
    found, room = there.stat(), os.statvfs(there)
    size = room.f_frsize or room.f_bsize
    return Ground(
        device=found.st_dev,
        kind=_kind(there),
        free=room.f_bavail * size,
        total=room.f_blocks * size,
    )


def nearest(path: Path) -> Path:
    """Itself, or the nearest folder above it that exists, without links."""
    found = path.absolute()
    while not found.exists() and found != found.parent:
        found = found.parent
    return found.resolve()


def is_temporary(path: Path) -> bool:
    """In a folder that is emptied by the system, at a start or after some days."""
    folders = {each.resolve() for each in (*_TEMPORARY, Path(tempfile.gettempdir()))}
    return not folders.isdisjoint(nearest(path).parents) or nearest(path) in folders


def open_to(path: Path) -> str:
    """`everybody`, `its group`, or empty if its owner alone may read or change it. OSError if it is not there."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o007:
        return "everybody"
    return "its group" if mode & 0o070 else ""


def kind_in(mounts: str, path: Path) -> str | None:
    """Of the mount that the path is on, by the text of /proc/self/mountinfo; of several at one place the last."""
    deepest, kind = -1, None
    for line in mounts.splitlines():
        own, _, system = line.partition(" - ")
        fields, told = own.split(), system.split()
        if len(fields) < 5 or not told:  # noqa: PLR2004  the fifth is where it is mounted
            continue
        at = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4]))
        depth = len(at.parts)
        if depth >= deepest and path.is_relative_to(at):
            deepest, kind = depth, told[0]
    return kind


def _kind(path: Path) -> str | None:
    try:
        return kind_in(_MOUNTS.read_text(), path)
    except OSError:  # a system without /proc
        return None
