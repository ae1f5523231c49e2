"""Metrics of whoever tells people: what it could not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.telemetry.exposition import gauge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import Metric


def alert_metrics(undelivered: Mapping[str, int]) -> Iterator[Metric]:
    """By channel."""
    told = gauge(
        "redrive_alerts_undelivered",
        "Alerts that were given up and wait for somebody to send or drop them.",
        ("channel",),
    )
    for channel, number in undelivered.items():
        told.add_metric((channel,), number)
    yield told
