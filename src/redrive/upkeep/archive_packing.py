"""How a file of the archive comes to its name: written beside it, synced, renamed, and its folder synced.

Crash before the rename: what is under the name, if anything, is as it was, and the part is thrown away by whoever
writes next. Behind the rename: the new file, whole.
"""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

from redrive import faults
from redrive.upkeep.archive_sealing import SealedWriter
from redrive.upkeep.spool_segment import sync_folder

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.privacy.encryption.file_keys import FileKey

PART = ".part"


class PackedPart:
    """Lines, packed, and sealed if there is a key. For one thread at a time; every OSError is the caller's."""

    def __init__(self, path: Path, *, packed_at: float, key: FileKey | None) -> None:
        self._path = path
        self.part = path.with_name(path.name + PART)
        descriptor = os.open(self.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._sealed = None if key is None else SealedWriter(self._file, key)
        under = self._sealed or self._file
        self._packed = gzip.GzipFile(fileobj=under, mode="wb", filename="", mtime=packed_at)

    def write(self, line: bytes) -> None:
        self._packed.write(line)

    def sync(self) -> None:
        """Nothing more is written; durable, under the name of a part."""
        self._packed.close()
        if self._sealed is not None:
            self._sealed.finish()
        self._file.flush()
        faults.point("archive.written")
        os.fsync(self._file.fileno())
        self._file.close()
        faults.point("archive.synced")

    def rename(self) -> None:
        """Durable under its own name, in the place of what was there."""
        self.part.rename(self._path)  # in the place of what is there, at once
        faults.point("archive.renamed")
        sync_folder(self._path.parent)

    def abandon(self) -> None:
        """Throws away what is not renamed. Safe to repeat."""
        for closing in (self._packed.close, self._file.close):
            try:
                closing()
            except OSError:
                continue  # a full disk again: the file goes in any case
        self.part.unlink(missing_ok=True)
