"""Finding letters in a store on SQL: pages, counts, known values, and the search index that they stand on.

Letters are indexed behind the intake. Who asks for free text, data or headers indexes first what still waits, up
to a bound; what waits beyond that is told by `search_backlog`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from redrive.stores import sql_count, sql_known_values, sql_read, sql_search_index
from redrive.stores.sql_secrets import BLIND_INDEX_CHECK, BLIND_INDEX_KEY
from redrive.stores.sql_selection import needs_index, page_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from redrive.access import Scope
    from redrive.dead_letter import DeadLetter
    from redrive.letter_query import Count, LetterQuery
    from redrive.search_terms import Field
    from redrive.statistics import KnownValue
    from redrive.stores.private import Private

T = TypeVar("T")

INDEXED_FIRST = 1000
"""Letters that a question may have to wait for."""


class SqlSearching(ABC):
    _private: Private | None

    @abstractmethod
    async def _secret(self, name: str, value: bytes | None = None) -> bytes:
        """The store's secret of that name; if there is none, that value or a random one, from now on."""

    @abstractmethod
    async def _write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction, durable when it returns. The unit may run more than once."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    async def find(self, query: LetterQuery) -> list[DeadLetter]:
        return await self._search(query, lambda connection: sql_read.find(connection, query))

    async def count(self, query: LetterQuery, *, at_most: int | None = None) -> Count:
        return await self._search(query, lambda connection: sql_count.count(connection, query, at_most))

    async def known_values(
        self, field: Field, beginning: str = "", limit: int = 50, *, within: Scope = None
    ) -> list[KnownValue]:
        size = page_size(limit)
        return await self._read(
            lambda connection: sql_known_values.known_values(connection, field, beginning, size, within)
        )

    async def index(self, *, at_most: int = sql_search_index.BATCH) -> int:
        if not await self._read(sql_search_index.is_waiting) and not await self._queue_outdated(at_most):
            return 0
        if self._private is not None and not self._private.is_ready:
            await self._make_blind_index(self._private)
        done = 0
        while done < at_most:
            batch = min(sql_search_index.BATCH, at_most - done)
            indexed = await self._write(partial(sql_search_index.index_waiting, at_most=batch))
            if not indexed:
                break
            done += indexed
        return done

    async def _make_blind_index(self, private: Private) -> None:
        """Its key is on record, with what tells those apart who have another secret beside it."""
        check = private.check_of(await self._secret(BLIND_INDEX_KEY))
        await self._secret(BLIND_INDEX_CHECK, check)
        await self._read(private.index)

    async def _queue_outdated(self, at_most: int) -> int:
        """Letters that were indexed without the store's privacy wait to be indexed with it."""
        if self._private is None or not await self._read(sql_search_index.is_outdated):
            return 0
        return await self._write(partial(sql_search_index.queue_outdated, at_most=at_most))

    async def search_backlog(self, *, within: Scope = None, outdated: bool = False) -> int:
        def unit(connection: Connection) -> int:
            waiting = sql_search_index.backlog(connection, within)
            anew = outdated and self._private is not None
            return waiting + sql_search_index.outdated(connection, within) if anew else waiting

        return await self._read(unit)

    async def _search(self, query: LetterQuery, unit: Callable[[Connection], T]) -> T:
        if not needs_index(query):
            return await self._read(unit)

        def if_nothing_waits(connection: Connection) -> T | None:
            return None if sql_search_index.is_waiting(connection) else unit(connection)

        found = await self._read(if_nothing_waits)
        if found is not None:
            return found
        await self.index(at_most=INDEXED_FIRST)
        return await self._read(unit)
