"""Copies of archives in another folder: a second disk, or one that is mounted from elsewhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn
from urllib.parse import unquote, urlsplit

from redrive import faults
from redrive.errors import ConfigurationError, NotFound, Unreachable
from redrive.upkeep.archive import forget_pages
from redrive.upkeep.spool_segment import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable

_PART = ".part"


class FolderPlace:
    """`file:///FOLDER`. It has to be there: a disk that is not mounted must not be taken for an empty one."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.netloc or not parts.path.startswith("/") or parts.path == "/":
            raise ConfigurationError(
                "a folder for copies of archives is written as file:///srv/copies",
                remedy="give its whole path in retention.copy_to",
            )
        self._folder = Path(unquote(parts.path))

    def put(self, path: Path) -> None:
        try:
            is_there = (self._folder / path.name).exists()
        except OSError as error:
            self._fail(error)
        if not is_there:
            self.replace(path)

    def replace(self, path: Path) -> None:
        there = self._folder / path.name
        part = there.with_name(f"{there.name}.{os.getpid()}{_PART}")
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with path.open("rb") as source, os.fdopen(descriptor, "wb") as target:
                shutil.copyfileobj(source, target)
                target.flush()
                os.fsync(target.fileno())
            faults.point("archive.copy_synced")
            part.rename(there)
            sync_folder(self._folder)
        except OSError as error:
            _without(part.unlink)
            self._fail(error)

    def open(self, name: str) -> BinaryIO:
        try:
            forget_pages(self._folder / name)
            return (self._folder / name).open("rb")
        except FileNotFoundError:
            raise NotFound(f"there is no copy of {name}") from None
        except OSError as error:
            self._fail(error)

    def names(self) -> list[str]:
        try:
            return [each.name for each in self._folder.iterdir() if each.is_file() and each.suffix != _PART]
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> NoReturn:
        raise Unreachable(
            f"cannot use {self._folder} for copies of archives: {error.strerror or error}",
            remedy="nothing was purged without its copy; mount it, make it, or name another in retention.copy_to",
        ) from error


def _without(remove: Callable[[], None]) -> None:
    try:
        remove()
    except OSError:
        return  # it was never made, or the disk is away
