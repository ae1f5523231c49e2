"""The seam to where archives are kept beside the folder that they are written into: another disk, a bucket.

An archive is written and read back in the folder first, so that a place need only take a whole file, and give it
back. Its letters are purged when the place has it too, and has given back the same bytes.

A driver passes `redrive.testing.archive_place_contract`. Drivers sit in `DRIVERS`, imported on first use. The one
in the box is for folders; for S3-compatible buckets there is none yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol

from redrive.errors import CorruptFile
from redrive.registry import Driver, load_driver
from redrive.upkeep.archive_manifest import sum_in, sum_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


class ArchivePlace(Protocol):
    """For one thread at a time. Every method raises `Unreachable` when the place is away."""

    def put(self, path: Path) -> None:
        """The file is there under its name, whole and durable, when it returns. Safe to repeat. What is there
        under that name already is left as it is: `holds` tells whether it is the same.
        """
        ...

    def replace(self, path: Path) -> None:
        """As `put`, but in the place of what is there under that name: the one or the other, whatever happens."""
        ...

    def open(self, name: str) -> BinaryIO:
        """What is there under that name; NotFound if nothing is."""
        ...

    def names(self) -> list[str]:
        """Of every whole file that is there, in any order."""
        ...


DRIVERS: dict[str, Driver] = {"file": Driver("redrive.upkeep.folder_place", "FolderPlace")}


def open_place(url: str) -> ArchivePlace:
    place: ArchivePlace = load_driver("place for archives", url, DRIVERS)(url)
    return place


def keep_copy(path: Path, place: ArchivePlace, *, outdated: Collection[str] = ()) -> None:
    """The place has the very bytes of the file when it returns. CorruptFile if it gives back others; a copy with
    one of the `outdated` sums, from before letters of the file were erased, is replaced.
    """
    place.put(path)
    here, there = sum_of(path), _sum_there(place, path.name)
    if there != here and there in outdated:
        place.replace(path)
        there = _sum_there(place, path.name)
    if there != here:
        raise CorruptFile(
            f"the copy of the archive {path} is not what was written",
            remedy="nothing of it was purged; look at the place that [retention] copy_to names, and take the "
            "copy away",
        )


def _sum_there(place: ArchivePlace, name: str) -> str:
    with place.open(name) as stream:
        return sum_in(stream)
