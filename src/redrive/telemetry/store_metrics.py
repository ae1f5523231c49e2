"""The store's metrics: gauges as things are, counters of all that has ever happened in it, whoever did it.

They are the store's and not a process's: after a restart they go on where they were, and every process that tells
them tells the same. So one of them is asked, the server, and no worker tells them too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from redrive.dead_letter import Status
from redrive.run import RunStatus
from redrive.statistics import REDRIVE_OUTCOMES
from redrive.telemetry.exposition import add_buckets, bounded, counter, gauge, histogram

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from prometheus_client import Metric

    from redrive.statistics import RedriveCount, StoreNumbers, TransitionCount

MOST_QUEUES = 500
"""Told by their names: those that the store has seen first. Names come from messages, and may be endless."""

RESOLUTION_SECONDS = (60, 300, 900, 3600, 14400, 43200, 86400, 259200, 604800, 2592000)
"""As migration 0012 counts them."""


def store_metrics(numbers: StoreNumbers, *, now: datetime) -> Iterator[Metric]:
    seen = (each.queue for each in numbers.transitions)
    label = bounded((*seen, *numbers.open_by_queue, *(each.queue for each in numbers.redrives)), MOST_QUEUES)
    yield from _as_it_is(numbers, label, now)
    yield from _what_happened(numbers.transitions, label)
    yield _redrives(numbers.redrives, label)


def _as_it_is(numbers: StoreNumbers, label: Mapping[str, str], now: datetime) -> Iterator[Metric]:
    letters = gauge("redrive_dead_letters", "Dead letters in the store, by status.", ("status",))
    for status, number in numbers.by_status.items():
        letters.add_metric((status,), number)
    yield letters

    by_queue: Counter[str] = Counter()
    for queue in label:  # one that is empty is told as such, and does not vanish
        by_queue[label[queue]] += numbers.open_by_queue.get(queue, 0)
    queues = gauge(
        "redrive_queue_dead_letters", "Open dead letters (PENDING and QUARANTINED), by queue.", ("queue",)
    )
    for queue, number in by_queue.items():
        queues.add_metric((queue,), number)
    yield queues

    age = gauge(
        "redrive_oldest_dead_letter_age_seconds", "Age of the oldest open dead letter; 0 if there is none."
    )
    age.add_metric((), 0.0 if numbers.oldest is None else max(0.0, (now - numbers.oldest).total_seconds()))
    yield age

    runs = gauge("redrive_runs", "Redrive runs, by status.", ("status",))
    for status in RunStatus:
        runs.add_metric((str(status),), numbers.runs_by_status.get(str(status), 0))
    yield runs

    unindexed = gauge("redrive_unindexed_letters", "Letters that search does not know yet.")
    unindexed.add_metric((), numbers.unindexed)
    yield unindexed


def _what_happened(transitions: Sequence[TransitionCount], label: Mapping[str, str]) -> Iterator[Metric]:
    # What has not happened yet is told as 0: the first time would else be no increase.
    names = dict.fromkeys(label.values())
    received: Counter[str] = Counter(dict.fromkeys(names, 0))
    changed: Counter[tuple[str, str, str]] = Counter()
    took: dict[str, Counter[int | None]] = {name: Counter() for name in names}
    seconds: dict[str, float] = dict.fromkeys(names, 0.0)
    for each in transitions:
        queue = label[each.queue]
        if not each.before:
            received[queue] += each.number
            continue
        changed[queue, each.before, each.after] += each.number
        if each.after == Status.RESOLVED:
            took[queue][each.within] += each.number
            seconds[queue] += each.seconds

    total = counter("redrive_dead_letters_received_total", "Dead letters ever recorded, by queue.", ("queue",))
    for name, number in received.items():
        total.add_metric((name,), number)
    yield total

    moves = counter(
        "redrive_letter_transitions_total",
        "Changes of status of dead letters, by queue and both statuses.",
        ("queue", "before", "after"),
    )
    for labels, number in changed.items():
        moves.add_metric(labels, number)
    yield moves

    resolution = histogram(
        "redrive_resolution_seconds", "From the failure to the resolution, by queue.", ("queue",)
    )
    for name, counts in took.items():
        add_buckets(resolution, (name,), _up_to(counts), seconds[name])
    yield resolution


def _redrives(counts: Sequence[RedriveCount], label: Mapping[str, str]) -> Metric:
    # As above: what has not happened yet is told as 0.
    redriven = Counter({(name, outcome): 0 for name in label.values() for outcome in REDRIVE_OUTCOMES})
    for each in counts:
        redriven[label[each.queue], each.outcome] += each.number
    told = counter(
        "redrive_redrives_total",
        "Redrives by queue and outcome: sent, not_sent, and of those sent confirmed, assumed, by_hand, came_back.",
        ("queue", "outcome"),
    )
    for pair, number in redriven.items():
        told.add_metric(pair, number)
    return told


def _up_to(counts: Counter[int | None]) -> Iterator[tuple[float, int]]:
    so_far = 0
    for bound in RESOLUTION_SECONDS:
        so_far += counts[bound]
        yield float(bound), so_far
    yield float("inf"), so_far + counts[None]
