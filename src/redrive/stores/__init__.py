"""The seam to what remembers: each method atomic alone, each safe to repeat. A driver on SQL writes two of them.

A driver passes `redrive.testing.store_contract`. Drivers sit in `DRIVERS`, imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET, UnsetType

from redrive.accounts import AccountStore
from redrive.registry import Driver, load_driver
from redrive.stores.alert_store import AlertStore
from redrive.stores.clock_note_store import ClockNoteStore
from redrive.stores.duty_store import DutyStore
from redrive.stores.erasure_store import ErasureStore
from redrive.stores.insight_store import InsightStore
from redrive.stores.key_store import KeyStore
from redrive.stores.ledger_store import LedgerStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from redrive.access import Scope
    from redrive.control import RedriveTicket
    from redrive.dead_letter import (
        Actor,
        Claim,
        DeadLetter,
        Entry,
        FailureGroup,
        Happening,
        Recorded,
        Status,
        Transition,
        Verdict,
        Version,
    )
    from redrive.keeping import Ended, EndedCount, Limits
    from redrive.letter_query import Count, LetterQuery
    from redrive.message import Message
    from redrive.preview import Overview
    from redrive.run import Approval, LetterOutcome, Run, RunChange, RunPlan, Settled, Taken
    from redrive.search_terms import Field
    from redrive.statistics import (
        EventTypeCount,
        HandlerTally,
        HourlyRate,
        KnownValue,
        ResolutionTime,
        Statistics,
        StoreNumbers,
        TopError,
    )


class DeadLetterStore(Protocol):
    """Remembers. Every method is one transaction, raises `Unreachable` when the store is away, and may be
    repeated after an unknown outcome without changing anything twice.
    """

    async def record(self, entry: Entry, *, connection: object | None = None) -> tuple[str, Recorded]:
        """The letter's id and what was done, durable when it returns.

        T1: a new letter, PENDING (QUARANTINED if `entry.quarantine`). T2: the identity is known: one more
        delivery, each failure kept once per (generation, attempt). T3: the ticket's redrive came back:
        the letter is PENDING again with its generation one higher, failures appended, claim released; beyond
        MAX_GENERATIONS it is QUARANTINED. The same ticket twice is T2, and so is that of a redrive which no
        longer decides. A ticket that was not issued here, or that sits on another message than was sent, or
        whose letter is gone, counts as none. An entry that was counted before is a repeated write, no delivery:
        it is known by its last failure, or by its `at`.

        With `connection` it is done in the caller's transaction instead (PostgreSQL only: an AsyncSession or
        AsyncConnection of SQLAlchemy, or a connection of asyncpg, on the same database), and durable when the
        CALLER commits; if the caller rolls back there is no letter. If it raises, the caller's transaction is as
        it was before.
        """
        ...

    async def record_together(self, entries: Sequence[Entry]) -> list[tuple[str, Recorded]]:
        """As `record` for each of them, one after the other, in one transaction: if it raises, none is on record.
        For hundreds, not for any number.
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
        """T17: a new immutable revision on top of `base`, and its number. The original stays, and whatever of the
        message is not its body, headers or key stays the original's.
        NotFound; TransitionRefused unless PENDING; Refused if `base` is no longer the current revision.
        """
        ...

    async def purge(self, which: Sequence[str | Version], *, by: Actor) -> Mapping[str, Status | None]:
        """Removes letters that are RESOLVED or DISCARDED for good, body and failures too; the audit rows stay.
        One that is named by a Version goes only if it is still that one. A group goes with its last letter.
        Gives the ids that were not removed, as `change` does.
        """
        ...

    async def ended(self, before: Limits, *, after: Version | None = None, limit: int) -> list[Ended]:
        """RESOLVED and DISCARDED letters that became so, or changed last, before what the limits say for their
        queue and status: the longest ago first, and behind `after` if it is given.
        """
        ...

    async def count_ended(self, before: Limits, *, sizes: bool = False) -> list[EndedCount]:
        """How many there are, by queue and status; those of which there are any. `sizes`: and how large."""
        ...

    async def restore_whole(self, whole: Sequence[DeadLetter], *, by: Actor) -> AbstractSet[str]:
        """Takes in letters that another store held, or this one before they were purged. Gives the ids of those
        that were not here yet, neither by their id nor by their identity (G3). Id, status, times, failures,
        revisions and history are kept, and one line of history is added. One that was REDRIVING is PENDING, for
        nobody sends it any more. Each letter comes in whole or not at all.
        """
        ...

    # Whatever takes `within` (a scope, see `redrive.access`) answers as if nothing outside it existed.

    async def get(self, letter_id: str, *, within: Scope = None) -> DeadLetter | None:
        """The letter with every failure, revision and line of history. An unambiguous beginning of an id of
        at least eight characters will do.
        """
        ...

    async def inside(self, letter_ids: Sequence[str], within: Scope) -> set[str]:
        """Those of the letters that exist and are in the scope. A letter never leaves its queue, so whoever has
        asked may go on and change them.
        """
        ...

    def whole(
        self, letter_ids: Sequence[str], *, story: bool = True, within: Scope = None
    ) -> AsyncGenerator[DeadLetter]:
        """Letters with their bodies in the order of the ids, those that are gone left out; without `story`, as
        `find` gives them. Memory holds a few megabytes of them at a time, or one letter that is larger.
        """
        ...

    async def find(self, query: LetterQuery) -> list[DeadLetter]:
        """One page, newest first, without failures, revisions and history, and without bodies unless `query` asks
        for them.
        """
        ...

    async def count(self, query: LetterQuery, *, at_most: int | None = None) -> Count:
        """How many letters the query selects, on all its pages. Exact; or, if there are more than `at_most`, that
        number and not exact, unless the exact one is at hand.
        """
        ...

    async def known_values(
        self, field: Field, beginning: str = "", limit: int = 50, *, within: Scope = None
    ) -> list[KnownValue]:
        """What letters have in that field, as far as it is counted: with this beginning, most letters first."""
        ...

    async def index(self, *, at_most: int = 250) -> int:
        """Makes letters searchable that wait for it, the newest first, and how many; 0 when none waits, or when
        others are at the last ones. `find` and `count` do it themselves for a bounded number of letters, if they
        are asked for free text, data or headers.
        """
        ...

    async def search_backlog(self, *, within: Scope = None, outdated: bool = False) -> int:
        """Letters that free text, data and headers do not find yet, or find as they were before their change.
        `outdated`: also those that `index` makes anew because they were indexed before plain text was masked.
        """
        ...

    async def groups(
        self,
        *,
        queue: str | None = None,
        owner: str | None = None,
        verdict: Verdict | None = None,
        limit: int = 50,
        within: Scope = None,
    ) -> list[FailureGroup]:
        """Groups that have letters, those with the most pending first, then the most recent. One that was merged
        with a group of another queue is in a scope only if both queues are.
        """
        ...

    async def group(self, group_id: str, *, within: Scope = None) -> FailureGroup | None:
        """One group with its history, by its id or an unambiguous beginning of it, of at least four characters. A
        group that was merged into another is found as that one; one without letters only if somebody has said
        something about it, or merged others into it. It is in a scope only if all of it is, as in `groups`: who
        finds it may change it.
        """
        ...

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
        """What people say about a group: UNSET stays, None is taken away. It is kept whatever becomes of the
        letters, with a line of history per change. NotFound; UsageError for a text that is too long.
        """
        ...

    async def merge(self, into: str, others: Sequence[str], *, by: Actor) -> FailureGroup:
        """The other groups become part of the first one (or of the one that it is part of), and so does what was
        merged into them: letters recorded from then on go there, and those they have are moved. What was said
        about the first stays; where nothing was, it takes over what was said about the others. Refused for a
        group and itself, and for a group that is part of a third one.

        Not one transaction but many short ones, the numbers exact at each: whoever looks meanwhile finds some
        letters still in the other groups. Interrupted, the same call again completes it.
        """
        ...

    async def split(self, group_id: str, fingerprint: str, *, by: Actor) -> FailureGroup:
        """The group that was merged under this fingerprint is its own again, as it was annotated before, with all
        letters of that fingerprint, those recorded since included. Refused if it is not part of the group. In many
        short transactions, like `merge`.
        """
        ...

    async def ahead(self, lane: str, *, of: str | None = None) -> str | None:
        """The first letter of that lane (`ordering.py`) which is neither RESOLVED nor DISCARDED, if there is one;
        with `of` the first before that letter.
        """
        ...

    async def statistics(self, *, older_than: datetime | None = None, within: Scope = None) -> Statistics:
        """With `within`, a cause that was merged into a group of a queue outside has the type of what was raised
        for a title; so it is in `top_errors`.
        """
        ...

    async def top_errors(self, *, limit: int = 10, within: Scope = None) -> list[TopError]:
        """The most frequent causes of PENDING letters; causes of one title are one."""
        ...

    async def error_rate(
        self, *, since: datetime | None = None, until: datetime | None = None, within: Scope = None
    ) -> list[HourlyRate]:
        """Letters per hour, oldest first, hours without any included. The hours that `since` and `until` lie in
        are counted whole; the last seven days if none is given. UsageError for a span of more than three years.
        """
        ...

    async def by_event_type(self, *, within: Scope = None) -> list[EventTypeCount]:
        """The most frequent first; the first thousand."""
        ...

    async def time_to_resolve(self, *, within: Scope = None) -> ResolutionTime: ...

    async def numbers(self) -> StoreNumbers:
        """What its metrics are made of."""
        ...

    async def tally(self, tallies: Sequence[HandlerTally]) -> None:
        """Adds to what `statistics` calls failure rates. The one method that is not safe to repeat."""
        ...

    async def signing_key(self) -> bytes:
        """The secret that signs control headers: made once per store, the same for every process."""
        ...

    def belong_to(self, environment: str) -> None:
        """From now on everything raises ConfigurationError, and nothing is read or changed, if the store is of
        another environment. One that is of none becomes of this one with the first change. Empty: not checked.
        """
        ...

    async def environment(self) -> str:
        """Which one the store belongs to; empty: none yet."""
        ...

    async def rename_environment(self, environment: str, *, by: Actor) -> str:
        """What it was before. Empty: it belongs to none again. It stands in the ledger."""
        ...

    async def close(self) -> None: ...


class RunStore(DeadLetterStore, LedgerStore, Protocol):
    """Remembers redrive runs, and keeps the ledger, as well. Every promise of a DeadLetterStore holds."""

    async def create_run(
        self, plan: RunPlan, *, by: Actor, approval: Approval | None = None, key: str | None = None
    ) -> Run:
        """Durable when it returns, and before any effect: the selection is frozen, its letters are counted.
        AWAITING_APPROVAL if `approval` is given, else RUNNING. Refused if `approval.digest` is not the plan's with
        the number of letters that there are now: what was shown is no longer what is there.

        Safe to repeat with a `key`: the run that was made by it is given back, whatever has become of it since,
        and Refused if that is of another request (`redrive.run_request`).
        """
        ...

    async def keyed_run(self, key: str) -> Run | None:
        """The run that was made by that key."""
        ...

    async def run(self, run_id: str, *, exact: bool = False) -> Run | None:
        """With its progress, which may be some seconds old while a very large run is RUNNING, unless it is to be
        exact. The beginning of its id will do, of at least eight characters, if no other begins like it.
        """
        ...

    async def runs(self, *, active: bool = False, limit: int = 50, after: str | None = None) -> list[Run]:
        """The newest first; with `active` those that have not ended; with `after` those older than that one."""
        ...

    async def change_run(self, run_id: str, change: RunChange, *, by: Actor, seen: datetime | None = None) -> Run:
        """With a line of history. NotFound; TransitionRefused with the run's status where `CHANGES` does not allow
        it, and if `seen` is given and the run's `changed_at` is another one by now. APPROVE is refused to whoever
        asked for the run, and after the approval's time. `by.reason` is kept as the run's `why`.
        """
        ...

    async def take(self, run_id: str, *, owner: str, at_most: int, lease: float) -> Taken:
        """The next letters of a RUNNING run: claims whose lease has run out first (T6), then further ones of its
        selection (T4, T5), edited as the plan says (T17). Claims and the run's cursor move in one transaction.
        What a letter's status, or its edit, does not allow is passed over, and the run's outcomes tell it.
        `at_most` is made smaller by the canary's step and by the pace, which all engines share.
        """
        ...

    async def settle_together(self, settled: Sequence[Settled], *, by: Actor, decided: bool = False) -> int:
        """As `settle` for each of them, in one transaction; how many were changed. `decided`: it is not what an
        engine found out but what somebody says, and stands in the ledger.
        """
        ...

    async def pass_stage(self, run_id: str, stage: int) -> bool:
        """The canary's step `stage` was good: the next one may be taken. False if somebody has said so already."""
        ...

    async def let_go(self, claims: Sequence[Claim], *, after: float = 0.0, unsent: bool = False) -> None:
        """Their leases end in so many seconds, and whoever takes next goes on with them under the same redrive
        ids. Claims that are no longer current stay as they are. `unsent`: nothing of them was ever published, so
        that a run which is cancelled or stopped gives the letters back as PENDING (T16).
        """
        ...

    async def in_doubt(self, run_id: str) -> int:
        """Letters of a run that has ended, REDRIVING, whose leases have run out: whoever had them may have sent
        them. 0 for a run that has not ended: those are taken again.
        """
        ...

    async def take_doubtful(
        self, run_id: str, *, owner: str, at_most: int, lease: float, by: Actor | None = None
    ) -> list[Claim]:
        """T6 for such letters, under the same redrive ids: for somebody who decides about them (None: the owner).
        It stands in the ledger.
        """
        ...

    async def recent_outcomes(self, run_id: str, number: int, *, since: datetime) -> tuple[int, int]:
        """Of the run's last `number` letters that were confirmed or came back after that moment: how many there
        are, and how many came back.
        """
        ...

    async def outcomes(self, run_id: str, *, after: str = "", limit: int = 50) -> list[LetterOutcome]:
        """What became of each letter that was taken, in the order of their redrive ids, from behind `after` on."""
        ...

    async def run_history(self, run_id: str) -> list[Happening]: ...

    async def newest_rule_run(self, rule: str) -> Run | None:
        """The last one that the automatic rule of that name has made."""
        ...

    async def create_rule_run(
        self, plan: RunPlan, *, by: Actor, behind: str | None, approval: Approval | None = None
    ) -> Run | None:
        """As `create_run`, for the rule that the plan names. None, and nothing is made, unless the rule's newest
        run is `behind` and has ended, or it has none and `behind` is None: a rule has one run at a time, whoever
        makes it, and nobody makes one who does not know how the last one ended.
        """
        ...

    async def assume(self, letter_ids: Sequence[str], *, sent_before: datetime, by: Actor) -> int:
        """RESOLVED, how=assumed, for each of them that is REDRIVEN, was sent before that moment and has no
        outcome; how many. If it comes back all the same, that is T3 like any other.
        """
        ...

    async def overview(
        self, selection: LetterQuery, *, at_most: int | None = None, quarantined: bool = False
    ) -> Overview:
        """What a run of this selection would take now, the oldest `at_most` of them if that is given; with
        `quarantined`, QUARANTINED letters as well. In short time at any number of letters: what cannot be counted
        in short time is told as "at least".
        """
        ...

    async def count_older(
        self,
        selection: LetterQuery,
        limits: Mapping[str, datetime],
        *,
        at_most: int | None = None,
        quarantined: bool = False,
    ) -> Mapping[str, Count]:
        """How many of the same letters failed before their queue's limit, by queue. As quick as `overview`."""
        ...


class Store(
    RunStore, AccountStore, KeyStore, InsightStore, DutyStore, ClockNoteStore, ErasureStore, AlertStore, Protocol
):
    """All of it: letters, runs, what is looked at first, the ledger, who can sign in, the keys that it is
    encrypted with, who does what only one has to do, whom it has to forget, and what people are told.
    """


_POSTGRES = Driver("redrive.stores.postgres", "PostgresStore", "postgres")

DRIVERS: dict[str, Driver] = {
    "sqlite": Driver("redrive.stores.sqlite", "SqliteStore"),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
}


def open_store(url: str, **options: Any) -> Store:
    store: Store = load_driver("store", url, DRIVERS)(url, **options)
    return store
