"""The thread that owns a consumer of librdkafka: it polls, commits, pauses, and answers rebalances.

1. What it reads it hands to the event loop in batches; nothing is read while nobody has room for it.
2. It polls several times a second, everything paused if need be, so that `max.poll.interval` is never at risk.
3. It commits watermarks, and nothing else, several times a second, one after the other.
4. Partitions that are taken away: the event loop has a moment to finish what is in hand, then their watermarks are
   committed. Partitions that were lost: nothing is committed.
5. Every commit says whether its process still works ("open") or has left in peace ("closed"). Whoever gets a
   partition whose last word was "open" knows that a process may have died with its records in hand.

Any error that librdkafka does not mend itself ends the thread; whoever receives next starts another.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import TimeoutError as TookTooLong
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from redrive import faults
from redrive.transports.kafka.client_errors import away, error_in, explained, is_fatal, no_records

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from redrive.errors import RedriveError
    from redrive.transports.kafka.assigned import AssignedPartition

log = logging.getLogger("redrive.kafka.client")

_AT_ONCE = 500
_WAIT = 0.1
_STAY = 0.25
_LOOP = 1.0
"""Seconds that the event loop has beyond the grace."""
_COMMIT_EVERY = 0.1
_QUESTION = 15.0
_FAREWELL = 5.0
_REBALANCING = frozenset({KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS})
_OPEN, _CLOSED = "redrive open", "redrive closed"

Place = tuple[str, int]
RawRecord = Any
"""librdkafka's; its types say that everything may be missing."""


class Assignment(NamedTuple):
    topic: str
    partition: int
    start: int
    suspect_until: int


class Office(Protocol):
    """The event loop's side. Everything but the plain attributes is called in the event loop."""

    held: dict[Place, AssignedPartition]
    want: int
    """How many records there is room for."""
    counted: int
    """How many records have arrived, which `want` knows of."""

    def assigned(self, partitions: list[Assignment]) -> None: ...

    def arrived(self, batch: list[RawRecord]) -> None: ...

    def reached(self, ends: list[tuple[str, int, int]]) -> None:
        """The ends of these partitions, for now: between the last record and there is nothing for anybody."""
        ...

    def let_go(self, places: Sequence[Place]) -> Coroutine[Any, Any, list[tuple[str, int, int]]]:
        """The watermarks, when nothing of these partitions is in hand any more."""
        ...

    def lost(self, places: Sequence[Place]) -> None: ...

    def away(self, error: RedriveError) -> None:
        """The brokers do not answer; they are asked again by themselves."""
        ...

    def ended(self, error: RedriveError | None) -> None: ...


class Poller:
    def __init__(
        self,
        office: Office,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        *,
        loop: asyncio.AbstractEventLoop,
        span: int,
        grace: float,
        from_latest: bool,
    ) -> None:
        self._office = office
        self._settings = dict(settings)
        self._topics = list(topics)
        self._loop = loop
        self._span = span
        self._grace = grace
        self._from_latest = from_latest
        self.need = threading.Event()
        """Set: there is room again, or something else to look at."""
        self._ending = False
        self._paused: set[Place] = set()
        self._polled_at = 0.0
        self._told = 0
        """Records that the event loop was given; while it is busy, it has not counted all of them."""
        self._committed_at = 0.0
        self._committing: dict[Place, int] = {}
        self._parting: dict[Place, int] = {}
        """Partitions that are still ours while we leave, and their watermarks."""
        self._refresh = False
        self._failed: KafkaException | None = None
        self._thread = threading.Thread(target=self._run, name="redrive-kafka-consumer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """The thread gives back everything and leaves; `Office.ended` is called then."""
        self._ending = True
        self.need.set()

    def look_for_topics(self) -> None:
        """A topic was made that the subscription may have been waiting for."""
        self._refresh = True
        self.need.set()

    # In the thread.

    def _run(self) -> None:
        error: RedriveError | None = None
        try:
            self._poll_until_the_end()
        except KafkaException as raised:
            error = explained(raised)
        except BaseException as raised:  # whoever waits for records is told, whatever it is
            log.exception("the consumer's thread failed")
            error = away(type(raised).__name__)
        finally:
            self._tell(self._office.ended, error)

    def _poll_until_the_end(self) -> None:
        consumer = self._opened()
        try:
            while not self._ending:
                self._turn(consumer)
        finally:
            self._leave(consumer)

    def _opened(self) -> Consumer:
        consumer = Consumer({**self._settings, "error_cb": self._erred, "on_commit": self._committed}, logger=log)
        consumer.subscribe(
            self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        return consumer

    def _leave(self, consumer: Consumer) -> None:
        if self._ending:
            self._commit_before_leaving(consumer)
        try:
            consumer.close()
        except (KafkaException, RuntimeError) as error:
            log.warning("the consumer could not be closed: %s", error)

    def _turn(self, consumer: Consumer) -> None:
        self._commit(consumer)
        if self._refresh:
            self._refresh = False
            consumer.list_topics(timeout=_QUESTION)  # looks through all topics again for those that are meant
        counted = self._office.counted  # first: whoever counts has lowered `want` before
        want = self._office.want - (self._told - counted)
        if want > 0:
            self._let(consumer, everything=True)
            self._read(consumer, want)
            return
        self.need.wait(_WAIT)
        self.need.clear()
        if time.monotonic() - self._polled_at >= _STAY:
            self._let(consumer, everything=False)
            self._hand_over([self._polled(consumer, 0.0)])

    def _read(self, consumer: Consumer, want: int) -> None:
        first = self._polled(consumer, _WAIT)
        if first is None:
            return
        batch: list[RawRecord] = [first]
        if want > 1:
            batch += consumer.consume(min(want, _AT_ONCE) - 1, 0)
        self._hand_over(batch)

    def _polled(self, consumer: Consumer, timeout: float) -> RawRecord:
        found = consumer.poll(timeout)
        self._polled_at = time.monotonic()
        if self._failed is not None:
            raise self._failed
        return found

    def _hand_over(self, batch: list[RawRecord]) -> None:
        records, ends = [], []
        for each in batch:
            if each is None:
                continue
            if (error := each.error()) is None:
                records.append(each)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  librdkafka's own codes begin so
                ends.append((each.topic(), each.partition(), each.offset()))
            else:
                self._erred(error)
        if records:
            self._told += len(records)
            self._tell(self._office.arrived, records)
        if ends:
            self._tell(self._office.reached, ends)

    def _tell(self, what: Any, *given: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(what, *given)
        except RuntimeError:  # the event loop is closed: nobody is left to be told
            self._ending = True

    def _erred(self, error: KafkaError) -> None:
        if is_fatal(error):
            self._failed = KafkaException(error)  # this consumer reads nothing any more: another one has to
        elif (why := no_records(error)) is not None:
            self._tell(self._office.away, why)
        else:
            log.info("librdkafka: %s (%s)", error.str(), error.name())

    # Pausing.

    def _let(self, consumer: Consumer, *, everything: bool) -> None:
        """Pauses and resumes what is to be. With a pause librdkafka forgets what it has fetched ahead, so it is
        for partitions that have to wait, and for times when nobody receives.
        """
        held = self._office.held
        wanted = {place for place, each in list(held.items()) if each.halted or not everything}
        if wanted == self._paused:
            return
        self._change(consumer.pause, wanted - self._paused)
        self._change(consumer.resume, (self._paused - wanted) & held.keys())
        self._paused = wanted

    def _change(self, change: Any, places: set[Place]) -> None:
        if places:
            change([TopicPartition(*place) for place in places])

    # Committing.

    def _commit(self, consumer: Consumer) -> None:
        now = time.monotonic()
        if now - self._committed_at < _COMMIT_EVERY or self._committing:
            return
        marks = {
            place: each.watermark
            for place, each in list(self._office.held.items())
            if each.watermark != each.committed and not each.lost
        }
        if not marks:
            return
        self._committed_at = now
        self._committing = marks
        faults.point("kafka.before_commit")
        consumer.commit(offsets=self._marks(marks.items(), self._open), asynchronous=True)

    def _commit_before_leaving(self, consumer: Consumer) -> None:
        """While others join or leave, the broker takes no commit of ours: until that is over, it goes on here.
        `close` would not wait, and what is done would be done again by somebody else.
        """
        self._parting = self._given_up(list(self._office.held))
        deadline = time.monotonic() + _FAREWELL
        while self._parting and time.monotonic() < deadline:
            faults.point("kafka.before_commit")
            try:
                consumer.commit(offsets=self._marks(self._parting.items(), _CLOSED), asynchronous=False)
                self._parting = {}
            except KafkaException as raised:
                if error_in(raised).code() not in _REBALANCING:
                    log.info("the last commit was not made: %s", raised)
                    return
                consumer.poll(_WAIT)

    @property
    def _open(self) -> str:
        return f"{_OPEN} {self._span}"

    def _marks(self, marks: Any, word: str) -> list[TopicPartition]:
        return [TopicPartition(topic, partition, mark, word) for (topic, partition), mark in marks]

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Called by polling. What was not committed is committed the next time, with everything since."""
        self._committing = {}
        if error is not None:
            log.info("a commit was not made: %s (%s)", error.str(), error.name())
            return
        for each in partitions:
            held = self._office.held.get((each.topic, each.partition))
            if held is not None and each.error is None:
                held.committed = each.offset

    # Rebalances.

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if not partitions or self._ending:  # librdkafka assigns them by itself, and takes them back at once
            return
        try:
            self._begin(consumer, partitions)
        except KafkaException as raised:  # the client library makes something else of what a callback raises
            self._failed = raised

    def _begin(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        assignments = [self._begun(consumer, each) for each in consumer.committed(partitions, timeout=_QUESTION)]
        self._tell(self._office.assigned, assignments)
        places = [TopicPartition(each.topic, each.partition, each.start) for each in assignments]
        consumer.incremental_assign(places)
        begun = {(each.topic, each.partition): each.start for each in assignments}
        consumer.commit(offsets=self._marks(begun.items(), self._open), asynchronous=True)

    def _begun(self, consumer: Consumer, committed: TopicPartition) -> Assignment:
        if committed.error is not None:  # of this partition alone: nobody knows where to begin
            raise KafkaException(committed.error)
        low, high = consumer.get_watermark_offsets(
            TopicPartition(committed.topic, committed.partition), timeout=_QUESTION
        )
        if low <= committed.offset <= high:
            return Assignment(committed.topic, committed.partition, committed.offset, self._suspect(committed))
        # Never committed, or the log has been cut or made anew since.
        # Retries are never passed over: they were put there for us, perhaps before we knew of their topic.
        fresh = committed.offset < 0 and self._from_latest and committed.topic in self._topics
        return Assignment(committed.topic, committed.partition, high if fresh else low, 0)

    def _suspect(self, committed: TopicPartition) -> int:
        said = committed.metadata or ""
        if not said.startswith(_OPEN):
            return 0
        told = said.removeprefix(_OPEN).strip()
        return committed.offset + (int(told) if told.isascii() and told.isdigit() else self._span)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = [(each.topic, each.partition) for each in partitions]
        marks = self._given_up(places)
        if marks:
            self._commit_at_last(consumer, self._marks(marks.items(), _CLOSED))
        self._disown(places)
        self._paused -= set(places)
        consumer.incremental_unassign(partitions)

    def _disown(self, places: list[Place]) -> None:
        """At once: until a busy event loop hears of it, `held` has them, and the next commit would carry them."""
        for place in places:
            if (held := self._office.held.get(place)) is not None:
                held.lost = True

    def _given_up(self, places: list[Place]) -> dict[Place, int]:
        parting = {place: self._parting.pop(place) for place in places if place in self._parting}
        try:
            settled = asyncio.run_coroutine_threadsafe(self._office.let_go(places), self._loop)
            marks = settled.result(self._grace + _LOOP)
        except (TookTooLong, RuntimeError):
            marks = []  # the event loop hangs or is gone: what is done is done again by somebody else
        return parting | {(topic, number): mark for topic, number, mark in marks}

    def _commit_at_last(self, consumer: Consumer, offsets: list[TopicPartition]) -> None:
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as raised:
            log.info("the last commit was not made: %s", raised)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = [(each.topic, each.partition) for each in partitions]
        self._disown(places)
        self._tell(self._office.lost, places)
        for place in places:
            self._parting.pop(place, None)
        self._paused -= set(places)
        consumer.incremental_unassign(partitions)
