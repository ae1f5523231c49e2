"""Redrive: an App and a worker made from settings, as `redrive work` makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import uvloop

from bench.peers.run import QUEUE, Run
from redrive import wiring
from redrive.app import App
from redrive.settings import Settings
from redrive.telemetry.logs import configure_logs


def consume(run: Run) -> None:
    """Its failures cannot heal, so that a failing message is dead-lettered at once: into the store, or as variant
    "queue" into its dead-letter queue.
    """
    configure_logs()
    app = App("bench")

    @app.handler(QUEUE, concurrency=run.task.prefetch)
    async def handle(_order: dict[str, Any]) -> None:
        run.take()

    uvloop.run(wiring.run_worker(app, settings(run)))


def settings(run: Run) -> Settings:
    folder = Path(run.task.folder)
    return Settings.model_validate(
        {
            "broker": _broker(run),
            "worker": run.task.settings,
            "store": {"url": run.task.store or f"sqlite:///{folder}/store.db"},
            "kinds": {"permanent": ["bench.peers.run.OrderFailed"]},  # a breaker would rather wait
            "dead_letters": {"sink": "queue" if run.task.variant == "queue" else "store"},
            "spool": {"folder": folder / "spool"},
            "journal": {"path": folder / "journal.db"},
        }
    )


def _broker(run: Run) -> dict[str, Any]:
    if not run.task.group:
        return {"url": run.task.url}
    return {"url": f"kafka://{run.task.url}", "kafka": {"group": run.task.group}}
