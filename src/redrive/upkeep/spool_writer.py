"""Appends records to the live segment of one process, and says of each whether it is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.errors import NotDurable, RedriveError
from redrive.privacy.encryption.file_keys import NO_KEYS
from redrive.upkeep.spool_record import OPENING_BYTES
from redrive.upkeep.spool_segment import LiveSegment, look

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from redrive.privacy.encryption.file_keys import FileKeys

_GO_ON = "the message is not acknowledged and comes again"


class PendingRecord:
    """On its way to the disk. Not durable unless somebody says so."""

    def __init__(self, record: bytes) -> None:
        self.record = record
        self.durable = False
        self.error: NotDurable | None = None


class SpoolWriter:
    """For one thread."""

    def __init__(self, folder: Path, max_bytes: int, keys: FileKeys = NO_KEYS) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._keys = keys
        self._live: LiveSegment | None = None
        self._unsynced: list[PendingRecord] = []

    def append(self, group: Sequence[PendingRecord]) -> None:
        """Each is durable, or has its error; one sync for all of them. Raises nothing."""
        used: int | None = None
        for each in group:
            try:
                used = look(self._folder).bytes if used is None else used
                used = self._write(each, used)
            except Exception as error:  # noqa: BLE001  whatever went wrong with it, it is not durable
                each.error = self._explain(error)
            else:
                self._unsynced.append(each)
        self._sync()

    def seal(self) -> None:
        """Ends the live segment, if there is one, so that it can be replayed."""
        if self._live is not None:
            self._sync()
            self._live.close()
            self._live = None

    def _write(self, each: PendingRecord, used: int) -> int:
        """How much is used after it."""
        self._check_room(used, OPENING_BYTES + len(each.record))  # before a segment is made for it
        segment = self._usable_segment()
        whole = segment.framed(each.record)
        self._check_room(used, len(whole))
        segment.write(whole)
        return used + len(whole)

    def _check_room(self, used: int, more: int) -> None:
        if used + more > self._max_bytes:
            raise NotDurable(
                f"the spool holds {used} of {self._max_bytes} bytes and has no room for this letter",
                remedy=f"bring the store back so that the spool drains, or raise its limit; {_GO_ON}",
            )

    def _usable_segment(self) -> LiveSegment:
        if self._live is not None and not self._live.usable:
            self.seal()
        if self._live is None:
            self._live = LiveSegment.create(self._folder, self._keys)
        return self._live

    def _sync(self) -> None:
        waiting, self._unsynced = self._unsynced, []
        if self._live is None or not waiting:
            return
        try:
            self._live.sync()
        except Exception as error:  # noqa: BLE001  as above
            for each in waiting:
                each.error = self._explain(error)
        else:
            for each in waiting:
                each.durable = True

    def _explain(self, error: Exception) -> NotDurable:
        if isinstance(error, NotDurable):
            return error
        remedy = error.remedy if isinstance(error, RedriveError) else "free some space or repair the disk under it"
        explained = NotDurable(
            f"the spool in {self._folder} cannot be written: {error}", remedy=f"{remedy}; {_GO_ON}"
        )
        explained.__cause__ = error
        return explained
