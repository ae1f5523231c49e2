"""The desk: everything a person can do with dead letters, behind command line, API and console alike.

It knows no argv, no HTTP, no SQL and prints nothing. Who asks is given when the desk is opened, never per call,
and what they may do is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET, UnsetType

from redrive import faults
from redrive.access import Permission
from redrive.account_actions import AccessPolicy, AccountActions
from redrive.alert_actions import AlertActions
from redrive.audit_actions import AuditActions
from redrive.dead_letter import TRANSITIONS, DeadLetter, Status, Transition
from redrive.denials import Denials
from redrive.doctor_actions import DoctorActions
from redrive.doubt_actions import DoubtActions
from redrive.duration import seconds
from redrive.environment_actions import EnvironmentActions
from redrive.erasure_actions import ErasureActions
from redrive.errors import NotFound, Refused, UsageError
from redrive.importing import Imported, Importer
from redrive.insight_actions import InsightActions
from redrive.intake_actions import IntakeActions
from redrive.key_actions import KeyActions
from redrive.ledger import LETTERS, Deed, Subject
from redrive.letter_query import Count, LetterQuery, Place
from redrive.loaded import Loaded
from redrive.monitor import Verdict, judge
from redrive.move_actions import MoveActions
from redrive.pace import Pace
from redrive.privacy.maskers import Maskers
from redrive.queue_actions import QueueActions
from redrive.readable import readable
from redrive.redriving import Outcome, Redriver, Result, unclaimed
from redrive.reprocessing import Reprocessed, Reprocessor, Selection
from redrive.run import RunStatus
from redrive.run_policy import RunPolicy
from redrive.search import unparse
from redrive.search_terms import FieldTerm
from redrive.splice import with_payload
from redrive.upkeep.clock_note import ClockNote
from redrive.upkeep.retention import Retained, Retention

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from redrive.access import Identity
    from redrive.clock import Clock
    from redrive.duration import Duration
    from redrive.examining import Doctor
    from redrive.message import Headers, Message
    from redrive.run import Run
    from redrive.statistics import Statistics
    from redrive.stores import DeadLetterStore, RunStore
    from redrive.stores.clock_note_store import ClockNoteStore
    from redrive.stores.insight_store import InsightStore
    from redrive.telemetry.spans import Spans
    from redrive.transports import Transport
    from redrive.transports.inspection import Inspector
    from redrive.upkeep.archive import Archive

    Progress = Callable[[int], None]  # told how many more are done

__all__ = [
    "Actions",
    "Changed",
    "Imported",
    "Importer",
    "Outcome",
    "Reprocessed",
    "Result",
    "Retained",
    "Retention",
    "Selection",
    "Verdict",
]

_FULL_ID = 36
_SHORTEST_ID = 8
_CHANGE_BATCH = 100
_EXPORT_PAGE = 100
_INDEX_BATCH = 500
_NEEDED = {Transition.PURGE: Permission.PURGE, Transition.EDIT: Permission.EDIT}
"""Everything else is decided."""


class Changed(msgspec.Struct, frozen=True):
    """Which letters were changed, and which were not with the status that stood in the way (None: unknown id)."""

    done: tuple[str, ...]
    left: Mapping[str, Status | None]


class Actions(
    InsightActions,
    DoubtActions,
    QueueActions,
    AuditActions,
    AccountActions,
    IntakeActions,
    EnvironmentActions,
    KeyActions,
    ErasureActions,
    DoctorActions,
    AlertActions,
    MoveActions,
):
    """`who` is whoever opened the desk; every change is written down under that name."""

    def __init__(
        self,
        *,
        store: DeadLetterStore,
        transport: Transport,
        clock: Clock,
        who: Identity,
        policy: RunPolicy | None = None,
        inspector: Inspector | None = None,
        denials: Denials | None = None,
        masks: Maskers | None = None,
        access: AccessPolicy | None = None,
        loaded: Loaded | None = None,
        doctor: Doctor | None = None,
        spans: Spans | None = None,
    ) -> None:
        self._store = store
        self._runs = cast("RunStore", store)  # every driver of ours is one
        self._insights = cast("InsightStore", store)
        self._transport = transport
        self._clock = clock
        self._who = who
        self._policy = policy or RunPolicy()
        self._inspector = inspector
        self._denials = denials or Denials(clock)
        self._masks = masks or Maskers()
        self._access = access or AccessPolicy()
        self._loaded = loaded or Loaded()
        self._doctor = doctor
        self._spans = spans

    # Looking

    async def letters(self, query: LetterQuery) -> list[DeadLetter]:
        """One page, newest first, without bodies unless `query` asks for them. The next one begins `after` its
        last letter.
        """
        return [self._masked(each) for each in await self._store.find(await self._seen(query))]

    async def count(self, query: LetterQuery, *, at_most: int | None = None) -> Count:
        """How many letters that is on all pages; beyond `at_most`, counting may stop."""
        return await self._store.count(await self._seen(query), at_most=at_most)

    async def search_backlog(self, query: LetterQuery | None = None) -> int:
        """Letters that free text, data and headers do not find yet; 0 if the query asks for nothing like that."""
        within = await self._may(Permission.READ)
        if query is not None and all(isinstance(term, FieldTerm) for term in query.where.terms):
            return 0
        return await self._store.search_backlog(within=within, outdated=query is None)

    async def index(self, *, on_progress: Progress | None = None) -> int:
        """Makes every letter searchable that waits for it; how many."""
        await self._may_everywhere(Permission.ADMINISTER)
        done = 0
        while number := await self._store.index(at_most=_INDEX_BATCH):
            done += number
            if on_progress is not None:
                on_progress(number)
        return done

    async def letter(self, letter_id: str) -> DeadLetter:
        """The letter with its whole story, masked; the beginning of its id will do if no other begins like it."""
        return await self._shown(await self._letter(letter_id, Permission.READ))

    async def reveal(self, letter_id: str, reason: str) -> DeadLetter:
        """The letter as it is. Who looked, and why, is written down before it is shown."""
        letter, by = readable(await self._letter(letter_id, Permission.REVEAL)), self._because(reason)
        await self._runs.note(Deed(what="revealed", subject=Subject.of(LETTERS, (letter.id,))), by=by)
        faults.point("reveal.noted")
        return letter

    async def _letter(self, letter_id: str, permission: Permission) -> DeadLetter:
        within = await self._may(permission)
        _check_beginning(letter_id)
        letter = await self._store.get(letter_id, within=within)
        if letter is None:
            raise NotFound(f"no letter {letter_id}", remedy="`redrive list` shows the ids")
        return letter

    async def identify(self, given: Iterable[str]) -> list[str]:
        """Whole ids for whole ids and beginnings of ids, each once. NotFound for a beginning that fits none."""
        named = [each.strip().lower() for each in given]
        whole = [each if len(each) == _FULL_ID else (await self.letter(each)).id for each in named]
        return list(dict.fromkeys(whole))

    async def statistics(self, *, older_than: Duration | None = None) -> Statistics:
        within = await self._may(Permission.READ)
        moment = None if older_than is None else self._ago(older_than)
        found = await self._store.statistics(older_than=moment, within=within)
        reasons = [(self._masks.general.text(text), number) for text, number in found.reasons]
        return msgspec.structs.replace(found, reasons=reasons)

    async def check(self, *, max_pending: int | None = None, max_age: Duration | None = None) -> Verdict:
        """S0's monitor: one line, and whether somebody has to be told."""
        if max_pending is None and max_age is None:
            raise UsageError("nothing to check against", remedy="give --max-pending, --max-age or both")
        age = None if max_age is None else seconds(max_age)
        statistics = await self._store.statistics(within=await self._may(Permission.READ))
        return judge(statistics, now=self._clock.now(), max_pending=max_pending, max_age=age)

    async def export(
        self, query: LetterQuery, *, at_most: int | None = None, whole: bool = False, unmasked: str | None = None
    ) -> AsyncGenerator[DeadLetter]:
        """Every matching letter with its body, newest first: a few megabytes in memory at a time, or one larger
        letter, whatever `query` says about `limit` and `bodies`. `whole` adds failures, revisions and history.
        What is recorded meanwhile is newer than where it began, and not met. `unmasked` is the reason for which
        nothing is masked; it is written down before the first letter is given.
        """
        if unmasked is not None:
            await self._note_export(query, unmasked)
            faults.point("export.noted")
        shown = self._shown if unmasked is None else _as_it_is
        seen = await self._seen(query, Permission.READ if unmasked is None else Permission.EXPORT)
        page = msgspec.structs.replace(seen, limit=_EXPORT_PAGE, bodies=False)
        given = 0
        while found := await self._store.find(page):
            wanted = [letter.id for letter in found][: None if at_most is None else at_most - given]
            async with aclosing(self._store.whole(wanted, story=whole)) as told:
                async for letter in told:
                    given += 1
                    yield await shown(letter)
            if at_most is not None and given >= at_most:
                return
            page = msgspec.structs.replace(page, after=Place.of(found[-1]))

    async def _note_export(self, query: LetterQuery, reason: str) -> None:
        await self._may(Permission.EXPORT)
        deed = Deed(what="exported unmasked", subject=Subject(LETTERS, (), 0), after=unparse(query.where))
        await self._runs.note(deed, by=self._because(reason))

    # Keeping

    async def retention(self, archive: Archive | None) -> Retention:
        """Takes old settled letters out of the store, into that archive; None: into none."""
        await self._may_everywhere(Permission.PURGE)
        return Retention(
            store=self._store,
            archive=archive,
            clock=self._clock,
            clock_note=ClockNote(cast("ClockNoteStore", self._runs), self._clock),
            actor=self._who.name,
        )

    async def importer(self) -> Importer:
        await self._may_everywhere(Permission.ADMINISTER)
        return Importer(store=self._store, actor=self._who.name)

    # Putting back

    async def retry(
        self,
        letter_ids: Sequence[str],
        *,
        rate: float | None = None,
        to_origin: bool = False,
        begun: bool = False,
        on_progress: Progress | None = None,
    ) -> list[Outcome]:
        """Sends letters back to their queue; one outcome per letter. None is lost whatever happens between.
        `to_origin`: to the exchange their producers sent them to, and so to every queue bound there. `begun`:
        somebody else had them in hand and may have sent them.
        """
        if to_origin:
            await self._may_everywhere(Permission.REDRIVE)
        there = await self._reached(letter_ids, Permission.REDRIVE)
        pace = Pace(rate, self._clock)
        redriver = self._redriver(to_origin=to_origin)
        wanted = [each for each in letter_ids if each in there]
        sent = await redriver.redrive(wanted, pace=pace, on_progress=on_progress, begun=begun)
        return [*sent, *(unclaimed(each, None) for each in dict.fromkeys(letter_ids) if each not in there)]

    async def select_dead(self, dead_letter_queue: str, *, with_store: bool = True) -> Selection:
        """What `reprocess` would send back; without the store, what the broker's queue holds. UsageError if that
        is not the name of a dead-letter queue.
        """
        await self._may(Permission.REDRIVE)
        found = await self._reprocessor().select(dead_letter_queue, with_store=with_store, at=self._clock.now())
        await self._may_send_to(found.home)
        return found

    async def reprocess(
        self,
        dead_letter_queue: str | Selection,
        *,
        limit: int | None = None,
        rate: float | None = None,
        on_progress: Progress | None = None,
    ) -> Reprocessed:
        """S3's `queue:reprocess`: what lies dead now, or what was selected before, each message once. Nothing is
        sent if its run needs an approval; if the run halts, nothing else.
        """
        chosen = dead_letter_queue
        selection = chosen if isinstance(chosen, Selection) else await self.select_dead(chosen)
        selection = selection.first(limit)
        run = await self.begin_reprocessing(selection, rate=rate)
        if run is not None and run.status is RunStatus.RUNNING:
            run = await self.carry_out(run.id)
        return await self.end_reprocessing(selection, run, rate=rate, on_progress=on_progress)

    async def begin_reprocessing(self, selection: Selection, *, rate: float | None = None) -> Run | None:
        """The run of its pending letters, made and not carried out; None: there are none."""
        if not selection.pending:
            return None
        plan = selection.plan(self.run_policy, self._pace_to(selection, rate))
        try:
            return await self.create_run(await self.plan_run(plan))
        except NotFound:  # somebody else has dealt with them meanwhile
            return None

    async def end_reprocessing(
        self,
        selection: Selection,
        run: Run | None,
        *,
        rate: float | None = None,
        on_progress: Progress | None = None,
    ) -> Reprocessed:
        """All but its run, which was carried out before: at the pace of the run, one after the other. Nothing, if
        that did not come to its end.
        """
        await self._may_send_to(selection.home)
        done = Reprocessed(run=run)
        if done.halted:
            return done
        pace = Pace(self._pace_to(selection, rate), self._clock)
        if run is not None and run.progress.sent:
            await pace.turn()  # the run's last letter had it
        reprocessor = self._reprocessor()
        unfinished = await reprocessor.finish(selection, pace=pace, on_progress=on_progress)
        drained = await reprocessor.drain(selection, pace=pace, on_progress=on_progress)
        return msgspec.structs.replace(done, queue=drained, unfinished=unfinished)

    def _pace_to(self, selection: Selection, rate: float | None) -> float | None:
        """One for all that goes back: as asked for, or as the settings say, and within the queue's ceiling."""
        return self.run_policy.rate_to({selection.home}, self.run_policy.rate if rate is None else rate)

    # Deciding: each with its reason, each written down

    async def resolve(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.RESOLVE, reason)

    async def discard(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.DISCARD, reason)

    async def restore(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.RESTORE, reason)

    async def quarantine(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.QUARANTINE, reason, how=reason)

    async def release(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.RELEASE, reason)

    async def preview(self, letter_ids: Sequence[str], transition: Transition) -> Changed:
        """What a change would do now; changes nothing."""
        within = await self._may(_NEEDED.get(transition, Permission.DECIDE))
        allowed = TRANSITIONS[transition].sources

        async def look(batch: Sequence[str]) -> Mapping[str, Status | None]:
            found = await self._store.find(LetterQuery(ids=tuple(batch), limit=len(batch), within=within))
            statuses = {letter.id: letter.status for letter in found}
            return {each: statuses.get(each) for each in batch if statuses.get(each) not in allowed}

        return await _in_batches(letter_ids, look)

    async def purge(self, letter_ids: Sequence[str], reason: str) -> Changed:
        """For good, and only what is RESOLVED or DISCARDED; the lines of history stay."""
        there, by = await self._reached(letter_ids, Permission.PURGE), self._because(reason)

        async def purge(batch: Sequence[str]) -> Mapping[str, Status | None]:
            return await self._store.purge(batch, by=by)

        return await _in_batches(letter_ids, purge, there)

    async def revise(
        self,
        letter_id: str,
        *,
        base: int,
        reason: str,
        body: bytes | UnsetType | None = UNSET,
        payload: bytes | UnsetType = UNSET,
        headers: Headers | UnsetType = UNSET,
    ) -> int:
        """A new revision on top of revision `base`, and its number; what is not given stays. The original is
        kept for ever. A new `payload` changes only `data` of an envelope of ours, and is the whole body of a
        foreign message. Refused if the message would change its id, or somebody else was quicker.
        """
        letter, by = readable(await self._letter(letter_id, Permission.EDIT)), self._because(reason)
        revised = letter.message
        if payload is not UNSET:
            revised = with_payload(revised, payload)
        if body is not UNSET:
            revised = msgspec.structs.replace(revised, body=body)
        if headers is not UNSET:
            revised = revised.with_headers(headers)
        _check_same_id(letter.message, revised)
        return await self._store.revise(letter.id, revised, base=base, by=by)

    async def revert(self, letter_id: str, *, to: int, base: int, reason: str) -> int:
        """A new revision on top of `base` with what revision `to` held, and its number: history goes on, and no
        revision is lost. Refused if somebody else was quicker, or the letter is not PENDING.
        """
        letter, by = await self._letter(letter_id, Permission.EDIT), self._because(reason)
        wanted = letter.revisions[to]
        readable(msgspec.structs.replace(letter, unreadable=wanted.unreadable))
        return await self._store.revise(letter.id, wanted.message, base=base, by=by)

    async def _change(
        self, letter_ids: Sequence[str], transition: Transition, reason: str, *, how: str = "by hand"
    ) -> Changed:
        there, by = await self._reached(letter_ids, Permission.DECIDE), self._because(reason)

        async def change(batch: Sequence[str]) -> Mapping[str, Status | None]:
            return await self._store.change(batch, transition, by=by, how=how)

        return await _in_batches(letter_ids, change, there)

    def _ago(self, duration: Duration) -> datetime:
        try:
            return self._clock.now() - timedelta(seconds=seconds(duration))
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)  # nothing is that old

    def _redriver(self, *, to_origin: bool = False) -> Redriver:
        return Redriver(
            store=self._store,
            transport=self._transport,
            actor=self._by(),
            to_origin=to_origin,
            spans=self._spans,
        )

    def _reprocessor(self) -> Reprocessor:
        return Reprocessor(
            store=self._store, transport=self._transport, redriver=self._redriver(), spans=self._spans
        )


async def _as_it_is(letter: DeadLetter) -> DeadLetter:
    return letter


async def _in_batches(
    letter_ids: Sequence[str],
    change: Callable[[Sequence[str]], Awaitable[Mapping[str, Status | None]]],
    there: AbstractSet[str] | None = None,
) -> Changed:
    """Those that are not there are left, as unknown ones are; None: the change itself knows."""
    named = list(dict.fromkeys(letter_ids))
    wanted = named if there is None else [each for each in named if each in there]
    left: dict[str, Status | None] = {each: None for each in named if there is not None and each not in there}
    for start in range(0, len(wanted), _CHANGE_BATCH):
        left |= await change(wanted[start : start + _CHANGE_BATCH])
    return Changed(tuple(each for each in named if each not in left), left)


def _check_beginning(letter_id: str) -> None:
    if len(letter_id) < _SHORTEST_ID:
        raise UsageError(
            f"{letter_id!r} is too short for a letter's id",
            remedy=f"give at least {_SHORTEST_ID} characters of it; `redrive list` shows the ids",
        )


def _check_same_id(before: Message, after: Message) -> None:
    old, new = before.envelope, after.envelope
    if old is not None and new is not None and old.message_id != new.message_id:
        raise Refused(
            f"message_id must stay {old.message_id}: a message keeps its id for its whole life",
            remedy="leave message_id as it was, or send a new message instead",
        )
