"""The records of one queue and its retries for one consumer group, in the event loop.

It outlives the iterators that take from it: leaving a group and joining it again makes everybody else wait.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from redrive.epoch import microseconds
from redrive.errors import Unreachable
from redrive.transports.kafka.assigned import AssignedPartition, Receipt
from redrive.transports.kafka.poller import Poller, RawRecord
from redrive.transports.kafka.record import note_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from redrive.clock import Clock
    from redrive.errors import RedriveError
    from redrive.transports import Delivery
    from redrive.transports.kafka.note import Note
    from redrive.transports.kafka.poller import Assignment, Place
    from redrive.transports.kafka.record import WireHeaders

    Read = Callable[["Waiting", Receipt], Delivery]

log = structlog.get_logger("redrive.kafka")

_MOST_BYTES = 64 * 2**20
"""Of records that were read and not handed out."""
_LEAST_SPAN, _RETRY_SPAN = 100, 1000
_LONGEST_SLEEP = 60.0


class Taker:
    """One iterator."""

    __slots__ = ("prefetch", "unsettled", "waiting")

    def __init__(self, prefetch: int) -> None:
        self.prefetch = prefetch
        self.unsettled = 0
        self.waiting: asyncio.Future[None] | None = None

    def put_down(self) -> None:
        self.unsettled -= 1
        self.wake()

    def wake(self) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)


class Waiting(NamedTuple):
    """A record that nobody has yet."""

    due: int
    """Microseconds since 1970; 0: at once."""
    offset: int
    assigned: AssignedPartition
    raw: RawRecord
    headers: WireHeaders
    note: Note | None

    @property
    def size(self) -> int:
        return len(self.raw)


class Subscription:
    """`plain` is the queue's own topic; all others hold retries."""

    def __init__(
        self,
        plain: str,
        patterns: Sequence[str],
        settings: Mapping[str, Any],
        *,
        group: str,
        read: Read,
        describe: Callable[[str, int], tuple[str, int, str]],
        clock: Clock,
        prefetch: int,
        grace: float,
        from_latest: bool,
        on_end: Callable[[Subscription], None],
    ) -> None:
        self.held: dict[Place, AssignedPartition] = {}
        self.want = 0
        self.counted = 0
        self.error: RedriveError | None = None
        self._plain = plain
        self._group = group
        self._read = read
        self._describe = describe
        self._clock = clock
        self._grace = grace
        self._on_end = on_end
        self._span = max(_LEAST_SPAN, 4 * prefetch)
        self._loop = asyncio.get_running_loop()
        self._takers: list[Taker] = []
        self._ready: deque[Waiting] = deque()
        self._late: list[tuple[int, int, Waiting]] = []
        self._order = 0
        self._alarm: asyncio.Task[None] | None = None
        self._rings_at = 0
        self._bytes = 0
        self._settled = asyncio.Event()
        self._over = asyncio.Event()
        self._ending = False
        self._poller = Poller(
            self,
            settings,
            [plain, *patterns],
            loop=self._loop,
            span=max(self._span, _RETRY_SPAN),
            grace=grace,
            from_latest=from_latest,
        )
        self._poller.start()

    async def deliveries(self, prefetch: int) -> AsyncGenerator[Delivery]:
        if self._over.is_set() and self.error is not None:
            raise self.error
        self.error = None
        taker = Taker(prefetch)
        self._takers.append(taker)
        self._reckon()
        try:
            while not self._ending:
                if self._ready and taker.unsettled < prefetch:
                    waiting = self._ready.popleft()
                    self._bytes -= waiting.size
                    if len(self._ready) <= prefetch // 2:
                        self._reckon()
                    yield self._hand_out(waiting, taker)
                    continue
                taker.waiting = self._loop.create_future()
                try:
                    await taker.waiting
                finally:
                    taker.waiting = None
                if self.error is not None:
                    raise self.error
        finally:
            self._takers.remove(taker)
            self._reckon()
            for each in self._takers:
                each.wake()

    def _hand_out(self, waiting: Waiting, taker: Taker) -> Delivery:
        receipt = Receipt(self, waiting, taker)
        taker.unsettled += 1
        waiting.assigned.in_hand += 1
        return self._read(waiting, receipt)

    def finish(self, receipt: Receipt) -> None:
        """It is claimed, and done for good."""
        assigned = receipt.assigned
        assigned.finish(receipt.offset)
        self._put_down(receipt)
        if assigned.halted and assigned.reach <= assigned.span // 2:
            assigned.halted = False
            self._poller.need.set()

    def give_back(self, receipt: Receipt) -> None:
        """It is claimed, and goes to the next who asks."""
        self._ready.appendleft(receipt.record)
        self._bytes += receipt.record.size
        self._put_down(receipt)
        self._wake()

    def _put_down(self, receipt: Receipt) -> None:
        receipt.assigned.in_hand -= 1
        receipt.taker.put_down()
        if not receipt.assigned.in_hand:
            self._settled.set()

    def leased(self, topic: str) -> int:
        return sum(each.in_hand for each in self.held.values() if each.topic == topic)

    def done_ahead(self, topic: str) -> int:
        return sum(each.done_ahead for each in self.held.values() if each.topic == topic)

    def look_for_topics(self) -> None:
        self._poller.look_for_topics()

    async def close(self) -> None:
        self._ending = True
        self._wake()
        self._poller.end()
        await self._over.wait()

    # What the poller tells.

    def assigned(self, partitions: list[Assignment]) -> None:
        for each in partitions:
            span = self._span if each.topic == self._plain else max(self._span, _RETRY_SPAN)
            name, count, group = self._describe(each.topic, each.partition)
            self.held[each.topic, each.partition] = AssignedPartition(
                each.topic,
                each.partition,
                name=name,
                partitions=count,
                group=group,
                start=each.start,
                suspect_until=each.suspect_until,
                span=span,
            )

    def arrived(self, batch: list[RawRecord]) -> None:
        self.error = None
        self.want -= len(batch)
        self.counted += len(batch)
        ready, held = self._ready, self.held
        for raw in batch:
            topic, offset = raw.topic(), raw.offset()
            assigned = held.get((topic, raw.partition()))
            if assigned is None or not assigned.come(offset):
                continue
            if assigned.reach > assigned.span:
                assigned.halted = True
            headers = _headers_of(raw)
            note = note_of(topic, headers) if headers else None
            if note is not None and note.group and note.group != self._group:
                assigned.finish(offset)
                continue
            waiting = Waiting(0 if note is None else note.due_at or 0, offset, assigned, raw, headers, note)
            self._bytes += waiting.size
            if waiting.due and waiting.due > self._now():
                self._keep_late(waiting)
            else:
                ready.append(waiting)
        self._reckon()
        self._wake()

    def reached(self, ends: list[tuple[str, int, int]]) -> None:
        for topic, partition, offset in ends:
            if (assigned := self.held.get((topic, partition))) is not None:
                assigned.reach_end(offset)

    async def let_go(self, places: Sequence[Place]) -> list[tuple[str, int, int]]:
        parting = [self.held.pop(place) for place in places if place in self.held]
        self._drop(parting)
        if not self._ending:
            await self._until_settled(parting)
        for each in parting:
            each.lost = True
        return [(each.topic, each.partition, each.watermark) for each in parting]

    async def _until_settled(self, parting: list[AssignedPartition]) -> None:
        try:
            async with asyncio.timeout(self._grace):
                while any(each.in_hand for each in parting):
                    self._settled.clear()
                    await self._settled.wait()
        except TimeoutError:
            pass  # they are done again by whoever has the partition next

    def lost(self, places: Sequence[Place]) -> None:
        parting = [self.held.pop(place) for place in places if place in self.held]
        for each in parting:
            each.lost = True
        self._drop(parting)

    def away(self, error: RedriveError) -> None:
        self.error = error
        self._wake()

    def ended(self, error: RedriveError | None) -> None:
        self.lost(list(self.held))
        self.error = error or Unreachable("the transport is closed", remedy="open a new one")
        self._ending = self._ending or error is None
        self._stop_ringing()
        self._over.set()
        self._on_end(self)
        self._wake()

    # Inside.

    def _drop(self, parting: list[AssignedPartition]) -> None:
        gone = set(map(id, parting))
        self._ready = deque(each for each in self._ready if id(each.assigned) not in gone)
        self._late = [each for each in self._late if id(each[2].assigned) not in gone]
        heapq.heapify(self._late)
        self._bytes = sum(each.size for each in self._ready) + sum(each[2].size for each in self._late)
        self._reckon()

    def _keep_late(self, waiting: Waiting) -> None:
        self._order += 1
        heapq.heappush(self._late, (waiting.due, self._order, waiting))
        if not self._rings_at or waiting.due < self._rings_at:
            self._stop_ringing()
            self._alarm = self._loop.create_task(self._ring())

    def _stop_ringing(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    async def _ring(self) -> None:
        """Until nothing is late any more. The clock may be set meanwhile, so it is looked at again and again."""
        while self._late:
            self._rings_at = self._late[0][0]
            await self._clock.sleep(min((self._rings_at - self._now()) / 1e6, _LONGEST_SLEEP))
            now = self._now()
            while self._late and self._late[0][0] <= now:
                self._ready.append(heapq.heappop(self._late)[2])
            self._wake()
        self._rings_at = 0

    def _now(self) -> int:
        return microseconds(self._clock.now())

    def _reckon(self) -> None:
        room = sum(each.prefetch for each in self._takers) - len(self._ready)
        self.want = room if self._bytes < _MOST_BYTES else 0
        if self.want > 0 and not self._poller.need.is_set():
            self._poller.need.set()

    def _wake(self) -> None:
        for each in self._takers:
            each.wake()


def _headers_of(raw: RawRecord) -> WireHeaders:
    try:
        return raw.headers() or ()
    except SystemError:  # a name that is not UTF-8: the client library has no way to give it out
        log.warning(
            "headers that cannot be read, the record is taken as bare", topic=raw.topic(), offset=raw.offset()
        )
        return ()
