"""Our own archives: each letter as it was, id and history included."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from redrive.imports.exported import completed
from redrive.imports.found import Bad, Found, refusal
from redrive.upkeep.archive_file import ArchiveReader, DamagedLine

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = b'{"redrive_archive"'
"""What every archive begins with."""


def read_archived(stream: BinaryIO) -> Iterator[Found | Bad]:
    """The letters of sound lines, even of a damaged file: each has a digest of its own."""
    try:
        for number, found in ArchiveReader(stream).letters():
            if isinstance(found, DamagedLine):
                yield refusal(number, found)
                continue
            try:
                yield Found(number, completed(found))
            except ValueError as error:
                yield refusal(number, error)
    except DamagedLine as damage:
        yield Bad(damage.number, f"the archive is not whole: {damage}")
