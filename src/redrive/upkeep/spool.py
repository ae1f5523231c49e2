"""Where letters go when the store is away: the last sink before "do not acknowledge".

1. `append` writes a record to this process's live segment and syncs it. Appends that wait together share a sync.
   What fails is cut off again; a segment with an I/O error is left as it is and a new one begun.
2. When the store is back, `replay` closes the live segment (the next append begins another) and takes every
   segment whose lock is free, oldest first: its own, and those of processes that died.
3. Each entry goes to the sink, which commits it under its identity. A segment is deleted when all of its entries
   were taken. One that the sink never takes keeps its segment, and holds up no other entry.
4. Damaged bytes are kept in `<segment>.corrupt` and reported, never skipped in silence.
5. With encryption on, a segment is sealed with a data key of its own. One whose key is missing is kept as it is.

Nothing records how far a segment is replayed, so no such record can be wrong: after a crash or a sink that
failed, the segment is replayed from its beginning, and the store folds what it knows already (G3).
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from redrive import faults
from redrive.errors import KeyMissing, NotDurable, Unreachable
from redrive.privacy.encryption.file_keys import NO_KEYS
from redrive.upkeep.spool_record import encode_record
from redrive.upkeep.spool_segment import AdoptedSegment, look, segments
from redrive.upkeep.spool_writer import PendingRecord, SpoolWriter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from redrive.dead_letter import Entry
    from redrive.privacy.encryption.file_keys import FileKeys

T = TypeVar("T")

_WINDOW = 1000
"""Entries that are with the sink at the same time: as many as make two full transactions of a store."""


class ReplayReport(msgspec.Struct, frozen=True):
    replayed: int
    """Entries the sink took."""
    corrupt: int
    """Damaged stretches, now in files that end in `.corrupt`."""


class SpoolState(msgspec.Struct, frozen=True):
    """What lies in the folder, whichever process wrote it."""

    bytes: int
    """In segments: what waits to be replayed."""
    segments: int
    corrupt: int
    """Files with damaged bytes, for a person to look at."""
    folder: str = ""


class Spool:
    """One per process; several processes may share the folder.

    `max_bytes` limits all files of the folder together. Processes do not wait for each other to check it, so it
    may be exceeded by what the others append in the same moment. `keys`: whether new segments are sealed, and what
    opens those that are; plain ones are read in any case.
    """

    def __init__(self, folder: Path, *, max_bytes: int, keys: FileKeys = NO_KEYS) -> None:
        self._folder = folder
        self._keys = keys
        self._writer = SpoolWriter(folder, max_bytes, keys)
        self._waiting: deque[PendingRecord] = deque()
        # One thread does all work on files, so they need no lock inside the process. It is not one of the
        # shared pool, where handlers that hang could take every place.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="redrive-spool")
        self._closed = False

    async def append(self, entry: Entry) -> None:
        """Durable when it returns. NotDurable: it is not, and its message must not be acknowledged."""
        try:
            pending = PendingRecord(encode_record(entry))
        except Exception as error:
            raise NotDurable(
                f"the letter cannot be encoded: {error}",
                remedy="see the cause: no message of a broker should do this",
            ) from error
        self._waiting.append(pending)
        await self._in_thread(self._flush)  # or an earlier flush took it along, and this one finds nothing
        if not pending.durable:
            raise pending.error or NotDurable("the spool did not finish")

    async def replay(self, sink: Callable[[Entry], Awaitable[object]]) -> ReplayReport:
        """Gives every entry to `sink`, which makes it durable under its identity; several at a time, never two
        of one identity. Unreachable ends the replay at once. Any other error is its entry's own: the others are
        given to the sink all the same, and the first such error is raised at the end. Every segment of which an
        entry was not taken is kept.
        """
        replayed = corrupt = 0
        refusals: list[Exception] = []
        for path in await self._in_thread(self._sealed_segments):
            adopted = await self._in_thread(_adopt, path, self._keys)
            if adopted is None:
                continue
            try:
                refused = await _feed(adopted.entries, sink, careful=not replayed)
                removed = await self._in_thread(_remove, adopted, refused)
            finally:
                adopted.close()
            refusals += refused
            replayed += len(adopted.entries) - len(refused)
            corrupt += len(adopted.damage) if removed else 0
        if refusals:
            raise refusals[0]
        return ReplayReport(replayed, corrupt)

    def pending(self) -> SpoolState:
        """Cheap: one listing of the folder."""
        found = look(self._folder)
        return SpoolState(found.segment_bytes, found.segments, found.corrupt, str(self._folder.absolute()))

    async def close(self) -> None:
        """What was appended stays until it is replayed. Safe to repeat."""
        if self._closed:
            return
        await self._in_thread(self._writer.seal)
        self._closed = True
        self._thread.shutdown(wait=True)

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        if self._closed:
            raise NotDurable("the spool is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _flush(self) -> None:
        self._writer.append([self._waiting.popleft() for _ in range(len(self._waiting))])

    def _sealed_segments(self) -> list[Path]:
        self._writer.seal()
        return segments(self._folder)


async def _feed(
    entries: Sequence[Entry], sink: Callable[[Entry], Awaitable[object]], *, careful: bool
) -> list[Exception]:
    """What the sink said to those it did not take, one error each. Raises what concerns all of them."""
    away: list[Unreachable] = []

    async def give(entry: Entry) -> None:
        if away:  # somebody of the same window has found out
            raise away[0]
        try:
            await sink(entry)
        except Unreachable as error:
            away.append(error)
            raise
        faults.point("spool.after_replay")

    refused: list[Exception] = []
    for window in _windows(entries, careful=careful):
        outcomes = await asyncio.gather(*map(give, window), return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for error in errors:
            if isinstance(error, Unreachable) or not isinstance(error, Exception):
                raise error
            refused.append(error)
    return refused


def _windows(entries: Sequence[Entry], *, careful: bool) -> Iterator[list[Entry]]:
    """Entries that may go to the sink together. Careful: the first goes alone and finds out whether it works."""
    window: dict[str, Entry] = {}
    limit = 1 if careful else _WINDOW
    for entry in entries:
        if len(window) == limit or entry.identity in window:
            yield list(window.values())
            window, limit = {}, _WINDOW
        window[entry.identity] = entry
    if window:
        yield list(window.values())


def _adopt(path: Path, keys: FileKeys) -> AdoptedSegment | None:
    try:
        return AdoptedSegment.adopt(path, keys)
    except KeyMissing as error:
        _warn(
            "a spool segment is sealed with a key that is missing and is kept", segment=path.name, error=str(error)
        )
        return None
    except OSError as error:
        _warn("a spool segment cannot be read and is kept", segment=path.name, error=str(error))
        return None


def _remove(adopted: AdoptedSegment, refused: Sequence[Exception]) -> bool:
    """Whether it is gone. If not, it is replayed again the next time, which does no harm."""
    name = adopted.path.name
    if refused:
        _warn("letters of a spool segment were refused and it is kept", segment=name, refused=len(refused))
        return False
    try:
        adopted.remove()
    except OSError as error:
        _warn("a replayed spool segment cannot be deleted and is kept", segment=name, error=str(error))
        return False
    if adopted.damage:
        damaged = sum(map(len, adopted.damage))
        _warn("a spool segment was damaged", segment=name, damaged_bytes=damaged, kept=f"{name}.corrupt")
    return True


def _warn(event: str, **facts: object) -> None:
    import structlog  # noqa: PLC0415  slow to import, and needed only when something is wrong

    structlog.get_logger("redrive.spool").warning(event, **facts)
