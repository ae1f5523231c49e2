"""Amazon SQS. What takes a message's place is in SQS before the message is deleted, and every entry of every batch
is looked at.

A retry is a copy in the same queue that SQS delivers later: there is no retry queue. What SQS cannot delay for so
long (fifteen minutes) is received when it can, and made invisible until it is due (twelve hours at a time).

In a FIFO queue a retry stays in its place: it waits here, its lease kept, and its message group waits behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from redrive import faults
from redrive.clock import Clock, SystemClock, new_id
from redrive.epoch import microseconds
from redrive.errors import ConfigurationError, LeaseLost, PublishRefused, RedriveError, Unreachable, UsageError
from redrive.sqs_origin import origin_of
from redrive.transports import Capabilities, Delivery, LostLeases, Names, QueueDepth
from redrive.transports.sqs import address as addresses
from redrive.transports.sqs import fifo
from redrive.transports.sqs.client import SqsClient
from redrive.transports.sqs.delays import LONGEST_DELAY, LONGEST_HOP, LONGEST_INVISIBLE, hops_of, longest_delay
from redrive.transports.sqs.fifo import is_fifo
from redrive.transports.sqs.leases import Lease, Leases
from redrive.transports.sqs.lines import Lines
from redrive.transports.sqs.mailbox import Mailbox
from redrive.transports.sqs.move_tasks import MoveTasks
from redrive.transports.sqs.note import Note
from redrive.transports.sqs.packing import as_sent, pack
from redrive.transports.sqs.queues import Queues, check_name
from redrive.transports.sqs.reading import arrived, note_of, noted_moment, unpack
from redrive.transports.sqs.refusals import SqsRefusal, not_sent, unusable
from redrive.transports.sqs.requests import Requests
from redrive.transports.sqs.shelf import Pile
from redrive.transports.sqs.system_attributes import DEDUPLICATION, GROUP, again, key_told

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterable, Mapping

    from redrive.message import Message
    from redrive.transports.sqs.packing import Packed
    from redrive.transports.sqs.queue_facts import QueueFacts
    from redrive.transports.sqs.reading import Arrived
    from redrive.transports.sqs.shelf import Shelf

_LONGEST_WAIT = 20


class SqsTransport:
    """`visibility`: seconds a delivery is held without a heartbeat. `wait`: seconds a request waits at SQS for
    messages. `declare`: "missing" makes queues that are not there, "never" refuses instead.
    """

    capabilities = Capabilities(ordered=False, exact_depths=False, clean_release=False, by_requests=True)
    _of_fifo = Capabilities(
        exact_depths=False,
        clean_release=False,
        delays_apart=False,
        durable_retries=False,
        side_by_side=False,
    )

    def __init__(
        self,
        url: str,
        *,
        names: Names | None = None,
        clock: Clock | None = None,
        declare: str = "missing",
        visibility: float = 60.0,
        wait: float = 10.0,
        endpoint: str = "",
        connect_timeout: float = 10.0,
        answer_timeout: float = 20.0,
    ) -> None:
        if declare not in {"missing", "never"}:
            raise ConfigurationError(f"declare = {declare!r} is not possible", remedy='use "missing" or "never"')
        if not 1 <= visibility <= LONGEST_INVISIBLE or not 1 <= wait <= _LONGEST_WAIT:
            raise ConfigurationError(
                "visibility must be 1 s to 12 h, and wait 1 s to 20 s: SQS takes nothing else",
                remedy="leave them out: 60 s and 10 s are the defaults",
            )
        self.names = replace(names or Names(), ending=fifo.ENDING)
        self._clock = clock or SystemClock()
        self._wait = math.ceil(wait)
        self._client = SqsClient(
            addresses.parse(url),
            endpoint=endpoint,
            connect_timeout=connect_timeout,
            patience=answer_timeout + self._wait,
        )
        self._queues = Queues(self._client, declare=declare == "missing")
        self.lost = LostLeases()
        self._leases = Leases(math.ceil(visibility), now=self._clock.monotonic, hide=self._hide, lost=self.lost)
        self._mailboxes: dict[str, Mailbox] = {}
        self._requests = Requests(self._client, patience=self._leases.beat_every)
        self._used: set[str] = set()
        self._giving_back: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Lock()
        self._closed = False

    def capabilities_of(self, queue: str) -> Capabilities:
        return self._of_fifo if is_fifo(queue) else self.capabilities

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        target = message.queue if queue is None else queue
        note = self._note(message, target, delay=delay, trail=trail)
        origin = origin_of(message)
        foreign = origin is not None and not origin.ours and trail is None and delay <= 0
        message = as_sent(message, target) if foreign else message
        told = again({} if origin is None else origin.system, message.key)
        if is_fifo(target):
            told[GROUP] = fifo.group_of(message)
            told[DEDUPLICATION] = fifo.deduplication_of(message) if trail is None else new_id()
        foreign = foreign and key_told(told) == message.key
        await self._publish(target, message, note, delay=delay, as_it_came=foreign, told=told)

    def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
        if prefetch < 1:
            raise UsageError(f"prefetch must be at least 1, not {prefetch}")
        return self._deliveries(queue, prefetch)

    async def ack(self, delivery: Delivery) -> None:
        lease: Lease = delivery.receipt
        with self._leases.settling(lease):
            await self._delete(lease)

    async def retry(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> None:
        """Killed between the two, both are there: the copy, and the message that comes again with its identity."""
        lease: Lease = delivery.receipt
        if lease.line is not None:
            self._wait_in_line(delivery, message, delay=max(delay, 0.0), trail=trail)
            return
        with self._leases.settling(lease):
            if not lease.replaced:
                note = self._retry_note(delivery, message, delay=delay, trail=trail)
                told = again(lease.arrived.system, message.key)
                await self._publish(delivery.queue, message, note, delay=delay, told=told)
                lease.replaced = True
            faults.point("sqs.retry_confirmed")
            await self._delete(lease)

    async def release(self, delivery: Delivery) -> None:
        lease: Lease = delivery.receipt
        self._leases.claim(lease)
        # If it cannot be given back, nobody will try again: its lease must run out.
        self._leases.settle(lease)
        await self._show(lease)

    async def depths(self, queues: Collection[str] = ()) -> Mapping[str, QueueDepth]:
        """As SQS counts them, about. What waits is told as the retry queue's, whatever it waits for."""
        self._check_open()
        found: dict[str, QueueDepth] = {}
        for name in sorted(queues or self._used):
            for told, depth in (await self._depths_of(name)).items():
                if depth.total:
                    found[told] = depth.plus(found.get(told))
        return found

    async def close(self) -> None:
        async with self._closing:
            self._closed = True
            mailboxes, self._mailboxes = list(self._mailboxes.values()), {}
            await asyncio.gather(*(each.close() for each in mailboxes))
            await self._leases.stop()
            held = self._leases.held()
            for lease in held:
                if lease.claimed:
                    self._leases.settle(lease)
            await self._give_back(held)
            if self._giving_back:
                await asyncio.wait(self._giving_back)
            await self._requests.finished()
            await self._client.close()

    def queues(self) -> Queues:
        """For those who set up queues, or only look."""
        self._check_open()
        return self._queues

    def mover(self) -> MoveTasks:
        """For those who let SQS move its own dead letters back."""
        self._check_open()
        return MoveTasks(self._client, self._queues)

    # Sending.

    async def _publish(
        self,
        target: str,
        message: Message,
        note: Note,
        *,
        delay: float,
        told: Mapping[str, Any],
        as_it_came: bool = False,
    ) -> None:
        """`told`: what SQS is told of it beside. In a FIFO queue, if it is sent twice, SQS takes it once."""
        self._check_open()
        check_name(target)
        self._used.add(self.names.home_of_dead(target) or target)
        once = partial(self._publish_once, target, message, note, delay=delay, as_it_came=as_it_came, told=told)
        try:
            await once()
        except PublishRefused:
            self._queues.forget(target)  # it was deleted, or takes less than before
            await once()

    async def _publish_once(
        self,
        target: str,
        message: Message,
        note: Note,
        *,
        delay: float,
        as_it_came: bool,
        told: Mapping[str, Any],
    ) -> None:
        queue = await self._queues.ensured(target)
        if delay > longest_delay(queue.retention):
            raise PublishRefused(
                f"SQS would delete a message that waits {delay:.0f} s in queue {target!r} before it is due",
                permanent=True,
                remedy=f"its MessageRetentionPeriod is {queue.retention} s: raise it, or make the delay shorter",
            )
        packed = pack(message, note, fits=queue.max_bytes, as_it_came=as_it_came)
        faults.point("sqs.before_send")
        try:
            entry = {**_entry(packed, 0.0 if is_fifo(target) else delay), **told}
            await self._requests.send(queue, entry, size=packed.size)
        except SqsRefusal as refusal:
            raise not_sent(refusal, target) from None
        faults.point("sqs.sent")

    def _note(self, message: Message, place: str, *, delay: float, trail: bytes | None) -> Note:
        now = microseconds(self._clock.now())
        return Note(
            place=place,
            queue=_other_queue(message.queue, place),
            overlay=message.overlay,
            trail=trail,
            put_at=now,
            due_at=now + round(delay * 1e6) if delay > 0 else None,
            hops=0 if is_fifo(place) else hops_of(delay),
        )

    def _retry_note(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> Note:
        now = microseconds(self._clock.now())
        first = delivery.first_attempt_at
        return Note(
            place=delivery.queue,
            identity=delivery.identity,
            queue=_other_queue(message.queue, delivery.queue),
            overlay=message.overlay,
            attempt=delivery.attempt + 1,
            first_attempt_at=now if first is None else microseconds(first),
            trail=trail,
            put_at=now,
            due_at=now + round(delay * 1e6) if delay > 0 else None,
            hops=hops_of(delay),
        )

    # Receiving.

    async def _deliveries(self, queue: str, prefetch: int) -> AsyncGenerator[Delivery]:
        mailbox = await self._mailbox(queue)
        taker = mailbox.join(prefetch)
        try:
            while True:
                if (lease := mailbox.take(taker)) is not None:
                    yield self._delivery(queue, lease)
                elif not await mailbox.wait(taker):
                    return
        finally:
            await mailbox.leave(taker)

    async def _mailbox(self, name: str) -> Mailbox:
        self._check_open()
        queue = await self._queues.ensured(name)
        self._check_open()
        self._used.add(self.names.home_of_dead(name) or name)
        found = self._mailboxes.get(name)
        if found is None:
            found = self._mailboxes[name] = Mailbox(
                self._shelf(name),
                fetch=partial(self._fetch, queue),
                give_back=self._give_back,
                keeps=self._leases.keeps,
                sleep=self._clock.sleep,
            )
        return found

    def _shelf(self, name: str) -> Shelf:
        if not is_fifo(name):
            return Pile()
        return Lines(
            now=lambda: microseconds(self._clock.now()),
            is_ours=self._leases.is_ours,
            give_back=self._give_back_soon,
        )

    async def _fetch(self, queue: QueueFacts, most: int) -> list[Lease]:
        try:
            answer = await self._client.call(
                "receive_message",
                QueueUrl=queue.url,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=self._wait,
                VisibilityTimeout=self._leases.span,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
                # A repetition of the request gets what the first one took, which would else lock its groups.
                **({"ReceiveRequestAttemptId": new_id()} if is_fifo(queue.name) else {}),
            )
        except SqsRefusal as refusal:
            self._queues.forget(queue.name)
            raise unusable(refusal) from None
        since = self._clock.monotonic()
        came_at = self._clock.now()
        leases = []
        for raw in answer.get("Messages", ()):
            came = arrived(raw, queue=queue.name, arn=queue.arn, came_at=came_at)
            lease = Lease(
                queue=queue,
                arrived=came,
                handle=raw["ReceiptHandle"],
                since=since,
                until=since + self._leases.span,
                group=came.group,
                due=self._due(came),
            )
            if not await self._waits_on(lease):
                self._leases.take(lease)
                leases.append(lease)
        return leases

    async def _waits_on(self, lease: Lease) -> bool:
        """Whether it is not due, and was therefore made invisible for as long as it can be."""
        note = self._note_of(lease.arrived)
        left = math.ceil((lease.due - microseconds(self._clock.now())) / 1e6)
        if note is None or not note.hops or left <= 0 or is_fifo(lease.queue.name):
            return False
        with contextlib.suppress(RedriveError, SqsRefusal):  # then its lease runs out, and it is received again
            await self._hide(lease, min(left, LONGEST_HOP))
        return True

    def _due(self, came: Arrived) -> int:
        """Of one that was sent with a delay to where it lies; 0: at once."""
        note = self._note_of(came)
        return 0 if note is None or note.place != came.queue else note.due_at or 0

    def _delivery(self, queue: str, lease: Lease) -> Delivery:
        came = lease.arrived
        if lease.again is not None:
            return replace(lease.again, receipt=lease, redelivered=came.receptions > 1)
        note = self._note_of(came)
        told = note or Note()
        since = told.due_at or told.put_at
        return Delivery(
            message=unpack(came, note),
            queue=queue,
            identity=told.identity or came.identity,
            attempt=told.attempt,
            redelivered=came.receptions > 1 + told.hops,
            first_attempt_at=None if told.first_attempt_at is None else noted_moment(told.first_attempt_at),
            trail=told.trail,
            receipt=lease,
            due_since=came.sent_at if since is None else noted_moment(since),
        )

    def _note_of(self, came: Arrived) -> Note | None:
        """The driver's own, if it has put the message where it lies, or SQS itself has moved it from there between
        a queue and its dead letters.
        """
        note = note_of(came)
        if note is None:
            return None
        family = {came.queue, self.names.home_of_dead(came.queue), self.names.dead_of(came.queue)}
        return note if note.place in family else None

    # Settling.

    async def _delete(self, lease: Lease) -> None:
        try:
            await self._requests.delete(lease.queue, lease.handle)
            lease.deleted = True
        except SqsRefusal as refusal:
            if refusal.is_of_receipt:
                raise LeaseLost(f"message {lease.arrived.id} is no longer held: {refusal.code}") from None
            raise unusable(refusal) from None

    async def _hide(self, lease: Lease, seconds: int) -> None:
        await self._requests.hide(lease.queue, lease.handle, seconds)

    async def _show(self, lease: Lease) -> None:
        """To everybody, at once."""
        try:
            await self._hide(lease, 0)
        except SqsRefusal as refusal:
            if not refusal.is_of_receipt:
                raise unusable(refusal) from None

    def _wait_in_line(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> None:
        """For the next attempt."""
        lease: Lease = delivery.receipt
        self._leases.claim(lease)
        if self._clock.monotonic() - lease.since + delay > LONGEST_HOP:
            lease.claimed = False
            raise PublishRefused(
                f"a message of a FIFO queue cannot wait {delay:.0f} s in its place: SQS gives it to others "
                "12 hours after it was received",
                permanent=True,
                remedy="let retries be sooner, or use a standard queue, where a retry is a new message",
            )
        now = self._clock.now()
        again = replace(
            delivery,
            message=message,
            attempt=delivery.attempt + 1,
            first_attempt_at=delivery.first_attempt_at or now,
            trail=trail,
            due_since=now + timedelta(seconds=delay),
        )
        self._leases.wait(lease, again, microseconds(now) + round(delay * 1e6))
        faults.point("sqs.kept")

    def _give_back_soon(self, leases: list[Lease]) -> None:
        """Those that are ours and in nobody's hands."""
        ours = [each for each in leases if self._leases.is_ours(each) and each.holder is None]
        if ours:
            task = asyncio.create_task(self._give_back(ours))
            self._giving_back.add(task)
            task.add_done_callback(self._giving_back.discard)

    async def _give_back(self, leases: Iterable[Lease]) -> None:
        """In the order in which they came. What cannot be given back comes when its lease runs out."""
        ours = sorted((lease for lease in leases if not lease.claimed), key=attrgetter("number"))
        for lease in ours:
            lease.claimed = True
        for lease in ours:
            self._leases.settle(lease)
        await asyncio.gather(*(self._show(lease) for lease in ours), return_exceptions=True)

    # Depths.

    async def _depths_of(self, name: str) -> dict[str, QueueDepth]:
        own = await self._depth(name)
        if self.names.home_of_dead(name) is not None:
            return {name: own}
        dead = self.names.dead_of(name)
        return {
            name: QueueDepth(own.ready, 0, own.leased),
            self.names.retry_of(name): QueueDepth(0, own.delayed, 0),
            dead: await self._depth(dead),
        }

    async def _depth(self, name: str) -> QueueDepth:
        facts = await self._queues.facts(name)
        if facts is None:
            return QueueDepth(0, 0, 0)
        return QueueDepth(facts.count(""), facts.count("Delayed"), facts.count("NotVisible"))

    def _check_open(self) -> None:
        if self._closed:
            raise Unreachable("the transport is closed", remedy="open a new one")


def _entry(packed: Packed, delay: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"MessageBody": packed.body}
    if packed.attributes:
        entry["MessageAttributes"] = packed.attributes
    if delay > 0:  # else as the queue has it
        entry["DelaySeconds"] = min(math.ceil(round(delay, 3)), LONGEST_DELAY)
    return entry


def _other_queue(own: str, place: str) -> bytes | None:
    return None if own == place else own.encode("utf-8", "surrogatepass")
