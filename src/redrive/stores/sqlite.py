"""The store on SQLite: one writer with group commit, readers beside it (WAL), no server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from redrive.clock import Clock, SystemClock
from redrive.errors import Unreachable
from redrive.group_commit import GroupCommit
from redrive.stores.sql import SqlStore
from redrive.stores.sqlite_file import SqliteFile, one_moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from redrive.ledger import LedgerKey
    from redrive.stores.private import Privacy
    from redrive.stores.sealing import Encryption

T = TypeVar("T")


class SqliteStore(SqlStore):
    """`sqlite:///redrive.db` is relative to the working folder, `sqlite:////var/lib/redrive.db` absolute,
    `sqlite:///:memory:` gone when closed. Opened on first use; several processes may use one file.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        ledger_key: LedgerKey | None = None,
        privacy: Privacy | None = None,
        encryption: Encryption | None = None,
    ) -> None:
        super().__init__(clock or SystemClock(), ledger_key, privacy, encryption)
        # What was plain before it was sealed must not be left in free pages.
        self._file = SqliteFile(url, wipes=encryption is not None)
        self._writer: GroupCommit[Connection] = GroupCommit(
            "store",
            self._file.connect,
            control=lambda connection, statement: connection.exec_driver_sql(statement),
            disconnect=lambda connection: connection.close(),
            explain=self._file.explain,
        )
        self._reads: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def close(self) -> None:
        await self._folding.close()
        self._closed = True
        await self._writer.close()
        await asyncio.gather(*self._reads, return_exceptions=True)
        self._file.dispose()

    async def _transact(self, unit: Callable[[Connection], T]) -> T:
        return await self._writer.run(unit)

    async def _view(self, unit: Callable[[Connection], T]) -> T:
        if self._file.in_memory:  # its one connection is the writer's
            return await self._writer.look(unit)
        if self._closed:
            raise Unreachable("the store is closed")
        reading = asyncio.ensure_future(asyncio.to_thread(self._look, unit))
        self._reads.add(reading)
        reading.add_done_callback(self._read_done)
        # A thread cannot be cancelled; `close` waits for it, so that no connection outlives the store.
        return await asyncio.shield(reading)

    def _read_done(self, reading: asyncio.Future[Any]) -> None:
        self._reads.discard(reading)
        if not reading.cancelled():
            reading.exception()  # taken note of, even if the caller has gone

    def _look(self, unit: Callable[[Connection], T]) -> T:
        try:
            with self._file.connect() as connection, one_moment(connection):
                return unit(connection)
        except Exception as error:
            explained = self._file.explain(error)
            if explained is error:
                raise
            raise explained from error
