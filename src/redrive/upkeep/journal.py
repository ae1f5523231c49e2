"""Against messages that kill their process: a durable count of probable deaths.

A handler that ends the process (a segmentation fault, the memory limit, `os._exit`) leaves no exception to act
on; its message comes back and kills the next process, for ever. So:

1. A delivery marked as redelivered may be such a message. Before its handler runs, `begin` counts one probable
   death, durably, and gives the count: the first redelivery makes it 1. `deaths` only looks.
2. If the process lives on, whatever the handler did, `clear` forgets the count. If the message waits in memory for
   another attempt, `take_back` forgets only that it was begun.
3. If it does not, the next redelivery makes it one more. At MAX_DEATHS the message is quarantined unhandled.

Counts expire after a week. The processes of one host share the file. The journal is a safety net and must not
be what stops consumption: a damaged file is moved aside as `.corrupt-<time>`, and counting starts anew.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, TypeVar

from redrive.clock import Clock, SystemClock
from redrive.errors import CorruptFile
from redrive.group_commit import GroupCommit
from redrive.upkeep.journal_file import JournalFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

KEPT_SECONDS = 7 * 86400.0

_EXPIRE = "DELETE FROM probable_deaths WHERE at < ?"
_COUNT = """
INSERT INTO probable_deaths (identity, deaths, at) VALUES (?, 1, ?)
ON CONFLICT (identity) DO UPDATE SET deaths = deaths + 1, at = excluded.at
RETURNING deaths
"""
_LOWER = "UPDATE probable_deaths SET deaths = deaths - 1 WHERE identity = ?"
_NO_MORE = "DELETE FROM probable_deaths WHERE identity = ? AND deaths <= 0"
_CLEAR = "DELETE FROM probable_deaths WHERE identity = ?"
_KNOWN = "SELECT deaths FROM probable_deaths WHERE identity = ?"


class Journal:
    """`path` may be `:memory:`. Raises Unreachable when the file cannot be written (full disk, no permission)."""

    def __init__(self, path: str | Path, *, clock: Clock | None = None) -> None:
        self._path = str(path)
        self._clock = clock or SystemClock()
        self._open()

    async def begin(self, identity: str) -> int:
        """One more probable death of this message, durable when it returns, and how many there are now."""
        key, now = _key(identity), self._clock.now().timestamp()

        def count(connection: sqlite3.Connection) -> int:
            connection.execute(_EXPIRE, (now - KEPT_SECONDS,))
            ((deaths,),) = connection.execute(_COUNT, (key, now)).fetchall()
            return int(deaths)

        return await self._run(count)

    async def deaths(self, identity: str) -> int:
        """How many are counted so far; 0 for a message that `begin` has not seen."""
        key = _key(identity)

        def look(connection: sqlite3.Connection) -> int:
            found = connection.execute(_KNOWN, (key,)).fetchone()
            return 0 if found is None else int(found[0])

        return await self._run(look)

    async def take_back(self, identity: str) -> None:
        """The last `begin` did not end in a death; those before it may have."""
        key = _key(identity)

        def lower(connection: sqlite3.Connection) -> None:
            connection.execute(_LOWER, (key,))
            connection.execute(_NO_MORE, (key,))

        await self._run(lower)

    async def clear(self, identity: str) -> None:
        """The process outlived the message: it killed nobody."""
        key = _key(identity)
        await self._run(lambda connection: connection.execute(_CLEAR, (key,)).rowcount)

    async def close(self) -> None:
        await self._writer.close()

    async def _run(self, unit: Callable[[sqlite3.Connection], T]) -> T:
        if self._file.moved:
            await self._replace(self._writer)
        writer = self._writer
        try:
            return await writer.run(unit)
        except CorruptFile:
            await self._replace(writer)
            return await self._writer.run(unit)

    async def _replace(self, writer: GroupCommit[sqlite3.Connection]) -> None:
        if writer is self._writer:  # else another task was first
            self._open()
            await writer.close()

    def _open(self) -> None:
        self._file = JournalFile(self._path, self._clock)
        self._writer: GroupCommit[sqlite3.Connection] = GroupCommit(
            "journal",
            self._file.connect,
            control=sqlite3.Connection.execute,
            disconnect=sqlite3.Connection.close,
            explain=self._file.explain,
        )


def _key(identity: str) -> bytes:
    return identity.encode("utf-8", "surrogatepass")  # an identity may hold what is not valid Unicode
