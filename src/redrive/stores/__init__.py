"""The seam to what remembers: each method atomic alone, each safe to repeat. A driver on SQL writes two of them.

A driver passes `redrive.testing.store_contract`. Drivers sit in `DRIVERS`, imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from redrive.registry import Driver, load_driver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

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


class DeadLetterStore(Protocol):
    """Remembers. Every method is one transaction, raises `Unreachable` when the store is away, and may be
    repeated after an unknown outcome without changing anything twice.
    """

    async def record(self, entry: Entry) -> tuple[str, Recorded]:
        """The letter's id and what was done, durable when it returns.

        T1: a new letter, PENDING (QUARANTINED if `entry.quarantine`). T2: the identity is known: one more
        delivery, each failure kept once per (generation, attempt). T3: the ticket's redrive came back:
        the letter is PENDING again with its generation one higher, failures appended, claim released; beyond
        MAX_GENERATIONS it is QUARANTINED. The same ticket twice is T2, and so is that of a redrive which no
        longer decides. A ticket that was not issued here, or that sits on another message than was sent, or
        whose letter is gone, counts as none. An entry that was counted before is a repeated write, no delivery:
        it is known by its last failure, or by its `at`.
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
        A group goes with its last letter. Gives the ids that were not removed, as `change` does.
        """
        ...

    async def get(self, letter_id: str) -> DeadLetter | None:
        """The letter with every failure, revision and line of history. An unambiguous beginning of an id of
        at least eight characters will do.
        """
        ...

    async def find(self, query: LetterQuery) -> list[DeadLetter]:
        """One page, newest first, without failures, revisions and history, and without bodies unless `query` asks
        for them.
        """
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
