"""Letters are taken out of archives for good. The folder is the caller's alone meanwhile (`Archive.alone`).

1. Every archive is read, and so are copies that have no archive here.
2. One that holds letters of the person is written anew without them: the other lines as they stand, synced, and
   read back from the disk.
   Crash here: a part, thrown away by the next one; the archive is as it was.
3. The manifest is told the new sum, and those that it replaces.
   Crash here: the archive is as it was, and the manifest knows it as outdated.
4. The new file is renamed into the place of the old one, and the folder synced.
   Crash here: the copy is as it was; it is found to differ by whoever goes on, or by the next retention.
5. The copy is replaced, and compared.

Each step is safe to repeat. Whatever cannot be read or reached is left as it is, and named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from redrive import faults
from redrive.errors import CorruptFile, RedriveError, Unreachable
from redrive.imports import ARCHIVE, Bad, read
from redrive.upkeep.archive import forget_pages, is_archive
from redrive.upkeep.archive_file import ArchiveLines, digest_of, read_archive, reading, sound_lines
from redrive.upkeep.archive_manifest import Noted, Standing, sum_in, sum_of
from redrive.upkeep.archive_packing import PackedPart
from redrive.upkeep.archive_sealing import SEALED_FOR, sealed_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redrive.dead_letter import DeadLetter
    from redrive.upkeep.archive import Archive
    from redrive.upkeep.archive_places import ArchivePlace


class Left(NamedTuple):
    """What was not reached, and what a person can do about it."""

    what: str
    remedy: str


class HeldInArchives(NamedTuple):
    files: dict[Path, frozenset[str]]
    """Archives that hold letters of the person, with their ids."""
    left: tuple[Left, ...]

    @property
    def ids(self) -> frozenset[str]:
        return frozenset().union(*self.files.values())


class ArchiveErasing:
    """`is_theirs`: whether a letter is about the person."""

    def __init__(self, archive: Archive, is_theirs: Callable[[DeadLetter], bool]) -> None:
        self._archive = archive
        self._is_theirs = is_theirs

    def look(self) -> HeldInArchives:
        files: dict[Path, frozenset[str]] = {}
        left: list[Left] = []
        for path in self._archive.files():
            try:
                found = frozenset(each.id for each in self._archive.read(path) if self._is_theirs(each))
            except RedriveError as error:
                left.append(Left(str(error), "set its key, or bring it back from a copy; else delete the file"))
                continue
            if found:
                files[path] = found
        aside = (f"{path} was set aside as damaged, and was not searched" for path in self._archive.set_aside())
        left += (Left(what, "delete the file") for what in aside)
        return HeldInArchives(files, (*left, *self._copies_alone()))

    def erase(self, path: Path) -> int:
        """How many letters the archive has lost. Unreachable, and it is as it was, if it cannot be written."""
        try:
            return self._erase(path)
        except OSError as error:
            raise Unreachable(
                f"cannot write the archive {path} anew: {error.strerror or error}",
                remedy="nothing was taken out of it; make room, and approve the erasure again",
            ) from error

    def bring_copies_up_to_date(self) -> list[Left]:
        """Every copy of an archive of ours is the same as the archive, but for those that are named."""
        place = self._archive.copies
        if place is None:
            return []
        try:
            there = set(place.names())
            for path in self._archive.files():
                if path.name in there and _sum_there(place, path.name) != sum_of(path):
                    self._replace_copy(place, path)
        except RedriveError as error:
            return [Left(f"copies of archives could not be brought up to date: {error}", error.remedy)]
        return []

    def _replace_copy(self, place: ArchivePlace, path: Path) -> None:
        if self._archive.manifest.standing(path) not in (Standing.AS_NOTED, Standing.UNKNOWN):
            raise CorruptFile(f"the archive {path} is not what was noted", remedy="see `redrive retention verify`")
        place.replace(path)
        if _sum_there(place, path.name) != sum_of(path):
            raise CorruptFile(f"the copy of {path} is not what was written", remedy="take the copy away")

    def _erase(self, path: Path) -> int:
        with path.open("rb") as file:
            is_sealed = sealed_by(file) is not None
        key = self._archive.keys.new(SEALED_FOR) if is_sealed else None
        part = PackedPart(path, packed_at=path.stat().st_mtime, key=key)
        try:
            return self._rewrite(path, part)
        finally:
            part.abandon()

    def _rewrite(self, path: Path, part: PackedPart) -> int:
        kept, gone, before = self._write_others(path, part)
        part.sync()
        forget_pages(part.part)
        if {each.id: digest_of(each) for each in read_archive(part.part, self._archive.keys)} != kept:
            raise CorruptFile(f"{part.part} does not hold what was written", remedy="look at the disk")
        faults.point("archive.checked")
        self._archive.manifest.note(self._noted(path, part, len(kept), before + gone))
        faults.point("archive.replacing")
        part.rename()
        faults.point("archive.replaced")
        return gone

    def _write_others(self, path: Path, part: PackedPart) -> tuple[dict[str, bytes], int, int]:
        """The digests of those that stay, how many do not, and how many had gone before."""
        lines, kept, gone = ArchiveLines(), dict[str, bytes](), 0
        with reading(path, self._archive.keys) as reader:
            for line, letter in sound_lines(reader):
                if not kept and not gone:
                    part.write(lines.again(reader.head, is_letter=False))
                if self._is_theirs(letter):
                    gone += 1
                else:
                    kept[letter.id] = digest_of(letter)
                    part.write(lines.again(line))
        part.write(lines.end(erased=reader.erased + gone))
        return kept, gone, reader.erased

    def _noted(self, path: Path, part: PackedPart, letters: int, erased: int) -> Noted:
        last = self._archive.manifest.entries().get(path.name)
        older = () if last is None else (*last.replaces, last.sha256)
        new, now = sum_of(part.part), sum_of(path)
        replaces = tuple(dict.fromkeys(each for each in (*older, now) if each != new))
        return Noted(name=path.name, letters=letters, sha256=new, erased=erased, replaces=replaces)

    def _copies_alone(self) -> Iterator[Left]:
        """Copies whose archives are not here any more."""
        place, here = self._archive.copies, {path.name for path in self._archive.files()}
        if place is None:
            return
        try:
            for name in sorted(each for each in place.names() if is_archive(each) and each not in here):
                yield from self._copy_alone(place, name)
        except Unreachable as error:
            yield Left(
                f"copies of archives were not searched: {error}", "bring the place back, and approve it again"
            )

    def _copy_alone(self, place: ArchivePlace, name: str) -> Iterator[Left]:
        number, bad = 0, 0
        with place.open(name) as stream:
            for each in read(stream, format=ARCHIVE, keys=self._archive.keys):
                if isinstance(each, Bad):
                    bad += 1
                else:
                    number += self._is_theirs(each.letter)  # type: ignore[arg-type]  # archives hold whole letters
        if number or bad:
            what = f"holds {number} letters of that person" if number else "cannot be read to its end"
            yield Left(f"the copy {name}, whose archive is not here, {what}", "delete the copy")


def _sum_there(place: ArchivePlace, name: str) -> str:
    with place.open(name) as stream:
        return sum_in(stream)
