"""Groups in a store on SQL: looking at them, saying something about them, merging and splitting them.

Merges and splits take many short transactions, so that nobody waits long, whatever the groups hold. Each leaves a
state that is valid, and after a crash the same call again goes on where it stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from redrive.errors import NotFound, Refused
from redrive.insights import GroupQuery
from redrive.stores import sql_group_changes, sql_group_moves, sql_group_pages
from redrive.stores.expressions import LOT
from redrive.stores.sql_selection import page_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from redrive.access import Scope
    from redrive.clock import Clock
    from redrive.dead_letter import Actor, FailureGroup, Verdict
    from redrive.letter_query import Place
    from redrive.stores.sql_ledger import Ledger

T = TypeVar("T")


class SqlGrouping(ABC):
    _clock: Clock
    _ledger: Ledger

    @abstractmethod
    async def _change(self, unit: Callable[[Connection], T], letters: int = 1) -> T:
        """Runs the unit, which changes about so many letters, in one durable transaction."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    async def groups(
        self,
        *,
        queue: str | None = None,
        owner: str | None = None,
        verdict: Verdict | None = None,
        limit: int = 50,
        within: Scope = None,
    ) -> list[FailureGroup]:
        return await self.group_page(
            GroupQuery(queue=queue, owner=owner, verdict=verdict, limit=limit), within=within
        )

    async def group_page(self, query: GroupQuery, *, within: Scope = None) -> list[FailureGroup]:
        page, now = replace(query, limit=page_size(query.limit)), self._clock.now()
        return await self._read(
            lambda connection: sql_group_pages.find_groups(connection, page, now=now, within=within)
        )

    async def group(self, group_id: str, *, within: Scope = None) -> FailureGroup | None:
        now = self._clock.now()
        return await self._read(lambda connection: sql_group_pages.find_group(connection, group_id, now, within))

    async def annotate(
        self,
        group_id: str,
        *,
        owner: str | UnsetType | None = UNSET,
        verdict: Verdict | UnsetType | None = UNSET,
        note: str | UnsetType | None = UNSET,
        runbook: str | UnsetType | None = UNSET,
        by: Actor,
    ) -> FailureGroup:
        given = {"owner": owner, "verdict": verdict, "note": note, "runbook": runbook}
        said = {
            name: None if text is None else str(text)
            for name, text in given.items()
            if not isinstance(text, UnsetType)
        }
        unit = partial(sql_group_changes.annotate, group_id=group_id, said=said, by=by)
        current = await self._change(partial(unit, now=self._clock.now(), ledger=self._ledger), 0)
        return await self._existing(current)

    async def merge(self, into: str, others: Sequence[str], *, by: Actor) -> FailureGroup:
        made = partial(sql_group_changes.redirect, by=by, now=self._clock.now(), ledger=self._ledger)
        target, sources = await self._read(lambda connection: sql_group_changes.choose(connection, into, others))
        for source in sources:
            redirect = partial(made, source=source, target=target)
            try:
                while await self._change(redirect, 0):
                    pass
            except Refused:  # somebody else merged one of them meanwhile; what was redirected so far stays so
                await self._gather(source, target)
                raise
            await self._gather(source, target)
        return await self._existing(target)

    async def split(self, group_id: str, fingerprint: str, *, by: Actor) -> FailureGroup:
        unit = partial(sql_group_changes.split_off, group_id=group_id, fingerprint=fingerprint, by=by)
        whole, part = await self._change(partial(unit, now=self._clock.now(), ledger=self._ledger), 0)
        row = await self._read(lambda connection: sql_group_moves.row_of(connection, part))
        await self._move(partial(sql_group_moves.take_out, whole=whole, part=row))
        await self._change(lambda connection: sql_group_moves.settle(connection, [whole, part]), 0)
        return await self._existing(part)

    async def _gather(self, source: str, target: str) -> None:
        """Also from all that were ever merged into the target: an earlier merge may have been interrupted."""
        merged = await self._read(lambda connection: sql_group_moves.merged_into(connection, target))
        for each in dict.fromkeys((source, *merged)):
            await self._move(partial(sql_group_moves.sweep, source=each))

    async def _move(self, portion: Callable[..., Place | None]) -> None:
        reached: Place | None = None
        while (reached := await self._change(partial(portion, after=reached), LOT)) is not None:
            pass

    async def _existing(self, group_id: str) -> FailureGroup:
        found = await self.group(group_id)
        if found is None:
            raise NotFound(
                f"group {group_id} has no letters any more", remedy="`redrive groups` shows those that have"
            )
        return found
