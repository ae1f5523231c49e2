"""What is ours on disks: whether it outlives the machine, whether there is room, and who may read it."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from redrive.disk import ground_of, is_temporary, nearest, open_to
from redrive.finding import ok, problem, unknown, warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from redrive.disk import Ground
    from redrive.finding import Finding

_HARDLY_ANY = 64 * 2**20
_LITTLE = 2**30
_LITTLE_SHARE = 0.05
_MIB = 2**20


class Holds(Enum):
    LETTERS = "letters"
    """Messages, or what is left of them: losing it loses them."""
    SECRET = "secret"  # noqa: S105  the kind of thing it is
    """Without it what others hold cannot be read or checked."""
    NOTES = "notes"
    """It begins anew if it is lost."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder of ours, whether it is there yet or not."""

    name: str
    """As a sentence begins: `the spool`."""
    path: Path
    holds: Holds
    setting: str
    """Which one names it."""
    grows: int = 0
    """Bytes that it should still have room for."""
    sqlite: bool = False
    told_elsewhere: bool = False
    """Whether it can be written is told by another look."""
    spills: str = ""
    """What it takes the place of when that has no room: they should not lie on one disk."""


def examine_disks(kept: Sequence[Kept]) -> list[Finding]:
    grounds: dict[str, Ground] = {}
    found: list[Finding] = []
    for each in kept:
        try:
            grounds[each.name] = ground_of(each.path)
            found += _place(each, grounds[each.name])
        except OSError as error:
            what = f"{each.name}, {each.path}, cannot be looked at: {error.strerror}"
            found.append(unknown("disk", what, "let this user look into the folders above it"))
    found += _room(kept, grounds)
    found += _together(kept, grounds)
    if found:
        return found
    free = min((each.free for each in grounds.values()), default=0)
    return [ok("disk", f"everything has a disk that lasts, and {_mib(free)} of room or more")]


def _place(kept: Kept, ground: Ground) -> Iterator[Finding]:
    shown = f"{kept.name}, {kept.path},"
    if not kept.told_elsewhere and not _usable(kept.path):
        yield problem(
            "writable", f"{shown} cannot be written", f"let this user write there, or set {kept.setting}"
        )
    if ground.in_memory:
        told = problem if kept.holds is not Holds.NOTES else warn
        what = f"{shown} is in memory ({ground.kind}): gone when the machine stops"
        yield told("in-memory", what, f"name a place on a disk in {kept.setting}")
    elif is_temporary(kept.path):
        what = f"{shown} is in a folder for temporary files, which the system empties"
        yield warn("temporary", what, f"name another place in {kept.setting}, such as below /var/lib")
    if kept.sqlite and ground.elsewhere:
        what = f"{shown} is on a network file system ({ground.kind}), whose locks and syncs SQLite cannot trust"
        yield problem("network-disk", what, f"name a place on a local disk in {kept.setting}, or use PostgreSQL")
    elif kept.sqlite and ground.kind is None:
        what = f"this system does not tell on what kind of file system {kept.path} is"
        yield unknown("network-disk", what, "see that it is a local one")
    yield from _readers(kept, shown)


def _readers(kept: Kept, shown: str) -> Iterator[Finding]:
    if not kept.path.exists():
        return  # whoever makes it makes it for itself alone
    readers = open_to(kept.path)
    if readers == "everybody" or (readers and kept.holds is Holds.SECRET):
        mode = "700" if kept.path.is_dir() else "600"
        yield warn("file-access", f"{shown} can be read or changed by {readers}", f"chmod {mode} {kept.path}")


def _room(kept: Iterable[Kept], grounds: Mapping[str, Ground]) -> Iterator[Finding]:
    """One look per disk, at everything of ours that is on it."""
    disks: dict[int, list[Kept]] = {}
    for each in kept:
        if each.name in grounds:
            disks.setdefault(grounds[each.name].device, []).append(each)
    for on_it in disks.values():
        ground = grounds[on_it[0].name]
        names = ", ".join(each.name for each in on_it)
        what = f"{_mib(ground.free)} of {_mib(ground.total)} are free on the disk of {names}"
        wanted = sum(each.grows for each in on_it)
        if ground.free < _HARDLY_ANY:
            yield problem("disk-space", what, "free some space before nothing can be kept any more")
        elif ground.free < min(_LITTLE, ground.total * _LITTLE_SHARE):
            yield warn("disk-space", what, "free some space, or move what is ours to a larger disk")
        elif ground.free < wanted:
            remedy = "free some space, or move what is ours to a larger disk"
            yield warn("disk-space", f"{what}, which may take {_mib(wanted)} more", remedy)


def _together(kept: Sequence[Kept], grounds: Mapping[str, Ground]) -> Iterator[Finding]:
    for each in kept:
        first = grounds.get(each.spills)
        own = grounds.get(each.name)
        if first is not None and own is not None and first.device == own.device:
            what = f"{each.name} is on the disk of {each.spills}: when that is full, neither takes a letter"
            yield warn("one-disk", what, f"name a place on another disk in {each.setting}")


def _usable(path: Path) -> bool:
    """It can be written, or made where it should be."""
    if path.exists():
        return os.access(path, os.W_OK | (os.X_OK if path.is_dir() else 0))
    above = nearest(path)
    return above.is_dir() and os.access(above, os.W_OK | os.X_OK)


def _mib(size: int) -> str:
    return f"{size / _MIB:,.0f} MiB"
