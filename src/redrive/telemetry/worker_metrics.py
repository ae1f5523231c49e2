"""A worker's metrics: what its handlers did since it began, and how it fares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.failure import FailureKind
from redrive.telemetry.exposition import add_buckets, counter, gauge, histogram

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from prometheus_client import Metric

    from redrive.consumer import Consumer
    from redrive.telemetry.counts import HandlerCounts
    from redrive.upkeep.spool import SpoolState
    from redrive.worker import Worker


_NONE = {(str(kind), sink): 0 for kind in FailureKind for sink in ("store", "spool", "queue")}


def worker_metrics(worker: Worker) -> Iterator[Metric]:
    yield from _handlers(worker.counts)
    yield from _letters(worker.counts)
    yield from _consumers(worker.consumers)
    yield from _surroundings(worker.spooled(), store_away=worker.store_away)


def _handlers(counts: Collection[HandlerCounts]) -> Iterator[Metric]:
    attempts = counter(
        "redrive_handler_attempts_total",
        "Attempts of handlers, by outcome: succeeded, failed, dropped.",
        ("handler", "queue", "outcome"),
    )
    seconds = histogram("redrive_handler_seconds", "How long attempts of handlers took.", ("handler", "queue"))
    retries = counter("redrive_retries_total", "Retries that were scheduled.", ("handler", "queue"))
    for each in counts:
        of = (each.handler, each.queue)
        for outcome, number in (("succeeded", each.succeeded), ("failed", each.failed), ("dropped", each.dropped)):
            attempts.add_metric((*of, outcome), number)
        add_buckets(seconds, of, each.seconds.buckets(), each.seconds.total)
        retries.add_metric(of, each.retried)
    yield from (attempts, seconds, retries)


def _letters(counts: Collection[HandlerCounts]) -> Iterator[Metric]:
    letters = counter(
        "redrive_dead_lettered_total",
        "Messages that this worker dead-lettered, by kind of failure and the sink that took them.",
        ("handler", "queue", "kind", "sink"),
    )
    seconds = histogram(
        "redrive_time_to_dead_letter_seconds",
        "From a message's first attempt to its dead letter.",
        ("type", "queue"),
    )
    for each in counts:
        # What has not happened yet is told as 0: the first time would else be no increase.
        for (kind, sink), number in {**_NONE, **each.dead_lettered}.items():
            letters.add_metric((each.handler, each.queue, kind, sink), number)
        took = each.time_to_dead_letter
        add_buckets(seconds, (each.payload_type, each.queue), took.buckets(), took.total)
    yield from (letters, seconds)


def _consumers(consumers: Sequence[Consumer]) -> Iterator[Metric]:
    ready = gauge(
        "redrive_consumer_ready",
        "1: consumes. 0: the broker is away, nothing takes dead letters, or the breaker is open.",
        ("queue",),
    )
    in_hand = gauge("redrive_messages_in_hand", "Messages that are handled or settled right now.", ("queue",))
    breaker = gauge(
        "redrive_breaker_open",
        "1: the breaker has stopped consumption, or lets one message try. 0 too if none has come to be tried.",
        ("queue",),
    )
    opened = counter("redrive_breaker_opened_total", "How often the breaker has opened.", ("queue",))
    for each in consumers:
        ready.add_metric((each.queue,), each.ready)
        in_hand.add_metric((each.queue,), each.in_hand)
        breaker.add_metric((each.queue,), each.held_up)
        opened.add_metric((each.queue,), each.breaker.opened)
    yield from (ready, in_hand, breaker, opened)


def _surroundings(spool: SpoolState, *, store_away: bool) -> Iterator[Metric]:
    away = gauge("redrive_store_away", "1: the store did not answer the last time it was asked.")
    away.add_metric((), store_away)
    yield away
    for name, about, number in (
        ("redrive_spool_bytes", "Bytes of letters in the spool, which wait for the store.", spool.bytes),
        ("redrive_spool_segments", "Files of the spool that wait for the store.", spool.segments),
        ("redrive_spool_corrupt_files", "Damaged parts of the spool that were set aside.", spool.corrupt),
    ):
        found = gauge(name, about)
        found.add_metric((), number)
        yield found
