"""A worker on a real RabbitMQ, built from settings as `redrive work` builds it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from redrive.settings import Settings
from redrive.wiring import worker
from support.patience import until
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from redrive import App


def settings_on(url: str, folder: Path, *, rabbitmq: dict[str, Any] | None = None, **sections: Any) -> Settings:
    """With files in this folder; `rabbitmq` is [broker.rabbitmq]."""
    return Settings.model_validate(
        {
            "broker": {"url": url, "rabbitmq": rabbitmq or {}},
            "store": {"url": f"sqlite:///{folder}/redrive.db"},
            "spool": {"folder": folder / "spool"},
            "journal": {"path": folder / "journal.db"},
            **sections,
        }
    )


@asynccontextmanager
async def working(app: App, settings: Settings, *, broker: str | None = None) -> AsyncIterator[None]:
    """It consumes already, so its queues are there with all that belongs to them. `broker`: where to look for
    that, if the settings name a proxy.
    """
    async with worker(app, settings) as running:
        task = asyncio.create_task(running.run())
        try:
            with PlainClient(broker or settings.broker.url.reveal()) as other:
                for queue in app.handlers:
                    await until(partial(other.consumers, queue))
            yield
        finally:
            running.stop()
            await task
