"""A collector's metrics: what it brought in since it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.telemetry.exposition import counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from redrive.collector import Collector


def collector_metrics(collector: Collector) -> Iterator[Metric]:
    messages = counter(
        "redrive_collected_total",
        "Messages of dead-letter queues: new, again (in the store already), came_back (redrives that failed).",
        ("queue", "result"),
    )
    quarantined = counter(
        "redrive_collected_quarantined_total", "Of the new ones: what no dialect understood.", ("queue",)
    )
    refused = gauge(
        "redrive_collector_refused", "Messages that the store refuses; they stay in their queue.", ("queue",)
    )
    connected = gauge("redrive_collector_connected", "1: the broker and the store are there.", ("queue",))
    for queue, counts in collector.collected.items():
        for result, number in (("new", counts.new), ("again", counts.again), ("came_back", counts.came_back)):
            messages.add_metric((queue, result), number)
        quarantined.add_metric((queue,), counts.quarantined)
        refused.add_metric((queue,), counts.refused)
        connected.add_metric((queue,), collector.connected(queue))
    yield from (messages, quarantined, refused, connected)
