"""The dead-letter store on SQL: every promise of the protocol, on two methods that a driver writes."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from redrive.stores import sql_change, sql_groups, sql_read, sql_record, sql_redrive, sql_secrets, sql_statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.clock import Clock
    from redrive.control import RedriveTicket
    from redrive.dead_letter import (
        Actor,
        Claim,
        DeadLetter,
        Entry,
        FailureGroup,
        Recorded,
        Status,
        Transition,
    )
    from redrive.letter_query import LetterQuery
    from redrive.message import Message
    from redrive.statistics import HandlerTally, Statistics

T = TypeVar("T")

_KEY_BYTES = 32


class SqlStore(ABC):
    """What happens is decided in the sql_* modules, by plain functions of a connection and the time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._key: bytes | None = None

    @abstractmethod
    async def _write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction, durable when it returns. The unit may run more than once."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    @abstractmethod
    async def close(self) -> None: ...

    async def record(self, entry: Entry) -> tuple[str, Recorded]:
        now = self._clock.now()
        return await self._write(lambda connection: sql_record.record(connection, entry, now))

    async def claim(self, letter_ids: Sequence[str], *, owner: str, lease: float) -> list[Claim]:
        now = self._clock.now()
        until = now + timedelta(seconds=lease)
        return await self._write(
            lambda connection: sql_redrive.claim(connection, letter_ids, owner=owner, lease_until=until, now=now)
        )

    async def settle(self, claim: Claim, outcome: Transition, *, by: Actor) -> bool:
        now = self._clock.now()
        return await self._write(lambda connection: sql_redrive.settle(connection, claim, outcome, by=by, now=now))

    async def confirm(self, ticket: RedriveTicket, *, by: Actor) -> bool:
        now = self._clock.now()
        return await self._write(lambda connection: sql_redrive.confirm(connection, ticket, by=by, now=now))

    async def change(
        self, letter_ids: Sequence[str], transition: Transition, *, by: Actor, how: str = "by hand"
    ) -> Mapping[str, Status | None]:
        now = self._clock.now()
        return await self._write(
            lambda connection: sql_change.change(connection, letter_ids, transition, by=by, how=how, now=now)
        )

    async def revise(self, letter_id: str, message: Message, *, base: int, by: Actor) -> int:
        now = self._clock.now()
        return await self._write(
            lambda connection: sql_change.revise(connection, letter_id, message, base=base, by=by, now=now)
        )

    async def purge(self, letter_ids: Sequence[str], *, by: Actor) -> Mapping[str, Status | None]:
        now = self._clock.now()
        return await self._write(lambda connection: sql_change.purge(connection, letter_ids, by=by, now=now))

    async def get(self, letter_id: str) -> DeadLetter | None:
        return await self._read(lambda connection: sql_read.get(connection, letter_id))

    async def find(self, query: LetterQuery) -> list[DeadLetter]:
        return await self._read(lambda connection: sql_read.find(connection, query))

    async def groups(self, *, queue: str | None = None, limit: int = 50) -> list[FailureGroup]:
        size = sql_read.page_size(limit)
        return await self._read(lambda connection: sql_groups.list_groups(connection, queue, size))

    async def statistics(self, *, older_than: datetime | None = None) -> Statistics:
        return await self._read(lambda connection: sql_statistics.statistics(connection, older_than))

    async def tally(self, tallies: Sequence[HandlerTally]) -> None:
        if tallies:
            await self._write(lambda connection: sql_statistics.tally(connection, tallies))

    async def signing_key(self) -> bytes:
        if self._key is None:
            name = sql_secrets.SIGNING_KEY
            self._key = await self._read(lambda connection: sql_secrets.find_secret(connection, name))
        if self._key is None:
            new, now = secrets.token_bytes(_KEY_BYTES), self._clock.now()
            self._key = await self._write(lambda connection: sql_secrets.keep_secret(connection, name, new, now))
        return self._key
