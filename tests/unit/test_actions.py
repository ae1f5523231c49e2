"""The desk on a real store and a real broker, both in memory; brokers that misbehave on purpose are named so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta

import pytest

from redrive import redriving
from redrive.access import local
from redrive.actions import Actions, Changed, Result
from redrive.control import read_ticket, strip
from redrive.dead_letter import Actor, Claim, DeadLetter, Status, Transition
from redrive.errors import NotFound, PublishRefused, Refused, TransitionRefused, Unreachable, UsageError
from redrive.letter_query import LetterQuery, Place
from redrive.message import Message
from redrive.redriving import WINDOW
from redrive.stores.sql_whole import BUDGET
from redrive.stores.sqlite import SqliteStore
from redrive.testing.clock import ManualClock
from redrive.testing.letters import a_message, an_entry
from redrive.transports import Names
from redrive.transports.embedded import EmbeddedTransport

UNKNOWN = "01a1e159-cf20-722c-a384-905c90383150"


class Broker(EmbeddedTransport):
    """Does `meanwhile` after each send that went well, or `instead` of sending."""

    def __init__(self) -> None:
        super().__init__("embedded:///:memory:", names=Names())
        self.sent: list[Message] = []
        self.meanwhile: Callable[[Message], Awaitable[object]] | None = None
        self.instead: Callable[[], Awaitable[object]] | None = None

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        if self.instead is not None:
            await self.instead()
            return
        await super().send(message, queue=queue, delay=delay, trail=trail)
        self.sent.append(message)
        if self.meanwhile is not None:
            await self.meanwhile(message)


class Store(SqliteStore):
    """Goes away after so many claims, or whenever it is asked for a list; notes what it was asked for."""

    claims_left: int | None = None
    lists_nothing = False

    def __init__(self, url: str, *, clock: ManualClock) -> None:
        super().__init__(url, clock=clock)
        self.asked: list[LetterQuery] = []

    async def find(self, query: LetterQuery) -> list[DeadLetter]:
        if self.lists_nothing:
            raise Unreachable("the store is away")
        self.asked.append(query)
        return await super().find(query)

    async def claim(self, letter_ids: Sequence[str], *, owner: str, lease: float) -> list[Claim]:
        if self.claims_left == 0:
            raise Unreachable("the store is away")
        if self.claims_left is not None:
            self.claims_left -= 1
        return await super().claim(letter_ids, owner=owner, lease=lease)


class Office:
    """A desk with what stands behind it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = Store("sqlite:///:memory:", clock=self.clock)
        self.broker = Broker()
        self.desk = Actions(store=self.store, transport=self.broker, clock=self.clock, who=local("ana"))

    async def letters(self, number: int) -> list[str]:
        return [(await self.store.record(an_entry(at=self.clock.now())))[0] for _ in range(number)]

    async def letter(self, letter_id: str) -> DeadLetter:
        return await self.desk.letter(letter_id)

    async def status(self, letter_id: str) -> Status:
        return (await self.letter(letter_id)).status


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    office = Office()
    yield office
    await office.broker.close()
    await office.store.close()


# Looking


async def test_a_letter_that_does_not_exist_is_told_with_the_remedy(office: Office) -> None:
    for unknown in (UNKNOWN, UNKNOWN[:8]):
        with pytest.raises(NotFound) as told:
            await office.desk.letter(unknown)
        assert "redrive list" in told.value.remedy


async def test_ids_are_told_by_their_beginnings_and_each_is_named_once(office: Office) -> None:
    [letter_id] = await office.letters(1)

    assert await office.desk.identify([letter_id[:13], letter_id.upper(), UNKNOWN]) == [letter_id, UNKNOWN]
    with pytest.raises(UsageError):
        await office.desk.identify([letter_id[:7]])


async def test_old_letters_are_counted_from_the_desks_own_clock(office: Office) -> None:
    await office.letters(2)
    office.clock.advance(3600)
    await office.letters(1)

    assert (await office.desk.statistics(older_than="30m")).older == 2
    assert (await office.desk.check(max_pending=2)).line == "ALERT: 3 pending dead letters (limit 2), oldest 1h"
    assert not (await office.desk.check(max_age="2h")).alert


async def test_an_export_meets_every_letter_once_and_none_that_came_later(office: Office) -> None:
    before = await office.letters(205)
    met: list[str] = []

    async for letter in office.desk.export(LetterQuery()):
        if not met:
            await office.letters(3)
        met.append(letter.id)

    assert met == before[::-1]


async def test_an_export_skips_what_was_purged_meanwhile(office: Office) -> None:
    large = [an_entry(message=a_message(body=b"x" * BUDGET), at=office.clock.now()) for _ in range(2)]
    purged, kept = [(await office.store.record(each))[0] for each in large]
    await office.desk.discard([purged], "test")
    told = []

    async for letter in office.desk.export(LetterQuery(), whole=True):
        told.append(letter)
        await office.desk.purge([purged], "test")

    assert [letter.id for letter in told] == [kept]
    assert all(letter.failures and letter.history for letter in told)


@pytest.mark.parametrize("whole", [True, False])
async def test_an_export_reads_no_pages_full_of_bodies(office: Office, *, whole: bool) -> None:
    await office.letters(5)

    told = [letter async for letter in office.desk.export(LetterQuery(bodies=True), whole=whole)]

    assert all(letter.message.body for letter in told)
    assert not any(query.bodies for query in office.store.asked)


async def test_changes_and_selections_read_no_bodies(office: Office) -> None:
    ids = await office.letters(2)
    await office.desk.preview(ids, Transition.DISCARD)
    await office.desk.select_dead("orders_dlq")
    await office.desk.resolve(ids[:1], "done")
    await office.desk.retry(ids)

    assert office.store.asked
    assert not any(query.bodies for query in office.store.asked)


# Putting back


async def test_no_more_than_a_window_is_claimed_at_a_time(office: Office) -> None:
    ids = await office.letters(2 * WINDOW + 5)
    claimed = []

    async def count(_message: Message) -> None:
        claimed.append(len(await office.store.find(LetterQuery(status=Status.REDRIVING, limit=500))))

    office.broker.meanwhile = count
    progress: list[int] = []
    outcomes = await office.desk.retry(ids, on_progress=progress.append)

    assert [outcome.letter_id for outcome in outcomes] == ids
    assert max(claimed) <= WINDOW
    assert progress == [WINDOW, WINDOW, 5]


async def test_a_consumer_that_confirms_before_the_mark_leaves_the_letter_resolved(office: Office) -> None:
    [letter_id] = await office.letters(1)

    async def confirm(message: Message) -> None:
        ticket = read_ticket(message.headers, "orders", await office.store.signing_key())
        assert ticket is not None
        assert await office.store.confirm(ticket, by=Actor("consumer"))

    office.broker.meanwhile = confirm
    [outcome] = await office.desk.retry([letter_id])

    assert outcome.result is Result.SENT
    assert await office.status(letter_id) is Status.RESOLVED


async def test_a_mark_that_comes_after_a_quick_second_failure_changes_nothing(office: Office) -> None:
    [letter_id] = await office.letters(1)

    async def fail(message: Message) -> None:
        ticket = read_ticket(message.headers, "orders", await office.store.signing_key())
        original = message.with_headers(strip(message.headers))
        await office.store.record(an_entry(message=original, ticket=ticket, at=office.clock.now()))

    office.broker.meanwhile = fail
    [outcome] = await office.desk.retry([letter_id])

    letter = await office.letter(letter_id)
    assert outcome.result is Result.SENT
    assert (letter.status, letter.generation) == (Status.PENDING, 2)


async def test_a_broker_that_will_not_have_it_now_gives_the_letter_back_uncounted(office: Office) -> None:
    [letter_id] = await office.letters(1)

    async def not_now() -> None:
        raise PublishRefused("the queue is full", permanent=False)

    office.broker.instead = not_now
    for _ in range(5):
        [outcome] = await office.desk.retry([letter_id])
        assert (outcome.result, outcome.note) == (Result.REFUSED, "the queue is full")

    assert await office.status(letter_id) is Status.PENDING


async def test_a_send_without_an_answer_is_unknown_and_taken_over_with_the_same_redrive_id(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    [letter_id] = await office.letters(1)
    monkeypatch.setattr(redriving, "SEND_DEADLINE", 0.001)
    office.broker.instead = asyncio.Event().wait

    [unknown] = await office.desk.retry([letter_id])
    [too_early] = await office.desk.retry([letter_id])
    office.broker.instead = None
    monkeypatch.undo()
    office.clock.advance(redriving.LEASE + 1)
    [taken_over] = await office.desk.retry([letter_id])

    assert (unknown.result, too_early.result) == (Result.UNKNOWN, Result.NOT_CLAIMED)
    assert too_early.status is Status.REDRIVING
    assert (taken_over.result, taken_over.redrive_id) == (Result.SENT, unknown.redrive_id)


async def test_a_store_that_goes_away_after_the_send_is_told_as_unknown(office: Office) -> None:
    [letter_id] = await office.letters(1)
    office.broker.meanwhile = lambda _message: office.store.close()

    [outcome] = await office.desk.retry([letter_id])

    assert outcome.result is Result.UNKNOWN
    assert outcome.note.startswith("sent, but not marked")


async def test_a_store_that_goes_away_between_windows_leaves_the_rest_untried(office: Office) -> None:
    ids = await office.letters(WINDOW + 1)
    office.store.claims_left = 1

    outcomes = await office.desk.retry(ids)

    assert [outcome.result for outcome in outcomes] == [Result.SENT] * WINDOW + [Result.NOT_TRIED]


async def test_what_was_sent_is_told_though_the_store_cannot_say_why_the_others_were_not(office: Office) -> None:
    resolved, sent = await office.letters(2)
    await office.desk.resolve([resolved], "done by hand")
    office.store.lists_nothing = True

    outcomes = await office.desk.retry([resolved, sent])

    assert [outcome.result for outcome in outcomes] == [Result.NOT_TRIED, Result.SENT]
    assert outcomes[0].note == "not claimed, and the store went away before it said why: the store is away"


async def test_however_low_the_rate_no_claim_runs_out_while_its_letter_waits(office: Office) -> None:
    ids = await office.letters(2)
    first_sent = asyncio.Event()

    async def tell(_message: Message) -> None:
        first_sent.set()

    office.broker.meanwhile = tell
    slow = asyncio.create_task(office.desk.retry(ids, rate=0.01))
    await first_sent.wait()
    while await office.status(ids[0]) is not Status.REDRIVEN:
        pass
    office.clock.advance(redriving.LEASE + 1)
    waiting = await office.status(ids[1])
    other = await office.desk.retry(ids)
    office.clock.advance(100)

    assert waiting is Status.PENDING
    assert [outcome.result for outcome in other] == [Result.NOT_CLAIMED, Result.SENT]
    assert [outcome.result for outcome in await slow] == [Result.SENT, Result.NOT_CLAIMED]
    assert len(office.broker.sent) == 2


async def test_an_interrupted_retry_gives_back_what_had_not_had_its_turn(office: Office) -> None:
    ids = await office.letters(5)
    first_sent = asyncio.Event()

    async def tell(_message: Message) -> None:
        first_sent.set()

    office.broker.meanwhile = tell
    running = asyncio.create_task(office.desk.retry(ids, rate=1))
    await first_sent.wait()
    while await office.status(ids[0]) is not Status.REDRIVEN:
        pass
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert [await office.status(each) for each in ids] == [Status.REDRIVEN] + [Status.PENDING] * 4
    assert len(office.broker.sent) == 1


async def test_an_unexpected_error_is_raised_after_the_rest_of_the_window_is_done(office: Office) -> None:
    ids = await office.letters(3)

    async def stumble(message: Message) -> None:
        if message.id == office.broker.sent[0].id:
            raise RuntimeError("a bug")

    office.broker.meanwhile = stumble
    with pytest.raises(RuntimeError, match="a bug"):
        await office.desk.retry(ids)

    statuses = [await office.status(each) for each in ids]
    assert statuses == [Status.REDRIVING, Status.REDRIVEN, Status.REDRIVEN]


async def test_reprocess_stops_when_somebody_else_has_taken_the_rest(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.dead_letter_queue._PATIENCE", 0.01)
    selection = await office.desk.select_dead("orders_dlq")
    await office.broker.send(a_message(), queue="orders_dlq")
    more = type(selection)(
        dead_letter_queue="orders_dlq", home="orders", in_queue=3, in_other_hands=0, pending=0, unfinished=()
    )

    done = await office.desk.reprocess(more)

    assert done.queue.sent == 1


async def test_reprocess_takes_over_letters_whose_command_died(office: Office) -> None:
    ids = await office.letters(2)
    await office.store.claim(ids, owner="a process that died", lease=60)
    office.clock.advance(61)

    done = await office.desk.reprocess("orders_dlq")

    assert done.from_store == 2


# Deciding


async def test_a_decision_without_a_reason_is_refused_before_anything_is_changed(office: Office) -> None:
    [letter_id] = await office.letters(1)
    desk = office.desk

    for decide in (desk.resolve, desk.discard, desk.restore, desk.quarantine, desk.release, desk.purge):
        with pytest.raises(UsageError):
            await decide([letter_id], " \n")

    assert await office.status(letter_id) is Status.PENDING


async def test_a_quarantine_by_hand_says_its_cause(office: Office) -> None:
    [letter_id] = await office.letters(1)

    await office.desk.quarantine([letter_id], "asked by the bank")

    letter = await office.letter(letter_id)
    assert (letter.status, letter.how) == (Status.QUARANTINED, "asked by the bank")


async def test_a_preview_says_what_would_be_done_and_does_nothing(office: Office) -> None:
    pending, discarded = await office.letters(2)
    await office.desk.discard([discarded], "test")

    preview = await office.desk.preview([pending, discarded, UNKNOWN], Transition.DISCARD)

    assert preview == Changed((pending,), {discarded: Status.DISCARDED, UNKNOWN: None})
    assert await office.status(pending) is Status.PENDING


async def test_a_revision_changes_what_is_given_and_keeps_the_rest(office: Office) -> None:
    message = a_message(headers=(("a", 1),))
    letter_id, _ = await office.store.record(an_entry(message=message, at=office.clock.now()))

    first = await office.desk.revise(letter_id, headers=(("a", 2),), base=0, reason="wrong header")
    second = await office.desk.revise(letter_id, body=None, base=1, reason="no body at all")

    letter = await office.letter(letter_id)
    assert (first, second) == (1, 2)
    assert (letter.message.headers, letter.message.body) == ((("a", 2),), None)
    bodies = [(revision.message.headers, revision.message.body) for revision in letter.revisions]
    assert bodies == [((("a", 1),), message.body), ((("a", 2),), message.body), ((("a", 2),), None)]


async def test_a_revision_on_top_of_an_old_one_is_refused(office: Office) -> None:
    [letter_id] = await office.letters(1)
    await office.desk.revise(letter_id, body=b"1", base=0, reason="first")

    with pytest.raises(Refused):
        await office.desk.revise(letter_id, body=b"2", base=0, reason="did not see the first")

    await office.desk.discard([letter_id], "test")
    with pytest.raises(TransitionRefused):
        await office.desk.revise(letter_id, body=b"3", base=1, reason="too late")


async def test_the_revised_message_is_what_is_sent(office: Office) -> None:
    [letter_id] = await office.letters(1)
    await office.desk.revise(letter_id, body=b"revised", base=0, reason="wrong")

    await office.desk.retry([letter_id])

    assert [message.body for message in office.broker.sent] == [b"revised"]


async def test_letters_are_paged_newest_first(office: Office) -> None:
    ids = await office.letters(3)
    office.clock.advance(timedelta(days=1).total_seconds())

    first = await office.desk.letters(LetterQuery(limit=2))
    rest = await office.desk.letters(LetterQuery(after=Place.of(first[-1])))

    assert [letter.id for letter in first + rest] == ids[::-1]
