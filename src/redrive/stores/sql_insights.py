"""What is looked at first, in a store on SQL: see `insight_store`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from redrive.stores import (
    sql_facets,
    sql_group_stories,
    sql_letter_relations,
    sql_seen_groups,
    sql_situation,
)
from redrive.stores.sql_selection import page_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.access import Scope
    from redrive.clock import Clock
    from redrive.dead_letter import DeadLetter
    from redrive.insights import (
        Arrivals,
        Facets,
        GroupAttempts,
        GroupRedrives,
        LetterRedrive,
        SeenGroup,
        Situation,
    )
    from redrive.letter_query import LetterQuery

T = TypeVar("T")


class SqlInsights(ABC):
    _clock: Clock

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    @abstractmethod
    async def _search(self, query: LetterQuery, unit: Callable[[Connection], T]) -> T:
        """As `_read`, with letters indexed before if the query needs it."""

    async def situation(self, since: datetime, until: datetime, *, within: Scope = None) -> Situation:
        now = self._clock.now()
        return await self._read(lambda connection: sql_situation.situation(connection, since, until, now, within))

    async def arrivals(self, since: datetime, until: datetime, *, groups: int, within: Scope = None) -> Arrivals:
        most = page_size(groups)
        return await self._read(lambda connection: sql_situation.arrivals(connection, since, until, most, within))

    async def seen_groups(
        self, since: datetime, until: datetime, *, limit: int, within: Scope = None
    ) -> list[SeenGroup]:
        size, now = page_size(limit), self._clock.now()
        return await self._read(
            lambda connection: sql_seen_groups.seen_groups(
                connection, since, until, limit=size, now=now, within=within
            )
        )

    async def group_attempts(self, group_id: str, *, within: Scope = None) -> GroupAttempts:
        return await self._read(lambda connection: sql_group_stories.group_attempts(connection, group_id, within))

    async def group_redrives(self, group_id: str, *, within: Scope = None) -> GroupRedrives:
        return await self._read(lambda connection: sql_group_stories.group_redrives(connection, group_id, within))

    async def samples(
        self, group_id: str, queue: str, *, number: int, largest: int, within: Scope = None
    ) -> tuple[Sequence[str], Sequence[str]]:
        size = page_size(number)
        return await self._read(
            lambda connection: sql_group_stories.samples(
                connection, group_id, queue, number=size, largest=largest, within=within
            )
        )

    async def facets(self, query: LetterQuery, *, at_most: int) -> Facets:
        return await self._search(query, lambda connection: sql_facets.facets(connection, query, at_most))

    async def related(self, letter_id: str, *, limit: int, within: Scope = None) -> list[DeadLetter]:
        size = page_size(limit)
        return await self._read(
            lambda connection: sql_letter_relations.related(connection, letter_id, size, within)
        )

    async def letter_redrives(self, letter_id: str, *, limit: int) -> list[LetterRedrive]:
        size = page_size(limit)
        return await self._read(
            lambda connection: sql_letter_relations.letter_redrives(connection, letter_id, size)
        )
