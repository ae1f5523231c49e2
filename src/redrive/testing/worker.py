"""Test mode: an App's handlers on a real worker, with a broker and a store in memory, and no waiting.

    from redrive.testing import bench_for
    from shop import app

    async def test_an_order_without_a_customer_is_set_apart():
        async with bench_for(app) as bench:
            await bench.send("orders", {"order_id": 17})
            await bench.run_until_quiet()
            bench.assert_dead_lettered("orders", type="NoCustomer", count=1)

What runs is what runs in production: binding, middleware, policy, retry queue, sinks, letters. Time is the bench's
own. It stands still while anything is to be done, then leaps to the next retry: an hour of retries takes
milliseconds, and every failure bears the time at which it would have happened. Waits of a handler's own
(`asyncio.sleep`, a client's timeout) are real.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from redrive.access import local
from redrive.actions import Actions
from redrive.clock import new_id
from redrive.dead_letter import OPEN, DeadLetter
from redrive.duration import Duration, seconds
from redrive.failure import Host
from redrive.letter_query import MAX_PAGE, LetterQuery
from redrive.message import Headers, Message
from redrive.planning import plan
from redrive.privacy.maskers import UNMASKED
from redrive.settings import Settings
from redrive.stores import open_store
from redrive.testing.clock import ManualClock
from redrive.transports.embedded import EmbeddedTransport
from redrive.upkeep.journal import Journal
from redrive.upkeep.spool import Spool
from redrive.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from redrive.app import App
    from redrive.stores import DeadLetterStore
    from redrive.uptime import Uptime

_LOOK_EVERY = 0.001
_LEASE = 10 * 365 * 86400.0
"""Seconds. Time leaps here, and must not leap over the lease of a message in hand."""
_SPOOL_BYTES = 64 * 2**20


class _Hurried:
    """The bench's time for those whose sleep nobody else depends on: it passes at once."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def uptime(self) -> Uptime:
        return self._clock.uptime()

    async def sleep(self, seconds: float) -> None:
        self._clock.advance(max(seconds, 0.0))
        await asyncio.sleep(0)


class Bench:
    """Made by `bench_for`. `letters` are all letters, newest first, with their whole story, as they were when
    `run_until_quiet` ended or `look` was called; `desk` does to them what a person can do.
    """

    def __init__(
        self,
        app: App,
        settings: Settings,
        *,
        store: DeadLetterStore,
        transport: EmbeddedTransport,
        clock: ManualClock,
    ) -> None:
        self.app = app
        self.store = store
        self.transport = transport
        self.clock = clock
        self.desk = Actions(store=store, transport=transport, clock=clock, who=local("test"), masks=UNMASKED)
        self.letters: tuple[DeadLetter, ...] = ()
        self._settings = settings

    async def send(
        self,
        queue: str,
        data: Any,
        *,
        metadata: Mapping[str, Any] | None = None,
        headers: Headers = (),
        key: bytes | None = None,
        delay: Duration = 0,
    ) -> Message:
        """As `App.send`."""
        return await self.app.send(queue, data, metadata=metadata, headers=headers, key=key, delay=delay)

    async def send_foreign(self, queue: str, body: bytes | None, *, headers: Headers = ()) -> Message:
        """Bytes as another system would send them, without our envelope."""
        message = Message(id=new_id(), queue=queue, body=body, sent_at=self.clock.now(), headers=headers)
        await self.transport.send(message)
        return message

    async def run_until_quiet(self, *, within: Duration = "30s") -> None:
        """Handles what waits, retries included, until nothing is left. AssertionError if that takes longer than
        `within`, in real time.
        """
        with TemporaryDirectory(prefix="redrive-bench-") as folder:
            journal, spool = Journal(":memory:"), Spool(Path(folder), max_bytes=_SPOOL_BYTES)
            try:
                await self._run(self._worker(journal, spool), within)
            finally:
                await journal.close()
                await spool.close()
        await self.look()

    async def redrive(self, *letters: DeadLetter) -> None:
        """Puts these letters back into their queues; `run_until_quiet` handles them. AssertionError if one of
        them may not be put back.
        """
        for outcome in await self.desk.retry([letter.id for letter in letters]):
            assert outcome.result == "sent", f"letter {outcome.letter_id}: {outcome.result}, {outcome.note}"
        await self.look()

    async def look(self) -> tuple[DeadLetter, ...]:
        """All letters as they are now."""
        everything = LetterQuery(limit=MAX_PAGE)
        self.letters = tuple([letter async for letter in self.desk.export(everything, whole=True)])
        return self.letters

    def dead_lettered(self, queue: str, *, type: str | None = None) -> list[DeadLetter]:  # noqa: A002  the field's own name
        """The open letters of a queue, newest first. `type` is the exception's full name or its last part."""
        found = [letter for letter in self.letters if letter.queue == queue and letter.status in OPEN]
        return [
            letter for letter in found if type is None or type in {letter.type, letter.type.rpartition(".")[2]}
        ]

    def assert_dead_lettered(
        self,
        queue: str,
        *,
        type: str | None = None,  # noqa: A002  as above
        text: str | None = None,
        attempts: int | None = None,
        count: int | None = None,
    ) -> DeadLetter:
        """That open letters of this queue, type, text (a part of it) and number of attempts exist, `count` of them
        if it is given; the newest one. What it says when it fails names the letters there are.
        """
        found = self.dead_lettered(queue, type=type)
        found = [letter for letter in found if text is None or text in letter.text]
        found = [letter for letter in found if attempts is None or letter.attempts == attempts]
        assert found, f"no such dead letter; {self._told()}"
        assert count is None or len(found) == count, f"{len(found)} dead letters, not {count}; {self._told()}"
        return found[0]

    def assert_nothing_dead_lettered(self, queue: str | None = None) -> None:
        """That no letter is open, in this queue or at all."""
        found = [letter for letter in self.letters if letter.status in OPEN and queue in {None, letter.queue}]
        assert not found, f"{len(found)} dead letters; {self._told()}"

    def _told(self) -> str:
        lines = [
            f"{letter.queue}: {letter.type}: {letter.text} ({letter.attempts} attempts, {letter.status})"
            for letter in self.letters
        ]
        return "\n  ".join(["there are:", *lines]) if lines else "there is none"

    async def _run(self, worker: Worker, within: Duration) -> None:
        running = asyncio.create_task(worker.run(upkeep=False))
        try:
            async with asyncio.timeout(seconds(within)):
                await self._until_quiet(worker, running)
        except TimeoutError:
            worker.stop()
            raise AssertionError(f"not quiet after {within}: a handler hangs, or sends without end") from None
        finally:
            worker.stop()
            await running

    async def _until_quiet(self, worker: Worker, running: asyncio.Task[None]) -> None:
        names = self.transport.names
        watched = {name for queue in self.app.handlers for name in (queue, names.retry_of(queue))}
        while not running.done():
            depths = await self.transport.depths()
            mine = [depth for name, depth in depths.items() if name in watched]
            busy = any(consumer.busy for consumer in worker.consumers)
            if not busy and not any(depth.ready or depth.leased for depth in mine):
                if not mine:
                    return
                await self._leap()
            await asyncio.sleep(_LOOK_EVERY)

    async def _leap(self) -> None:
        """To the time at which the next message is due: the broker's word, a receiver may not know it yet."""
        due = [moment for queue in self.app.handlers if (moment := await self.transport.next_due(queue))]
        if due:
            self.clock.advance(max((min(due) - self.clock.now()).total_seconds(), 0.0))

    def _worker(self, journal: Journal, spool: Spool) -> Worker:
        return Worker(
            self.app,
            {queue: plan(self.app, queue, self._settings) for queue in self.app.handlers},
            transport=self.transport,
            store=self.store,
            spool=spool,
            journal=journal,
            host=Host(
                name=socket.gethostname(),
                process=os.getpid(),
                app=self.app.name,
                app_version=self.app.version,
                environment=self._settings.app.environment or "test",
            ),
            random=random.random,
            clock=_Hurried(self.clock),
        )


@asynccontextmanager
async def bench_for(app: App, *, settings: Settings | None = None) -> AsyncIterator[Bench]:
    """A bench for this App. `settings`: the App's own, or the defaults; no file and no variable is read.
    While it is open, `app.send` goes to the bench's broker.
    """
    chosen = settings or app.settings or Settings()
    clock = ManualClock(datetime.now(UTC))
    names = chosen.broker.names
    async with AsyncExitStack() as closing:
        store = open_store("sqlite:///:memory:", clock=clock)
        closing.push_async_callback(store.close)
        transport = EmbeddedTransport("embedded:///:memory:", names=names, clock=clock, lease=_LEASE)
        closing.push_async_callback(transport.close)
        closing.enter_context(app.lent(transport))
        yield Bench(app, chosen, store=store, transport=transport, clock=clock)
