"""The seam to what remembers: twelve methods, each atomic alone, each safe to repeat.

A driver passes `redrive.testing.store_contract`. Drivers sit in `DRIVERS`, imported on first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from redrive.dead_letter import Status
from redrive.registry import Driver, load_driver

if TYPE_CHECKING:
    from redrive.control import RedriveTicket
    from redrive.dead_letter import (
        Actor,
        Claim,
        DeadLetter,
        Entry,
        FailureGroup,
        Recorded,
        Transition,
    )
    from redrive.message import Message

MAX_PAGE = 500


class LetterQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which letters: every field that is set must match."""

    ids: tuple[str, ...] | None = None
    status: Status | None = None
    queue: str | None = None
    handler: str | None = None
    type: str | None = None
    """Exception type: its full name or its last part."""
    group: str | None = None
    """A group's id or the beginning of one."""
    created_before: datetime | None = None
    created_after: datetime | None = None
    after: str | None = None
    """A letter's id: the page goes on behind it (newest first, so: older ones)."""
    limit: int = 50
    """At most MAX_PAGE."""


class HandlerTally(msgspec.Struct, frozen=True):
    """Attempts of one handler that ended since the last tally."""

    handler: str
    queue: str
    succeeded: int
    failed: int


class FailureRate(msgspec.Struct, frozen=True):
    """S2's FailureRate."""

    handler: str
    succeeded: int
    failed: int

    @property
    def rate(self) -> float:
        attempts = self.succeeded + self.failed
        return self.failed / attempts if attempts else 0.0


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """S2's DeadLetterStatistics and S0's monitor, at one moment."""

    total: int
    by_status: Mapping[str, int]
    by_queue: Mapping[str, int]
    """Open letters (PENDING and QUARANTINED) per queue; the next two count the same letters."""
    by_type: Mapping[str, int]
    reasons: Sequence[tuple[str, int]]
    """Error texts with everything that varies taken out, most frequent first."""
    failure_rates: Sequence[FailureRate]
    oldest: datetime | None
    """When the oldest open letter was recorded."""
    older: int
    """Open letters recorded before the moment asked for; 0 if none was given."""


class DeadLetterStore(Protocol):
    """Remembers. Every method is one transaction, raises `Unreachable` when the store is away, and may be
    repeated after an unknown outcome without changing anything twice.
    """

    async def record(self, entry: Entry) -> tuple[str, Recorded]:
        """The letter's id and what was done, durable when it returns.

        T1: a new letter, PENDING (QUARANTINED if `entry.quarantine`). T2: the identity is known: one more
        delivery, each failure kept once per (generation, attempt). T3: the ticket's redrive came back:
        the letter is PENDING again with its generation one higher, failures appended, claim released; beyond
        MAX_GENERATIONS it is QUARANTINED. The same ticket twice is T2.
        """
        ...

    async def claim(self, letter_ids: Sequence[str], *, owner: str, lease: float) -> list[Claim]:
        """T4 and T5 for each letter that is PENDING, T6 for each whose claim's lease has run out (same redrive
        id, fence one higher). Letters in any other state are left out. At most one live claim per letter (G5).
        """
        ...

    async def settle(self, claim: Claim, outcome: Transition, *, by: Actor) -> bool:
        """SENT (T7), REFUSED (T8; the third time QUARANTINED; `by.reason` is the error) or UNCLAIM (T16).
        False and nothing changed if the fence is not the current one or the letter is no longer REDRIVING.
        """
        ...

    async def confirm(self, ticket: RedriveTicket, *, by: Actor) -> bool:
        """T10: RESOLVED, how=confirmed, if this redrive is the letter's current one; may come before T7."""
        ...

    async def change(
        self, letter_ids: Sequence[str], transition: Transition, *, by: Actor, how: str = "by hand"
    ) -> Mapping[str, Status | None]:
        """One of `BY_HAND` for each letter whose status allows it, each with its audit row. Gives the ids that
        were NOT changed with their status (None: no such letter).
        """
        ...

    async def revise(self, letter_id: str, message: Message, *, base: int, by: Actor) -> int:
        """T17: a new immutable revision on top of `base`, and its number. The original stays.
        NotFound; TransitionRefused unless PENDING; Refused if `base` is no longer the current revision.
        """
        ...

    async def purge(self, letter_ids: Sequence[str], *, by: Actor) -> Mapping[str, Status | None]:
        """Removes letters that are RESOLVED or DISCARDED for good, body and failures too; the audit rows stay.
        Gives the ids that were not, as `change` does.
        """
        ...

    async def get(self, letter_id: str) -> DeadLetter | None:
        """The letter with every failure, revision and line of history. An unambiguous beginning of an id of
        at least eight characters will do.
        """
        ...

    async def find(self, query: LetterQuery) -> list[DeadLetter]:
        """One page, newest first, without failures, revisions and history."""
        ...

    async def groups(self, *, queue: str | None = None, limit: int = 50) -> list[FailureGroup]:
        """Groups with the most pending letters first, then the most recent."""
        ...

    async def statistics(self, *, older_than: datetime | None = None) -> Statistics: ...

    async def tally(self, tallies: Sequence[HandlerTally]) -> None:
        """Adds to what `statistics` calls failure rates. The one method that is not safe to repeat."""
        ...

    async def signing_key(self) -> bytes:
        """The secret that signs control headers: made once per store, the same for every process."""
        ...

    async def close(self) -> None: ...


DRIVERS: dict[str, Driver] = {
    "sqlite": Driver("redrive.stores.sqlite", "SqliteStore"),
}


def open_store(url: str, **options: Any) -> DeadLetterStore:
    store: DeadLetterStore = load_driver("store", url, DRIVERS)(url, **options)
    return store
