"""What can be asked of a desk, whether it stands at the store (`redrive.actions`) or behind a server
(`redrive.remote`): the promises are those of `Actions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import UNSET, UnsetType

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
    from datetime import timedelta

    from redrive.access import Grant
    from redrive.account_actions import MadeToken
    from redrive.accounts import ApiToken, User
    from redrive.actions import Changed
    from redrive.dead_letter import DeadLetter, FailureGroup, Happening, Transition, Verdict
    from redrive.duration import Duration
    from redrive.ledger import LedgerEntry, LedgerQuery
    from redrive.letter_query import Count, LetterQuery
    from redrive.message import Headers
    from redrive.monitor import Verdict as Monitored
    from redrive.preview import Preview
    from redrive.queue_actions import QueueOverview
    from redrive.redriving import Outcome
    from redrive.run import LetterOutcome, Run, RunChange, RunPlan
    from redrive.run_actions import EditedSample, PlannedRun, SortedOut
    from redrive.run_policy import RunPolicy
    from redrive.run_report import RunReport, Unsent
    from redrive.search_terms import Field
    from redrive.statistics import EventTypeCount, HourlyRate, KnownValue, ResolutionTime, Statistics, TopError
    from redrive.transports.inspection import Inspector


class LetterDesk(Protocol):
    async def letters(self, query: LetterQuery) -> list[DeadLetter]: ...

    async def count(self, query: LetterQuery, *, at_most: int | None = None) -> Count: ...

    async def known_values(self, field: Field, beginning: str = "", limit: int = 50) -> list[KnownValue]: ...

    async def search_backlog(self, query: LetterQuery | None = None) -> int: ...

    async def index(self, *, on_progress: Callable[[int], None] | None = None) -> int: ...

    async def letter(self, letter_id: str) -> DeadLetter: ...

    async def reveal(self, letter_id: str, reason: str) -> DeadLetter: ...

    async def identify(self, given: Iterable[str]) -> list[str]: ...

    def export(
        self, query: LetterQuery, *, at_most: int | None = None, whole: bool = False, unmasked: str | None = None
    ) -> AsyncGenerator[DeadLetter]: ...

    async def resolve(self, letter_ids: Sequence[str], reason: str) -> Changed: ...

    async def discard(self, letter_ids: Sequence[str], reason: str) -> Changed: ...

    async def restore(self, letter_ids: Sequence[str], reason: str) -> Changed: ...

    async def quarantine(self, letter_ids: Sequence[str], reason: str) -> Changed: ...

    async def release(self, letter_ids: Sequence[str], reason: str) -> Changed: ...

    async def purge(self, letter_ids: Sequence[str], reason: str) -> Changed: ...

    async def preview(self, letter_ids: Sequence[str], transition: Transition) -> Changed: ...

    async def revise(
        self,
        letter_id: str,
        *,
        base: int,
        reason: str,
        body: bytes | UnsetType | None = UNSET,
        payload: bytes | UnsetType = UNSET,
        headers: Headers | UnsetType = UNSET,
    ) -> int: ...

    async def revert(self, letter_id: str, *, to: int, base: int, reason: str) -> int: ...


class GroupDesk(Protocol):
    async def groups(
        self,
        *,
        queue: str | None = None,
        owner: str | None = None,
        verdict: Verdict | None = None,
        limit: int = 50,
    ) -> list[FailureGroup]: ...

    async def group(self, group_id: str) -> FailureGroup: ...

    async def annotate(
        self,
        group_id: str,
        *,
        owner: str | UnsetType | None = UNSET,
        verdict: Verdict | UnsetType | None = UNSET,
        note: str | UnsetType | None = UNSET,
        runbook: str | UnsetType | None = UNSET,
        reason: str = "",
    ) -> FailureGroup: ...

    async def merge(self, into: str, others: Sequence[str], reason: str) -> FailureGroup: ...

    async def split(self, group_id: str, fingerprint: str, reason: str) -> FailureGroup: ...


class NumberDesk(Protocol):
    async def statistics(self, *, older_than: Duration | None = None) -> Statistics: ...

    async def check(self, *, max_pending: int | None = None, max_age: Duration | None = None) -> Monitored: ...

    async def top_errors(self, *, limit: int = 10) -> list[TopError]: ...

    async def error_rate(self, within: Duration) -> list[HourlyRate]: ...

    async def by_event_type(self) -> list[EventTypeCount]: ...

    async def time_to_resolve(self) -> ResolutionTime: ...

    async def queues(self, named: Sequence[str] = ()) -> tuple[list[QueueOverview], str]: ...


class RunDesk(Protocol):
    async def usual_run(self) -> RunPolicy: ...

    async def sort_out(self, letter_ids: Sequence[str], *, quarantined: bool = False) -> SortedOut: ...

    async def plan_run(self, plan: RunPlan) -> PlannedRun: ...

    async def preview_run(self, plan: RunPlan, *, inspector: Inspector | None = None) -> Preview: ...

    async def edit_samples(self, plan: RunPlan, letter_ids: Sequence[str]) -> list[EditedSample]: ...

    async def create_run(self, planned: PlannedRun, *, key: str | None = None) -> Run: ...

    async def run_made_by(self, key: str, plan: RunPlan) -> Run | None: ...

    async def retry(self, letter_ids: Sequence[str], *, begun: bool = False) -> list[Outcome]: ...

    async def run(self, run_id: str) -> Run: ...

    async def report(self, run_id: str) -> RunReport: ...

    async def reports(self, *, active: bool = False, limit: int = 50) -> list[RunReport]: ...

    async def run_history(self, run_id: str) -> list[Happening]: ...

    def outcomes(self, run_id: str) -> AsyncGenerator[LetterOutcome]: ...

    async def unsent(self, run_id: str, *, at_most: int) -> list[Unsent]: ...

    async def change_run(self, run_id: str, change: RunChange, reason: str = "") -> Run: ...

    async def take_as_sent(self, run: Run, reason: str) -> int: ...

    async def send_again(
        self, run: Run, *, rate: float | None = None, on_progress: Callable[[int], None] | None = None
    ) -> list[Outcome]: ...

    async def carry_out(self, run_id: str, *, on_progress: Callable[[Run], None] | None = None) -> Run: ...


class AuditDesk(Protocol):
    async def ledger(self, query: LedgerQuery) -> list[LedgerEntry]: ...

    def whole_ledger(self, query: LedgerQuery | None = None) -> AsyncGenerator[LedgerEntry]: ...


class AccountDesk(Protocol):
    async def create_token(
        self, name: str, grants: Sequence[Grant], *, lasts: timedelta | None = None, reason: str = ""
    ) -> MadeToken: ...

    async def tokens(self) -> list[ApiToken]: ...

    async def revoke_token(self, token_id: str, reason: str = "") -> ApiToken: ...

    async def add_user(self, name: str, password: str, grants: Sequence[Grant], *, reason: str = "") -> User: ...

    async def users(self) -> list[User]: ...

    async def set_password(self, name: str, password: str, *, reason: str = "") -> None: ...

    async def set_grants(self, name: str, grants: Sequence[Grant], *, reason: str = "") -> User: ...

    async def disable_user(self, name: str, reason: str = "") -> User: ...

    async def enable_user(self, name: str, reason: str = "") -> User: ...


class Desk(LetterDesk, GroupDesk, NumberDesk, RunDesk, AuditDesk, AccountDesk, Protocol):
    """Everything that works through a server as well as at the store."""
