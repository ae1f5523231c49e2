"""FIFO queues of SQS: the order of a message group holds whatever happens to its messages, and to who holds them.
On moto.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from redrive.clock import SystemClock
from redrive.control import RedriveTicket, stamp
from redrive.dead_letter import Entry
from redrive.dead_letter_queue import DeadLetterQueue, Drained
from redrive.errors import LeaseLost, PublishRefused, Unreachable
from redrive.message import Message
from redrive.pace import Pace
from redrive.stores import open_store
from redrive.transports import Delivery
from redrive.transports.sqs.leases import Lease
from redrive.transports.sqs.mailbox import Mailbox
from redrive.transports.sqs.transport import SqsTransport
from support.collecting import collector
from support.moto_server import MotoSqs
from support.patience import until
from support.sqs_broker import Broker, a_broker

DELAY, LEASE = 30.0, 60.0
HOUR = 3600.0


class Member:
    """Reads the queue. What comes is in `came`; `handles`, if it is set, is done with each."""

    def __init__(self, broker: Broker, prefetch: int, **options: Any) -> None:
        self.transport = broker.open(**({"visibility": LEASE} | options))
        self.came: list[Delivery] = []
        self.handles: Callable[[Delivery], Any] | None = None
        self._queue = broker.queue
        self._left = asyncio.Event()
        self._reading = asyncio.create_task(self._read(prefetch))

    async def _read(self, prefetch: int) -> None:
        async with aclosing(self.transport.receive(self._queue, prefetch=prefetch)) as deliveries:
            async for delivery in deliveries:
                self.came.append(delivery)
                if self.handles is not None:
                    await self.handles(delivery)

    @property
    def names(self) -> list[str]:
        return [name(each) for each in self.came]

    async def has(self, count: int) -> None:
        await until(lambda: len(self.came) == count)

    async def take(self, wanted: str, attempt: int = 1) -> Delivery:
        """That one, the last time that it came."""

        def found() -> list[Delivery]:
            return [each for each in self.came if (name(each), each.attempt) == (wanted, attempt)]

        await until(found)
        return found()[-1]

    async def mailbox(self) -> Mailbox:
        found: Mailbox = await until(lambda: self.transport._mailboxes.get(self._queue))
        return found

    async def has_read(self) -> None:
        """SQS was asked for more and had nothing to give."""
        mailbox, empty = await self.mailbox(), asyncio.Event()
        before = mailbox._fetch

        async def fetch(most: int) -> list[Lease]:
            found = await before(most)
            if not found:
                empty.set()
            return found

        mailbox._fetch = fetch
        async with asyncio.timeout(30):
            await empty.wait()
        mailbox._fetch = before

    async def stop_asking(self) -> None:
        """It asks SQS for no more, and keeps what it has."""
        mailbox = await self.mailbox()

        reached = asyncio.Event()

        async def fetch(_most: int) -> list[Lease]:
            reached.set()
            await self._left.wait()
            return []

        mailbox._fetch = fetch
        async with asyncio.timeout(30):
            await reached.wait()

    async def leave(self) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})
        self._left.set()


def name(delivery: Delivery) -> str:
    return (delivery.message.body or b"").decode()


@pytest_asyncio.fixture
async def broker(sqs: MotoSqs) -> AsyncIterator[Broker]:
    async with a_broker(sqs, ending=".fifo") as broker:
        yield broker


@pytest_asyncio.fixture
async def join(broker: Broker) -> AsyncIterator[Callable[..., Member]]:
    members: list[Member] = []

    def joined(prefetch: int = 10, **options: Any) -> Member:
        members.append(Member(broker, prefetch, **options))
        return members[-1]

    yield joined
    for member in members:
        await member.leave()


async def put(broker: Broker, *names: str) -> None:
    """Messages whose group is the first letter of their name."""
    for each in names:
        await broker.transport.send(broker.message(body=each.encode(), key=each[:1].encode()))


async def retry(member: Member, delivery: Delivery, delay: float = DELAY) -> None:
    await member.transport.retry(delivery, delivery.message, delay=delay, trail=b"trail")


# Order


async def test_a_groups_order_is_kept_over_failures_retries_and_a_dead_letter_in_the_middle(
    broker: Broker, join: Callable[..., Member]
) -> None:
    tries = {"a2": 3, "b1": 2, "b3": 2, "a6": 2}
    dead = broker.transport.names.dead_of(broker.queue)
    told: list[tuple[str, int]] = []

    def working(member: Member) -> Callable[[Delivery], Any]:
        async def work(delivery: Delivery) -> None:
            told.append((name(delivery), delivery.attempt))
            if delivery.attempt < tries.get(name(delivery), 1):
                await retry(member, delivery)
                return
            if name(delivery) == "a3":
                await member.transport.send(delivery.message, queue=dead, trail=b"trail")
            await member.transport.ack(delivery)

        return work

    await put(broker, "a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4", "a5", "b5", "a6", "b6")
    members = [join(prefetch=3, visibility=12 * HOUR), join(prefetch=3, visibility=12 * HOUR)]
    for member in members:
        member.handles = working(member)

    async def all_done() -> bool:
        broker.sqs.clock.advance(DELAY / 10)
        return {"a6", "b6"} <= {each for each, attempt in told if attempt == tries.get(each, 1)}

    await until(all_done)

    in_order = {
        group: [
            (f"{group}{number}", attempt)
            for number in range(1, 7)
            for attempt in range(1, tries.get(f"{group}{number}", 1) + 1)
        ]
        for group in "ab"
    }
    assert {group: [each for each in told if each[0][0] == group] for group in "ab"} == in_order
    assert name(await broker.take(dead)) == "a3"


async def test_groups_run_side_by_side_and_each_one_by_one(broker: Broker, join: Callable[..., Member]) -> None:
    await put(broker, "a1", "a2", "b1", "b2", "c1", "c2")
    member = join(prefetch=2)
    for count in (2, 3, 4, 5, 5, 6):  # the last two are of one group
        await member.has(count)
        in_hand = [each for each in member.came if not each.receipt.claimed]
        assert len({name(each)[0] for each in in_hand}) == len(in_hand)
        await member.transport.ack(in_hand[0])
    for group in "abc":
        assert [each for each in member.names if each[0] == group] == [f"{group}1", f"{group}2"]


async def test_what_is_sent_at_the_same_time_keeps_the_order_of_the_calls(
    broker: Broker, join: Callable[..., Member]
) -> None:
    names = [f"a{number}" for number in range(40)]
    await put(broker, names[0])  # the queue is known from then on
    messages = [broker.message(body=each.encode(), key=b"a") for each in names[1:]]
    await asyncio.gather(*(broker.transport.send(message) for message in messages))
    member = join()
    member.handles = member.transport.ack
    await member.has(40)
    assert member.names == names


# Retries in place


async def test_a_retry_keeps_its_place_while_its_process_lives_and_other_groups_go_on(
    broker: Broker, join: Callable[..., Member]
) -> None:
    await put(broker, "a1", "a2", "b1", "b2")
    member = join()
    first = await member.take("a1")
    await retry(member, first, delay=2 * LEASE)
    for _ in range(3):
        broker.sqs.clock.advance(2 * LEASE / 3 - 1)
        await member.transport._leases.renew()
    other = join()
    await other.has_read()
    await member.transport.ack(await member.take("b1"))
    await member.transport.ack(await member.take("b2"))
    assert (member.names, other.names) == (["a1", "b1", "b2"], [])

    broker.sqs.clock.advance(3)
    again = await member.take("a1", attempt=2)
    await member.transport.ack(again)
    await member.take("a2")

    assert (again.identity, again.trail, again.redelivered) == (first.identity, b"trail", False)
    assert again.first_attempt_at is not None
    assert other.names == []


async def test_a_retry_comes_when_it_is_due_though_sqs_has_nothing_to_say(
    broker: Broker, join: Callable[..., Member]
) -> None:
    await put(broker, "a1")
    member = join()
    first = await member.take("a1")
    await member.stop_asking()
    await retry(member, first)
    await until(lambda: broker.sqs.clock.sleeping)
    broker.sqs.clock.advance(DELAY)
    assert (await member.take("a1", attempt=2)).identity == first.identity


async def test_a_retry_of_a_closed_process_begins_anew_before_those_behind_it(
    broker: Broker, join: Callable[..., Member]
) -> None:
    await put(broker, "a1", "a2", "a3")
    member = join()
    await retry(member, await member.take("a1"))
    await member.transport.close()
    after = join()
    after.handles = after.transport.ack
    await after.has(3)
    assert [(name(each), each.attempt) for each in after.came] == [("a1", 1), ("a2", 1), ("a3", 1)]


async def test_a_retry_that_nobody_reads_for_is_kept(broker: Broker, join: Callable[..., Member]) -> None:
    await put(broker, "a1", "a2")
    member = join()
    await retry(member, await member.take("a1"))
    await member.leave()
    other = join()
    await other.has_read()
    broker.sqs.clock.advance(DELAY)
    assert (await broker.take(transport=member.transport)).attempt == 2
    assert other.names == []


async def test_a_retry_that_would_outlast_twelve_hours_is_refused_and_can_be_dead_lettered(
    broker: Broker, join: Callable[..., Member]
) -> None:
    await put(broker, "a1")
    member = join(visibility=12 * HOUR)
    first = await member.take("a1")
    await retry(member, first, delay=6 * HOUR)
    broker.sqs.clock.advance(6 * HOUR)
    again = await member.take("a1", attempt=2)
    for delay in (6 * HOUR, 1e15):
        with pytest.raises(PublishRefused, match="12 hours") as refused:
            await retry(member, again, delay=delay)
        assert (refused.value.permanent, bool(refused.value.remedy)) == (True, True)
    await member.transport.ack(again)
    assert await broker.transport.depths([broker.queue]) == {}


# Leases


async def test_of_a_lost_lease_those_behind_are_given_back_at_once(
    broker: Broker, join: Callable[..., Member]
) -> None:
    await put(broker, "a1", "a2", "a3", "b1")
    member, url = join(), await broker.url()
    first = await member.take("a1")
    await broker.theirs.delete_message(QueueUrl=url, ReceiptHandle=first.receipt.handle)
    await until(lambda: member.names == ["a1", "b1"])
    await member.stop_asking()
    other = join()
    await member.transport._leases.renew()
    await other.transport.ack(await other.take("a2"))
    await other.take("a3")
    with pytest.raises(LeaseLost):
        await member.transport.ack(first)
    assert (member.names, other.names) == (["a1", "b1"], ["a2", "a3"])


@pytest.mark.parametrize("waits", [False, True], ids=["in-hand", "waits"])
async def test_a_lease_that_ran_out_takes_its_group_with_it(
    broker: Broker, join: Callable[..., Member], *, waits: bool
) -> None:
    await put(broker, "a1", "a2", "a3")
    member = join(prefetch=3)
    first = await member.take("a1")
    if waits:
        await retry(member, first, delay=2 * LEASE)
    await member.stop_asking()
    broker.sqs.clock.advance(LEASE + 1)
    other = join()
    current = await other.take("a1")
    with pytest.raises(LeaseLost):
        await member.transport.ack(first)
    await member.transport._leases.renew()
    await other.transport.ack(current)
    await other.transport.ack(await other.take("a2"))
    await other.take("a3")
    assert (current.attempt, current.redelivered) == (1, True)
    assert member.names == ["a1"]


@pytest.mark.parametrize("waits", [False, True], ids=["in-hand", "waits"])
async def test_of_one_lease_that_was_not_renewed_those_behind_are_not_handed_out(
    broker: Broker, join: Callable[..., Member], monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    await put(broker, "a1", "a2", "a3")
    member = join()
    first = await member.take("a1")
    if waits:
        await retry(member, first, delay=2 * LEASE)
    await member.stop_asking()
    leases, hide = member.transport._leases, member.transport._hide

    async def hide_others(lease: Lease, seconds: int) -> None:
        if lease.handle == first.receipt.handle:
            raise Unreachable("lost on the way")
        await hide(lease, seconds)

    monkeypatch.setattr(leases, "_hide", hide_others)
    broker.sqs.clock.advance(LEASE - 1)
    await leases.renew()
    broker.sqs.clock.advance(2)
    other = join()
    other.handles = other.transport.ack
    if waits:
        await leases.renew()
    else:
        with pytest.raises(LeaseLost):
            await member.transport.ack(first)
    await other.has(3)

    assert (member.names, other.names) == (["a1"], ["a1", "a2", "a3"])
    assert other.came[0].redelivered


async def test_a_group_that_sqs_gives_anew_is_begun_anew(broker: Broker, join: Callable[..., Member]) -> None:
    await put(broker, "a1", "a2", "a3")
    member = join()
    stale = await member.take("a1")
    broker.sqs.clock.advance(LEASE + 1)
    await member.has(2)
    with pytest.raises(LeaseLost):
        await member.transport.ack(stale)
    member.handles = member.transport.ack
    await member.transport.ack(member.came[1])
    await member.has(4)
    assert member.names == ["a1", "a1", "a2", "a3"]
    assert member.came[1].redelivered


async def test_what_is_released_goes_before_those_that_were_behind_it(
    broker: Broker, join: Callable[..., Member]
) -> None:
    await put(broker, "a1", "a2", "a3")
    member = join()
    first = await member.take("a1")
    await member.stop_asking()
    other = join()
    other.handles = other.transport.ack
    await member.transport.release(first)
    await other.has(3)
    assert (member.names, other.names) == (["a1"], ["a1", "a2", "a3"])


async def test_an_attempt_is_remembered_only_if_nobody_else_had_the_message(broker: Broker) -> None:
    await put(broker, "a1")
    transport, other = broker.transport, broker.open()
    first = await broker.take()
    await transport.retry(first, first.message, delay=0, trail=b"trail")
    await transport.release(await broker.take())
    again = await broker.take()
    await transport.release(again)
    await other.release(await broker.take(transport=other))
    assert (again.attempt, again.trail) == (2, b"trail")
    assert (await broker.take()).attempt == 1


async def test_what_a_reader_leaves_behind_goes_to_others_when_the_first_is_done(
    broker: Broker, join: Callable[..., Member]
) -> None:
    await put(broker, "a1", "a2")
    member = join()
    first = await member.take("a1")
    await member.leave()
    other = join()
    await other.has_read()
    assert other.names == []
    await member.transport.ack(first)
    await other.take("a2")


# Delays


async def test_a_group_waits_behind_a_message_that_was_sent_with_a_delay(
    broker: Broker, join: Callable[..., Member]
) -> None:
    await put(broker, "a1")
    await broker.transport.send(broker.message(body=b"a2", key=b"a"), delay=DELAY)
    await put(broker, "a3", "b1")
    member = join()
    member.handles = member.transport.ack
    await member.take("b1")
    await member.has_read()
    assert sorted(member.names) == ["a1", "b1"]
    broker.sqs.clock.advance(DELAY)
    await member.take("a3")
    assert member.names[-2:] == ["a2", "a3"]
    assert not any(each.redelivered for each in member.came)


# Dead letters that have to stay hold up those behind them, and nobody waits for these


async def are_ready(broker: Broker, wanted: dict[str, int]) -> bool:
    """A request that still waits at SQS may get what was given back, and gives it back too."""
    found = await broker.transport.depths([broker.queue])
    return {name: depth.ready for name, depth in found.items()} == wanted


async def test_who_puts_dead_letters_back_does_not_wait_behind_one_that_is_refused(
    broker: Broker,
) -> None:
    await broker.made(FifoQueue="true", MaximumMessageSize="1024")
    dead = broker.transport.names.dead_of(broker.queue)
    for body in (b"small", os.urandom(2000), b"behind it", b"last"):
        await broker.transport.send(broker.message(body=body), queue=dead)
    queue = DeadLetterQueue(dead, transport=broker.transport)
    async with asyncio.timeout(60):
        drained = await queue.drain(4, pace=Pace(None, SystemClock()))
    assert drained == Drained(sent=1, refused=1, untried=2)
    await until(lambda: are_ready(broker, {broker.queue: 1, dead: 3}))


class Picky:
    """A real store that will not have one message."""

    def __init__(self, store: Any, refuses: bytes) -> None:
        self._store = store
        self._refuses = refuses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def record(self, entry: Entry) -> Any:
        if entry.message.body == self._refuses:
            raise ValueError("will not have it")
        return await self._store.record(entry)

    async def record_together(self, entries: list[Entry]) -> Any:
        if any(entry.message.body == self._refuses for entry in entries):
            raise ValueError("will not have it")
        return await self._store.record_together(entries)


async def test_who_collects_does_not_wait_for_those_behind_one_that_the_store_refuses(
    broker: Broker, tmp_path: Path
) -> None:
    dead, store = broker.transport.names.dead_of(broker.queue), open_store(f"sqlite:///{tmp_path}/letters.db")
    for body in (b"first", b"bad", b"behind it"):
        await broker.transport.send(broker.message(body=body), queue=dead)
    collecting = collector(broker.transport, Picky(store, b"bad"), dead)
    async with asyncio.timeout(60):
        await collecting.run(once=True)
    counts = collecting.collected[dead]
    assert (counts.new, counts.refused) == (1, 1)
    await until(lambda: are_ready(broker, {dead: 2}))
    await store.close()


# Groups and repetitions


async def raw(broker: Broker, queue: str = "") -> list[dict[str, Any]]:
    """What another program receives."""
    told = await broker.theirs.receive_message(
        QueueUrl=await broker.url(queue),
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["All"],
    )
    found: list[dict[str, Any]] = told.get("Messages", [])
    return found


async def test_another_programs_group_is_kept_through_retry_dead_letter_and_redrive(broker: Broker) -> None:
    url = await broker.made(FifoQueue="true")
    dead, transport = broker.transport.names.dead_of(broker.queue), broker.transport
    for group in ("redrive:theirs", "customer#17"):
        await broker.theirs.send_message(
            QueueUrl=url, MessageBody=group, MessageGroupId=group, MessageDeduplicationId=group
        )
        first = await broker.take()
        await transport.retry(first, first.message, delay=0, trail=b"trail")
        again = await broker.take()
        await transport.send(again.message, queue=dead, trail=b"trail")
        await transport.ack(again)
        letter = await broker.take(dead)
        assert letter.message.key == first.message.key == group.encode()
        await transport.send(letter.message, queue=broker.queue)
        await transport.ack(letter)
        [back] = await raw(broker)
        assert back["Attributes"]["MessageGroupId"] == back["Body"] == group
        await broker.theirs.delete_message(QueueUrl=url, ReceiptHandle=back["ReceiptHandle"])


@pytest.mark.parametrize("key", [None, b"", b"\x00\xff", b"redrive:no-key", b"k" * 129])
async def test_a_key_that_is_no_group_stays_what_it_is(broker: Broker, key: bytes | None) -> None:
    theirs = broker.message(key=key)
    await broker.transport.send(theirs)
    delivery = await broker.take()
    assert delivery.message == theirs


async def test_a_message_of_a_standard_queue_that_is_sent_to_a_fifo_queue_has_no_key_there(broker: Broker) -> None:
    plain = broker.queue.removesuffix(".fifo")
    await broker.theirs.send_message(QueueUrl=await broker.made(plain), MessageBody="theirs")
    foreign = await broker.take(plain)
    await broker.transport.send(foreign.message, queue=broker.queue)
    there = await broker.take()
    assert (there.message.body, there.message.key) == (b"theirs", None)


async def test_a_key_that_was_edited_and_is_no_group_is_not_lost(broker: Broker) -> None:
    url = await broker.made(FifoQueue="true")
    await broker.theirs.send_message(
        QueueUrl=url, MessageBody="theirs", MessageGroupId="before", MessageDeduplicationId="1"
    )
    foreign = await broker.take()
    await broker.transport.ack(foreign)
    await broker.transport.send(replace(foreign.message, key=b"\x00after"))
    assert (await broker.take()).message.key == b"\x00after"


def redriven(broker: Broker, message: Message) -> Message:
    return message.with_headers(stamp(message.headers, RedriveTicket("0192", "letter", 1, broker.queue), b"k"))


@pytest.mark.parametrize("by_content", ["true", "false"])
async def test_a_redrive_that_is_repeated_is_there_once_and_everything_else_each_time(
    broker: Broker, by_content: str
) -> None:
    await broker.made(FifoQueue="true", ContentBasedDeduplication=by_content)
    letter, copied = (redriven(broker, broker.message(body=b"same")) for _ in range(2))
    plain = broker.message(body=b"same")
    other = broker.open()
    for message in (letter, letter, plain, plain, copied):
        await broker.transport.send(message)
    await other.send(letter)

    [depth] = (await broker.transport.depths([broker.queue])).values()
    assert depth.total == 4


async def test_dead_letters_with_the_same_ticket_are_all_kept(broker: Broker) -> None:
    """A producer may copy headers from one message to another."""
    message = redriven(broker, broker.message())
    dead = broker.transport.names.dead_of(broker.queue)
    for _ in range(2):
        await broker.transport.send(message, queue=dead, trail=b"trail")
    assert (await broker.transport.depths([broker.queue]))[dead].total == 2


async def test_a_request_that_is_repeated_is_one_message(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is lost, or the queue was looked at anew: SQS knows it by its id."""
    entries: list[dict[str, Any]] = []
    ask = broker.transport._client.call

    async def call(operation: str, **given: Any) -> dict[str, Any]:
        answer = await ask(operation, **given)
        if operation == "send_message_batch":
            entries.extend(given["Entries"])
            if len(entries) == 1:
                told = [{"Id": "0", "SenderFault": True, "Code": "InvalidParameterValue", "Message": ""}]
                return {"Failed": told}
        return answer

    monkeypatch.setattr(broker.transport._client, "call", call)
    await broker.transport.send(broker.message())
    assert len({each["MessageDeduplicationId"] for each in entries}) == 1
    assert (len(entries), (await broker.transport.depths([broker.queue]))[broker.queue].total) == (2, 1)


async def test_a_fifo_queue_that_is_missing_is_made_as_one(broker: Broker) -> None:
    transport: SqsTransport = broker.transport
    await transport.send(broker.message())
    facts = await transport.queues().facts(broker.queue)
    assert facts is not None
    assert facts.is_fifo
    assert (facts.told["ContentBasedDeduplication"], facts.retention) == ("false", 14 * 86_400)
