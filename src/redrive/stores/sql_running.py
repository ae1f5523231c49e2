"""Redrive runs in a store on SQL. What happens is decided in the sql_runs* modules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from redrive.clock import new_id
from redrive.dead_letter import Actor
from redrive.errors import Undecided
from redrive.run_request import check_key
from redrive.stores import (
    sql_assuming,
    sql_redrive,
    sql_runs,
    sql_runs_doubt,
    sql_runs_letting_go,
    sql_runs_outcomes,
    sql_runs_rules,
    sql_runs_taking,
)
from redrive.stores.sql_claiming import Claiming
from redrive.stores.sql_searching import INDEXED_FIRST
from redrive.stores.sql_selection import needs_index, page_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.clock import Clock
    from redrive.dead_letter import Claim, Happening
    from redrive.run import Approval, LetterOutcome, Run, RunChange, RunPlan, Settled, Taken
    from redrive.stores.sql_ledger import Ledger
    from redrive.stores.sql_runs_recounting import Recounting

T = TypeVar("T")


class SqlRunning(ABC):
    _clock: Clock
    _ledger: Ledger
    _recounting: Recounting

    @abstractmethod
    async def _change(self, unit: Callable[[Connection], T], letters: int = 1) -> T:
        """Runs the unit, which changes about so many letters, in one durable transaction."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    @abstractmethod
    def _now(self, connection: Connection) -> datetime:
        """The clock that all who share the store go by."""

    @abstractmethod
    async def index(self, *, at_most: int = ...) -> int: ...

    async def create_run(
        self, plan: RunPlan, *, by: Actor, approval: Approval | None = None, key: str | None = None
    ) -> Run:
        sql_runs.check(plan)
        if key is not None:
            check_key(key)
        run_id = new_id()
        if needs_index(plan.selection):
            await self.index(at_most=INDEXED_FIRST)

        def unit(connection: Connection) -> Run:
            made = partial(sql_runs.create, connection, run_id, plan, by=by, approval=approval, key=key)
            return made(now=self._now(connection), ledger=self._ledger)

        try:
            return await self._change(unit, 0)
        except Undecided:  # it was made or it was not: its id tells
            return await self._change(unit, 0)

    async def keyed_run(self, key: str) -> Run | None:
        count = self._recounting.progress_of
        return await self._read(lambda connection: sql_runs.keyed(connection, key, count))

    async def run(self, run_id: str, *, exact: bool = False) -> Run | None:
        count = sql_runs_outcomes.progress_of if exact else self._recounting.progress_of
        return await self._read(lambda connection: sql_runs.find(connection, run_id, count))

    async def runs(self, *, active: bool = False, limit: int = 50, after: str | None = None) -> list[Run]:
        count = self._recounting.progress_of
        find = partial(sql_runs.find_all, count=count, active=active, limit=page_size(limit), after=after)
        return await self._read(find)

    async def change_run(self, run_id: str, change: RunChange, *, by: Actor, seen: datetime | None = None) -> Run:
        def unit(connection: Connection) -> Run:
            changed = partial(sql_runs.change, connection, run_id, change, by=by, seen=seen)
            return changed(now=self._now(connection), ledger=self._ledger)

        return await self._change(unit, 0)

    async def take(self, run_id: str, *, owner: str, at_most: int, lease: float) -> Taken:
        def unit(connection: Connection) -> Taken:
            now = self._now(connection)
            wanted = partial(sql_runs_taking.take, connection, run_id, owner=owner, at_most=at_most)
            return wanted(lease_until=now + timedelta(seconds=lease), now=now)

        return await self._change(unit, at_most)

    async def settle_together(self, settled: Sequence[Settled], *, by: Actor, decided: bool = False) -> int:
        now = self._clock.now()

        def unit(connection: Connection) -> int:
            changed = sql_redrive.settle(connection, settled, by=by, now=now)
            if decided:
                sql_runs_doubt.tell(connection, self._ledger, settled, changed, by=by, now=now)
            return len(changed)

        return await self._change(unit, len(settled))

    async def let_go(self, claims: Sequence[Claim], *, after: float = 0.0, unsent: bool = False) -> None:
        def unit(connection: Connection) -> None:
            now = self._now(connection)
            until = now + timedelta(seconds=after)
            sql_runs_letting_go.let_go(connection, claims, until=until, unsent=unsent, now=now)

        await self._change(unit, len(claims))

    async def in_doubt(self, run_id: str) -> int:
        return await self._read(
            lambda connection: sql_runs_doubt.number(connection, run_id, self._now(connection))
        )

    async def take_doubtful(
        self, run_id: str, *, owner: str, at_most: int, lease: float, by: Actor | None = None
    ) -> list[Claim]:
        size, actor = page_size(at_most), by or Actor(owner)

        def unit(connection: Connection) -> list[Claim]:
            now = self._now(connection)
            claiming = Claiming(owner, now + timedelta(seconds=lease), now, run_id)
            return sql_runs_doubt.take(connection, claiming, size, by=actor, ledger=self._ledger)

        return await self._change(unit, size)

    async def pass_stage(self, run_id: str, stage: int) -> bool:
        return await self._change(lambda connection: sql_runs.pass_stage(connection, run_id, stage), 0)

    async def recent_outcomes(self, run_id: str, number: int, *, since: datetime) -> tuple[int, int]:
        return await self._read(lambda connection: sql_runs_outcomes.recent(connection, run_id, number, since))

    async def outcomes(self, run_id: str, *, after: str = "", limit: int = 50) -> list[LetterOutcome]:
        size = page_size(limit)
        return await self._read(lambda connection: sql_runs_outcomes.outcomes(connection, run_id, after, size))

    async def run_history(self, run_id: str) -> list[Happening]:
        return await self._read(lambda connection: sql_runs.history(connection, run_id))

    async def newest_rule_run(self, rule: str) -> Run | None:
        count = self._recounting.progress_of
        return await self._read(lambda connection: sql_runs_rules.newest(connection, rule, count))

    async def create_rule_run(
        self, plan: RunPlan, *, by: Actor, behind: str | None, approval: Approval | None = None
    ) -> Run | None:
        sql_runs.check(plan)
        run_id = new_id()
        if needs_index(plan.selection):
            await self.index(at_most=INDEXED_FIRST)

        def unit(connection: Connection) -> Run | None:
            if not sql_runs_rules.is_behind(connection, plan.rule, behind):
                return None
            made = partial(sql_runs.create, connection, run_id, plan, by=by, approval=approval)
            return made(now=self._now(connection), ledger=self._ledger)

        return await self._change(unit, 0)

    async def assume(self, letter_ids: Sequence[str], *, sent_before: datetime, by: Actor) -> int:
        unit = partial(sql_assuming.assume, letter_ids=letter_ids, sent_before=sent_before, by=by)
        written = partial(unit, now=self._clock.now(), ledger=self._ledger)
        return await self._change(written, len(letter_ids))
