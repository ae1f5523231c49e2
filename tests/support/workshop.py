"""A worker at work in this process, on files of its own, with each of its parts in reach of the test."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redrive.access import local
from redrive.actions import Actions
from redrive.clock import SystemClock, new_id
from redrive.failure import Host
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.planning import plan
from redrive.settings import Settings
from redrive.stores import open_store
from redrive.transports import Names, QueueDepth, open_transport
from redrive.upkeep.journal import Journal
from redrive.upkeep.spool import Spool
from redrive.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from redrive import App
    from redrive.clock import Clock
    from redrive.dead_letter import DeadLetter
    from redrive.stores import DeadLetterStore
    from redrive.telemetry.spans import Spans
    from redrive.transports import Transport

HOST = Host(name="workshop", process=1, app="shop", app_version="1.0", environment="test")
QUICK = {"delays": ["10ms"], "jitter": "none"}
"""Retries that take no time worth mentioning, on a real clock."""


@dataclass
class Workshop:
    app: App
    worker: Worker
    transport: Transport
    store: DeadLetterStore
    spool: Spool
    clock: Clock
    spans: Spans | None = None
    running: asyncio.Task[None] | None = None

    def start(self, **how: bool) -> asyncio.Task[None]:
        self.running = asyncio.create_task(self.worker.run(**how))
        return self.running

    async def stop(self) -> None:
        """At once: what runs is given back."""
        if self.running is not None:
            self.worker.stop()
            self.worker.stop()
            await self.running
            self.running = None

    async def send(self, queue: str, *data: Any) -> list[Message]:
        return [await self.app.send(queue, each) for each in data]

    async def send_foreign(self, queue: str, body: bytes | None, **fields: Any) -> Message:
        message = Message(id=new_id(), queue=queue, body=body, sent_at=self.clock.now(), **fields)
        await self.transport.send(message)
        return message

    async def letters(self, **which: Any) -> list[DeadLetter]:
        """Newest first, each with its whole story."""
        found = await self.store.find(LetterQuery(**which))
        return [letter for each in found if (letter := await self.store.get(each.id))]

    async def depth(self, queue: str) -> QueueDepth:
        return (await self.transport.depths()).get(queue, QueueDepth(0, 0, 0))

    async def empty(self) -> bool:
        """Whether nothing is left on the broker and nothing runs."""
        idle = not any(consumer.busy for consumer in self.worker.consumers)
        return not await self.transport.depths() and idle

    @property
    def desk(self) -> Actions:
        return Actions(
            store=self.store, transport=self.transport, clock=self.clock, who=local("test"), spans=self.spans
        )

    async def redrive(self, *letters: DeadLetter) -> None:
        outcomes = await self.desk.retry([letter.id for letter in letters])
        assert {outcome.result for outcome in outcomes} == {"sent"}


@asynccontextmanager
async def workshop(
    app: App,
    folder: Path,
    *,
    clock: Clock | None = None,
    names: Names | None = None,
    store_url: str | None = None,
    broker_url: str | None = None,
    opening: Callable[..., Transport] = open_transport,
    spool_folder: Path | None = None,
    queues: Sequence[str] = (),
    queues_settings: dict[str, Any] | None = None,
    lease: float = 60.0,
    spans: Spans | None = None,
    start: bool = True,
    **sections: Any,
) -> AsyncIterator[Workshop]:
    """`sections` are settings: `worker={"concurrency": 2}`. Stopped and closed behind it."""
    settings = Settings.model_validate({"retry": QUICK, "queues": queues_settings or {}, **sections})
    time = clock or SystemClock()
    async with AsyncExitStack() as closing:
        store = open_store(store_url or f"sqlite:///{folder}/letters.db", clock=time)
        closing.push_async_callback(store.close)
        url = broker_url or f"embedded:///{folder}/broker.db"
        leasing = {"lease": lease} if url.startswith("embedded:") else {}  # the others' brokers know their own
        transport = opening(url, names=names or Names(), clock=time, **leasing)
        closing.push_async_callback(transport.close)
        journal = Journal(folder / "journal.db", clock=time)
        closing.push_async_callback(journal.close)
        spool = Spool(spool_folder or folder / "spool", max_bytes=settings.spool.max_size)
        closing.push_async_callback(spool.close)
        closing.enter_context(app.lent(transport))
        worker = Worker(
            app,
            {queue: plan(app, queue, settings) for queue in queues or app.handlers},
            transport=transport,
            store=store,
            spool=spool,
            journal=journal,
            host=HOST,
            random=random.random,
            clock=time,
            spans=spans,
        )
        shop = Workshop(app, worker, transport, store, spool, time, spans)
        closing.push_async_callback(shop.stop)
        if start:
            shop.start()
        yield shop
