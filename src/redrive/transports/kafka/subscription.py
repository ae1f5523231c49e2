"""The records of one queue and its retries for one consumer group, in the event loop.

Partitions that have something take turns, so that none waits behind another. A partition has nothing to hand out
while its next record is too far from its watermark, or, one by one, while the one before it is not done.

It outlives the iterators that take from it: leaving a group and joining it again makes everybody else wait.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import insort
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from msgspec.structs import replace

from redrive.epoch import microseconds
from redrive.errors import Unreachable
from redrive.transports.kafka.assigned import NEVER, AssignedPartition, Receipt
from redrive.transports.kafka.poller import Assignment, Poller, RawRecord
from redrive.transports.kafka.record import note_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from redrive.clock import Clock
    from redrive.errors import RedriveError
    from redrive.transports import Delivery  # noqa: TC004  a record that waits is never decoded
    from redrive.transports.kafka.note import Note  # noqa: TC004  as above
    from redrive.transports.kafka.poller import Place
    from redrive.transports.kafka.record import WireHeaders

    Read = Callable[["Waiting", Receipt], Delivery]

log = structlog.get_logger("redrive.kafka")

_MOST_BYTES = 64 * 2**20
"""Of records that were read and not handed out."""
_LEAST_SPAN, _RETRY_SPAN = 100, 1000
_AHEAD, _LOW = 2000, 1000
"""Records that are read ahead of those who ask: while Python does one thing, the other thread does nothing."""
_LONGEST_SLEEP = 60.0
_OFFSET = attrgetter("offset")
_LARGE = 65_536
"""Bytes of a record for which room is made while nobody knows how large they are."""


class Taker:
    """One iterator."""

    __slots__ = ("prefetch", "unsettled", "waiting")

    def __init__(self, prefetch: int) -> None:
        self.prefetch = prefetch
        self.unsettled = 0
        self.waiting: asyncio.Future[None] | None = None

    def put_down(self) -> None:
        self.unsettled -= 1
        if self.waiting is not None:
            self.wake()

    def wake(self) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)


class Waiting(msgspec.Struct, frozen=True, eq=False):
    """A record that nobody has yet."""

    due: int
    """Microseconds since 1970; 0: at once."""
    offset: int
    assigned: AssignedPartition
    raw: RawRecord
    size: int
    headers: Any
    """`WireHeaders`."""
    note: Note | None
    again: Delivery | None = None
    """What it is handed out as, if an attempt was made and it was held since."""


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
        one_by_one: bool,
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
        self._one_by_one = one_by_one
        self._on_end = on_end
        self._span = max(_LEAST_SPAN, 4 * prefetch)
        self._loop = asyncio.get_running_loop()
        self._takers: list[Taker] = []
        self._turns: deque[AssignedPartition] = deque()
        self._count = 0
        """Of the records that wait in those partitions."""
        self._late: list[tuple[int, int, Waiting]] = []
        self._order = 0
        self._alarm: asyncio.Task[None] | None = None
        self._rings_at = 0
        self._bytes = 0
        self._typical = _LARGE
        """Bytes of a record, by those that came last."""
        self._settled = asyncio.Event()
        self._parting = 0
        """How many wait until partitions that go to somebody else are settled."""
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

    def join(self, prefetch: int) -> Taker:
        """Somebody wants records. `leave` ends it."""
        if self._over.is_set() and self.error is not None:
            raise self.error
        self.error = None
        taker = Taker(prefetch)
        self._takers.append(taker)
        self._reckon()
        return taker

    def leave(self, taker: Taker) -> None:
        self._takers.remove(taker)
        self._reckon()
        for each in self._takers:
            each.wake()

    def take(self, taker: Taker) -> Delivery | None:
        """The next that is there. None: there is none, or he has as many as he may have."""
        turns = self._turns
        while turns and taker.unsettled < taker.prefetch and not self._ending:
            assigned = turns[0]
            pending = assigned.pending
            if assigned.shut or not pending or pending[0].offset - assigned.watermark >= assigned.span:
                self._end_turn(turns.popleft())
                continue
            turns.rotate(-1)
            waiting = pending.popleft()
            assigned.bytes -= waiting.size
            assigned.in_hand += 1
            assigned.shut = assigned.one_by_one
            taker.unsettled += 1
            self._bytes -= waiting.size
            self._count -= 1
            if self._count == _LOW:
                self._reckon()
            receipt, again = Receipt(self, waiting, taker), waiting.again
            return self._read(waiting, receipt) if again is None else replace(again, receipt=receipt)
        return None

    async def wait(self, taker: Taker) -> bool:
        """Until there may be something to take. False: never again."""
        if self._ending:
            return False
        taker.waiting = self._loop.create_future()
        try:
            await taker.waiting
        finally:
            taker.waiting = None
        if self.error is not None:
            raise self.error
        return not self._ending

    def finish(self, receipt: Receipt) -> None:
        """It is claimed, and done for good."""
        assigned = receipt.record.assigned
        assigned.finish(receipt.record.offset)
        self._put_down(receipt)
        assigned.shut = False
        if assigned.pending and not assigned.in_turn:
            self._give_turn(assigned)
            self._wake()
        if assigned.halted and assigned.reach <= assigned.ahead // 2 and assigned.bytes <= self._share() // 2:
            assigned.halted = False
            self._poller.need.set()

    def give_back(self, receipt: Receipt) -> None:
        """It is claimed, and goes to the next who asks."""
        self._put_down(receipt)
        receipt.record.assigned.shut = False
        self._return(receipt.record)

    def hold(self, receipt: Receipt, again: Delivery, due: int) -> None:
        """It is claimed, and comes again then as that delivery. One by one: before all that is behind it, which
        waits.
        """
        self._put_down(receipt)
        if self._is_held(receipt.record.assigned):
            self._keep_late(replace(receipt.record, due=due, again=again))

    def _return(self, *several: Waiting) -> None:
        """Each before those of its partition that are behind it."""
        for waiting in several:
            assigned = waiting.assigned
            if not self._is_held(assigned):
                continue
            insort(assigned.pending, waiting, key=_OFFSET)
            self._add(waiting)
            if not assigned.in_turn:
                self._give_turn(assigned)
        self._wake()

    def _is_held(self, assigned: AssignedPartition) -> bool:
        """Else whoever has it next begins with what is not done."""
        return self.held.get((assigned.topic, assigned.partition)) is assigned

    def _add(self, waiting: Waiting) -> None:
        waiting.assigned.bytes += waiting.size
        self._bytes += waiting.size
        self._count += waiting.assigned.in_turn

    def _give_turn(self, assigned: AssignedPartition) -> None:
        assigned.in_turn = True
        self._turns.append(assigned)
        self._count += len(assigned.pending)

    def _end_turn(self, assigned: AssignedPartition) -> None:
        """What it has and may not hand out takes no room from the others."""
        assigned.in_turn = False
        self._count -= len(assigned.pending)
        self._reckon()

    def _put_down(self, receipt: Receipt) -> None:
        assigned = receipt.record.assigned
        assigned.in_hand -= 1
        receipt.taker.put_down()
        if not assigned.in_hand and self._parting:
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
                ahead=span + 2 * _AHEAD,  # not by what is only read ahead: a pause throws away what was fetched
                one_by_one=self._one_by_one,
            )

    def arrived(self, batch: list[RawRecord]) -> None:
        self.error = None
        held, now, share, plain = self.held, self._now(), self._share(), self._plain
        for raw in batch:
            topic, offset = raw.topic(), raw.offset()
            assigned = held.get((topic, raw.partition()))
            if assigned is None:
                continue
            if not assigned.come(offset):
                assigned = self._begun_anew(assigned, offset)
            if offset - assigned.watermark >= assigned.ahead or assigned.bytes > share:
                assigned.halted = True
            headers = _headers_of(raw)
            note = note_of(topic, headers) if headers else None
            due = 0
            if note is not None and topic != plain:
                if note.group and note.group != self._group:
                    assigned.finish(offset)
                    continue
                due = note.due_at or 0
            waiting = Waiting(due, offset, assigned, raw, len(raw), headers, note)
            if due > now:
                self._keep_late(waiting)
                continue
            assigned.pending.append(waiting)
            self._add(waiting)
        for each in held.values():
            if each.pending and not each.in_turn and not each.shut:
                self._give_turn(each)
        self._typical = sum(map(len, batch)) // len(batch) + 1
        self._reckon()
        self.counted += len(batch)  # after it: the thread that polls takes what is counted for known to `want`
        self._wake()

    def reached(self, ends: list[tuple[str, int, int]]) -> None:
        for topic, partition, offset in ends:
            if (assigned := self.held.get((topic, partition))) is not None:
                assigned.reach_end(offset)

    async def let_go(self, places: Sequence[Place]) -> list[tuple[str, int, int]]:
        parting = [self.held.pop(place) for place in places if place in self.held]
        self._drop(parting)
        if not self._ending:
            self._parting += 1
            try:
                await self._until_settled(parting)
            finally:
                self._parting -= 1
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
        for each in parting:
            self._count -= len(each.pending) if each.in_turn else 0
            self._bytes -= each.bytes
            each.pending.clear()
            each.bytes, each.in_turn = 0, False
        gone = set(map(id, parting))
        self._turns = deque(each for each in self._turns if id(each) not in gone)
        self._late = [each for each in self._late if id(each[2].assigned) not in gone]
        heapq.heapify(self._late)
        self._reckon()

    def _begun_anew(self, old: AssignedPartition, offset: int) -> AssignedPartition:
        """The log is no longer the one that was read: its topic was deleted and made again, or brokers have lost
        the end of it. What is there now is handled as by somebody who comes new, some of it perhaps for the second
        time; what is in hand belongs to nobody any more.
        """
        log.warning("the log of a partition begins anew", topic=old.topic, partition=old.partition, offset=offset)
        self.lost([(old.topic, old.partition)])
        self.assigned([Assignment(old.topic, old.partition, offset, 0)])
        new = self.held[old.topic, old.partition]
        new.committed = NEVER  # the brokers may have kept the commit of before, which is ahead of this
        new.come(offset)
        return new

    def _share(self) -> int:
        """Bytes that may wait of one partition: if one that hands out nothing had all the room, the others would
        stand too.
        """
        return _MOST_BYTES // (2 * max(len(self.held), 1))

    def _keep_late(self, waiting: Waiting) -> None:
        waiting.assigned.bytes += waiting.size
        self._bytes += waiting.size
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
            now, due = self._now(), []
            while self._late and self._late[0][0] <= now:
                waiting = heapq.heappop(self._late)[2]
                waiting.assigned.bytes -= waiting.size
                self._bytes -= waiting.size
                if waiting.again is not None:  # its turn has not ended
                    waiting.assigned.shut = False
                due.append(waiting)
            self._return(*due)
        self._rings_at = 0

    def _now(self) -> int:
        return microseconds(self._clock.now())

    def _reckon(self) -> None:
        left = _MOST_BYTES - self._bytes
        self.want = min(_AHEAD - self._count, left // self._typical + 1) if self._takers and left > 0 else 0
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
