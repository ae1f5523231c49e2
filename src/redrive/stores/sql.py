"""The dead-letter store on SQL: every promise of the protocol, on two methods that a driver writes."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from redrive.errors import UsageError
from redrive.run import Settled
from redrive.stores import (
    sql_analyses,
    sql_change,
    sql_claiming,
    sql_counters,
    sql_import,
    sql_lanes,
    sql_numbers,
    sql_preview,
    sql_read,
    sql_record,
    sql_redrive,
    sql_retention,
    sql_scope,
    sql_secrets,
    sql_statistics,
    sql_transitions,
    sql_whole,
)
from redrive.stores.folding import Folding
from redrive.stores.private import Private, lent
from redrive.stores.sealing import Seals
from redrive.stores.sql_accounts import SqlAccounts
from redrive.stores.sql_alerting import SqlAlerting
from redrive.stores.sql_clock_notes import SqlClockNotes
from redrive.stores.sql_data_keys import SqlDataKeys
from redrive.stores.sql_duties import SqlDuties
from redrive.stores.sql_encrypting import SqlEncrypting
from redrive.stores.sql_environment import SqlEnvironment
from redrive.stores.sql_erasing import SqlErasing
from redrive.stores.sql_grouping import SqlGrouping
from redrive.stores.sql_insights import SqlInsights
from redrive.stores.sql_ledger import Ledger
from redrive.stores.sql_ledgering import SqlLedgering
from redrive.stores.sql_running import SqlRunning
from redrive.stores.sql_runs_recounting import Recounting
from redrive.stores.sql_searching import SqlSearching
from redrive.stores.sql_selection import page_size

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.access import Scope
    from redrive.clock import Clock
    from redrive.control import RedriveTicket
    from redrive.dead_letter import (
        Actor,
        Claim,
        DeadLetter,
        Entry,
        Recorded,
        Status,
        Transition,
        Version,
    )
    from redrive.keeping import Ended, EndedCount, Limits
    from redrive.ledger import LedgerKey
    from redrive.letter_query import Count, LetterQuery
    from redrive.message import Message
    from redrive.preview import Overview
    from redrive.statistics import (
        EventTypeCount,
        HandlerTally,
        HourlyRate,
        ResolutionTime,
        Statistics,
        StoreNumbers,
        TopError,
    )
    from redrive.stores.private import Privacy
    from redrive.stores.sealing import Encryption

T = TypeVar("T")

_KEY_BYTES = 32


class SqlStore(
    SqlSearching,
    SqlGrouping,
    SqlInsights,
    SqlRunning,
    SqlLedgering,
    SqlAccounts,
    SqlEnvironment,
    SqlEncrypting,
    SqlDuties,
    SqlClockNotes,
    SqlErasing,
    SqlAlerting,
):
    """What happens is decided in the sql_* modules, by plain functions of a connection and the time."""

    def __init__(
        self,
        clock: Clock,
        ledger_key: LedgerKey | None = None,
        privacy: Privacy | None = None,
        encryption: Encryption | None = None,
    ) -> None:
        self._clock = clock
        self._private = None if privacy is None else Private(privacy)
        self._data_keys = SqlDataKeys(self._view, self._transact)
        self._seals = None if encryption is None else Seals(encryption, self._data_keys)
        self._ledger = Ledger(ledger_key)
        self._key: bytes | None = None
        self._folding = Folding(lambda: self._write(_fold), clock)
        self._recounting = Recounting(clock)

    @abstractmethod
    async def close(self) -> None:
        """Begins with `await self._folding.close()`."""

    @abstractmethod
    async def _transact(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in a transaction, durable when it returns. It may be run twice."""

    @abstractmethod
    async def _view(self, unit: Callable[[Connection], T]) -> T:
        """Runs a unit that only reads: all that it sees is of one moment."""

    async def _write(self, unit: Callable[[Connection], T]) -> T:
        return await self._run(self._transact, self._belonging(unit, writes=True))

    async def _read(self, unit: Callable[[Connection], T]) -> T:
        return await self._run(self._view, self._belonging(unit, writes=False))

    async def _run(
        self,
        run: Callable[[Callable[[Connection], T]], Awaitable[T]],
        unit: Callable[[Connection], T],
        *,
        as_guest: bool = False,
    ) -> T:
        """The unit's connection knows the store's privacy and its encryption."""
        knowing = lent(self._private, unit)
        if self._seals is None:
            return await run(knowing)
        return await self._seals.run(run, knowing, as_guest=as_guest)

    async def _change(self, unit: Callable[[Connection], T], letters: int = 1) -> T:
        """As `_write`, for what changes so many letters."""
        done = await self._write(unit)
        self._folding.note(letters)
        return done

    async def _inside(self, connection: object, unit: Callable[[Connection], T]) -> T:  # noqa: ARG002  a driver's
        """Runs the unit in the transaction of a connection that is the caller's, if the database can."""
        raise UsageError(
            "this store cannot record in a transaction of yours",
            remedy="record without `connection`, or keep letters in the PostgreSQL database that you write to",
        )

    def _now(self, connection: Connection) -> datetime:  # noqa: ARG002  a server is asked by it
        """The clock that leases are measured by: one for all who share the store."""
        return self._clock.now()

    async def record(self, entry: Entry, *, connection: object | None = None) -> tuple[str, Recorded]:
        now = self._clock.now()

        def unit(ours: Connection) -> tuple[str, Recorded]:
            return sql_record.record(ours, entry, now)

        if connection is None:
            return await self._change(unit)
        ours = self._belonging(unit, writes=True)
        done = await self._run(lambda each: self._inside(connection, each), ours, as_guest=True)
        self._folding.note(1)
        return done

    async def record_together(self, entries: Sequence[Entry]) -> list[tuple[str, Recorded]]:
        now = self._clock.now()
        return await self._change(
            lambda connection: [sql_record.record(connection, entry, now) for entry in entries], len(entries)
        )

    async def claim(self, letter_ids: Sequence[str], *, owner: str, lease: float) -> list[Claim]:
        def unit(connection: Connection) -> list[Claim]:
            now = self._now(connection)
            claiming = sql_claiming.Claiming(owner, now + timedelta(seconds=lease), now)
            return sql_claiming.claim(connection, letter_ids, claiming)

        return await self._change(unit, len(letter_ids))

    async def settle(self, claim: Claim, outcome: Transition, *, by: Actor) -> bool:
        return bool(await self.settle_together([Settled(claim, outcome)], by=by))

    async def confirm(self, ticket: RedriveTicket, *, by: Actor) -> bool:
        now = self._clock.now()
        return await self._change(lambda connection: sql_redrive.confirm(connection, ticket, by=by, now=now))

    async def change(
        self, letter_ids: Sequence[str], transition: Transition, *, by: Actor, how: str = "by hand"
    ) -> Mapping[str, Status | None]:
        unit = partial(sql_change.change, letter_ids=letter_ids, transition=transition, by=by, how=how)
        written = partial(unit, now=self._clock.now(), ledger=self._ledger)
        return await self._change(written, len(letter_ids))

    async def revise(self, letter_id: str, message: Message, *, base: int, by: Actor) -> int:
        unit = partial(sql_change.revise, letter_id=letter_id, message=message, base=base, by=by)
        return await self._write(partial(unit, now=self._clock.now(), ledger=self._ledger))

    async def purge(self, which: Sequence[str | Version], *, by: Actor) -> Mapping[str, Status | None]:
        unit = partial(sql_change.purge, which=which, by=by, now=self._clock.now(), ledger=self._ledger)
        return await self._change(unit, len(which))

    async def ended(self, before: Limits, *, after: Version | None = None, limit: int) -> list[Ended]:
        return await self._read(lambda connection: sql_retention.ended(connection, before, after, limit))

    async def count_ended(self, before: Limits, *, sizes: bool = False) -> list[EndedCount]:
        return await self._read(lambda connection: sql_retention.count_ended(connection, before, sizes=sizes))

    async def restore_whole(self, whole: Sequence[DeadLetter], *, by: Actor) -> AbstractSet[str]:
        unit = partial(sql_import.restore, whole=whole, by=by, now=self._clock.now(), ledger=self._ledger)
        return await self._change(unit, len(whole))

    async def get(self, letter_id: str, *, within: Scope = None) -> DeadLetter | None:
        return await self._read(lambda connection: sql_read.get(connection, letter_id, within))

    async def inside(self, letter_ids: Sequence[str], within: Scope) -> set[str]:
        return await self._read(lambda connection: sql_scope.letters_inside(connection, letter_ids, within))

    async def whole(
        self, letter_ids: Sequence[str], *, story: bool = True, within: Scope = None
    ) -> AsyncGenerator[DeadLetter]:
        portions = await self._read(lambda connection: sql_whole.portions(connection, letter_ids, story=story))
        for portion in portions:
            read = partial(sql_whole.read, letter_ids=portion, story=story, within=within)
            for letter in await self._read(read):
                yield letter

    async def overview(
        self, selection: LetterQuery, *, at_most: int | None = None, quarantined: bool = False
    ) -> Overview:
        def unit(connection: Connection) -> Overview:
            return sql_preview.overview(connection, selection, at_most, quarantined=quarantined)

        return await self._search(selection, unit)

    async def count_older(
        self,
        selection: LetterQuery,
        limits: Mapping[str, datetime],
        *,
        at_most: int | None = None,
        quarantined: bool = False,
    ) -> Mapping[str, Count]:
        def unit(connection: Connection) -> Mapping[str, Count]:
            return sql_preview.count_older(connection, selection, limits, at_most, quarantined=quarantined)

        return await self._search(selection, unit)

    async def ahead(self, lane: str, *, of: str | None = None) -> str | None:
        return await self._read(lambda connection: sql_lanes.ahead(connection, lane, of))

    async def statistics(self, *, older_than: datetime | None = None, within: Scope = None) -> Statistics:
        return await self._read(lambda connection: sql_statistics.statistics(connection, older_than, within))

    async def top_errors(self, *, limit: int = 10, within: Scope = None) -> list[TopError]:
        size = page_size(limit)
        return await self._read(lambda connection: sql_analyses.top_errors(connection, size, within))

    async def error_rate(
        self, *, since: datetime | None = None, until: datetime | None = None, within: Scope = None
    ) -> list[HourlyRate]:
        last = until or self._clock.now()
        first = since or last - sql_analyses.USUAL_SPAN
        return await self._read(lambda connection: sql_analyses.error_rate(connection, first, last, within))

    async def by_event_type(self, *, within: Scope = None) -> list[EventTypeCount]:
        return await self._read(lambda connection: sql_analyses.by_event_type(connection, within))

    async def time_to_resolve(self, *, within: Scope = None) -> ResolutionTime:
        return await self._read(lambda connection: sql_analyses.time_to_resolve(connection, within))

    async def numbers(self) -> StoreNumbers:
        return await self._read(sql_numbers.numbers)

    async def tally(self, tallies: Sequence[HandlerTally]) -> None:
        if tallies:
            await self._write(lambda connection: sql_statistics.tally(connection, tallies))

    async def signing_key(self) -> bytes:
        if self._key is None:
            self._key = await self._secret(sql_secrets.SIGNING_KEY)
        return self._key

    async def _secret(self, name: str, value: bytes | None = None) -> bytes:
        found = await self._read(lambda connection: sql_secrets.find_secret(connection, name))
        if found is not None:
            return found
        new, now = value or secrets.token_bytes(_KEY_BYTES), self._clock.now()
        return await self._write(lambda connection: sql_secrets.keep_secret(connection, name, new, now))


def _fold(connection: Connection) -> int:
    return max(sql_counters.fold(connection), sql_transitions.fold(connection))
