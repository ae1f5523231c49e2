"""An engine's metrics. What became of the letters of its runs is the store's to tell (`store_metrics`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.telemetry.exposition import gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from redrive.engine import RedriveEngine


def engine_metrics(engine: RedriveEngine) -> Iterator[Metric]:
    runs = gauge("redrive_engine_runs", "Redrive runs that this engine carries out right now.")
    runs.add_metric((), engine.under_way)
    yield runs
