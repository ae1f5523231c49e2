"""The embedded broker: a SQLite file shared by any number of processes of one machine, real and durable.

Every change is one transaction of the file (`embedded_table`), committed together with others that wait
(`group_commit`) and answered after COMMIT. A delivery is a lease on its row (`embedded_lease`): a process that
dies keeps it until the lease runs out, then somebody else gets the message, marked as redelivered.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from redrive.clock import Clock, SystemClock
from redrive.epoch import microseconds, moment
from redrive.errors import ConfigurationError, LeaseLost, PublishRefused, UsageError
from redrive.group_commit import GroupCommit, explain_sqlite
from redrive.transports import Capabilities, Delivery, LostLeases, Names, QueueDepth
from redrive.transports.embedded_lease import Lease, Leases
from redrive.transports.embedded_receiver import Receiver, Surroundings
from redrive.transports.embedded_row import encode_message, encode_overlay
from redrive.transports.embedded_table import DELAYED, MEMORY, NOBODY, READY, MessageTable, Place

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping
    from datetime import datetime

    from redrive.message import Message

_MAX_NAME = 255
_MAX_DELAY = 100 * 365 * 86400.0


class EmbeddedTransport:
    """`lease`: seconds a delivery is held without a heartbeat. `poll`: seconds between looks for what other
    processes sent; what this process sends is seen at once.
    """

    def __init__(
        self, url: str, *, names: Names, clock: Clock | None = None, lease: float = 60.0, poll: float = 0.05
    ) -> None:
        path = path_of(url)
        if lease <= 0 or poll <= 0:
            raise ConfigurationError(
                "lease and poll of the embedded broker must be more than 0 seconds",
                remedy="leave them out: 60 s and 50 ms are the defaults",
            )
        self.names = names
        self.capabilities = Capabilities(durable=path != MEMORY, several_processes=path != MEMORY)
        self._clock = clock or SystemClock()
        self._file = _file(path)
        self.lost = LostLeases()
        self._leases = Leases(round(lease * 1_000_000), now=self._now, extend=self._extend, lost=self.lost)
        self._around = Surroundings(self._file, self._leases, self._clock, poll)
        self._closing = asyncio.Lock()

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        name = message.queue if queue is None else queue
        self._check_name(name)
        state, due_at = self._schedule(delay)
        try:
            columns = encode_message(message)
        except TypeError as error:
            raise PublishRefused(str(error), permanent=True, remedy="change the header") from None
        await self._file.run_batched(MessageTable.insert, (name, state, due_at, NOBODY, trail, *columns))
        self._around.ring(name)

    def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
        if prefetch < 1:
            raise UsageError(f"prefetch must be at least 1, not {prefetch}")
        place = Place(queue, self.names.retry_of(queue))
        return Receiver(place, prefetch, self._around).deliveries()

    async def ack(self, delivery: Delivery) -> None:
        lease: Lease = delivery.receipt
        await self._settle(lease, partial(self._file.run_batched, MessageTable.remove, lease))

    async def retry(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> None:
        lease: Lease = delivery.receipt
        state, due_at = self._schedule(delay)
        queue = self.names.retry_of(delivery.queue)
        overlay = encode_overlay(message.overlay)

        def put_off(table: MessageTable) -> bool:
            return table.put_off(lease, queue=queue, state=state, due_at=due_at, overlay=overlay, trail=trail)

        await self._settle(lease, partial(self._file.run, put_off))
        self._around.ring(queue)

    async def release(self, delivery: Delivery) -> None:
        lease: Lease = delivery.receipt

        def release(table: MessageTable) -> bool:
            return table.release([lease]) == 1

        # If it cannot be given back, nobody will try again: its lease must run out.
        await self._settle(lease, partial(self._file.run, release), keep_if_failed=False)
        self._around.ring(delivery.queue)

    async def depths(self, queues: Collection[str] = ()) -> Mapping[str, QueueDepth]:  # noqa: ARG002  the seam's signature
        """Of all queues: the file knows them all."""
        now = self._now()
        numbers: dict[str, Counter[str]] = {}
        for queue, state, total, passed in await self._file.look(lambda table: table.count(now)):
            due = total if state == READY else passed
            found = numbers.setdefault(queue, Counter())
            found["ready"] += due
            found["delayed" if state == DELAYED else "leased"] += total - due
        return {
            queue: QueueDepth(found["ready"], found["delayed"], found["leased"])
            for queue, found in numbers.items()
        }

    async def next_due(self, queue: str) -> datetime | None:
        """When the next delayed message of this queue or its retry queue is due."""
        place = Place(queue, self.names.retry_of(queue))
        outlook = await self._file.look(lambda table: table.peek(place, self._now()))
        return None if outlook.next_due is None else moment(outlook.next_due)

    async def close(self) -> None:
        async with self._closing:
            await self._leases.stop()
            try:
                await self._give_everything_back()
            finally:
                await self._file.close()

    async def _give_everything_back(self) -> None:
        receivers = {receiver for group in self._around.receivers.values() for receiver in group}
        for receiver in receivers:
            await receiver.stop()
        held = self._leases.held()
        for lease in held:
            self._leases.settle(lease)
        if held:
            await self._file.run(lambda table: table.release(held))

    async def _settle(
        self, lease: Lease, change: Callable[[], asyncio.Future[bool]], *, keep_if_failed: bool = True
    ) -> None:
        # Its place is free at once: what is fetched from now on is committed with this change, or after it.
        ours = self._leases.settle(lease)
        try:
            held = await change()
        except Exception:
            if ours and keep_if_failed:
                self._leases.take(lease)
            raise
        if not held:
            raise LeaseLost(
                f"message {lease.row_id} is no longer held: it was settled before, or its lease ran out",
                remedy="if leases run out, make them longer than the event loop ever stands still",
            )

    def _schedule(self, delay: float) -> tuple[int, int]:
        now = self._now()
        if delay <= 0:
            return READY, now
        if not delay <= _MAX_DELAY:
            raise UsageError(f"a delay of {delay} seconds is not possible: a hundred years at most")
        return DELAYED, now + round(delay * 1_000_000)

    def _now(self) -> int:
        return microseconds(self._clock.now())

    async def _extend(self, leases: list[Lease], until: int) -> set[int]:
        return await self._file.run(lambda table: table.renew(leases, until))

    def _check_name(self, name: str) -> None:
        """The retry and dead-letter queues of a name that fits fit too."""
        home = self.names.home_of_dead(name) or name
        if 0 < len(home) <= _MAX_NAME and name.isprintable():
            return
        raise PublishRefused(
            f"{name[:_MAX_NAME]!r} cannot be the name of a queue",
            permanent=True,
            remedy=f"use 1 to {_MAX_NAME} printable characters",
        )


def path_of(url: str) -> str:
    """The file's path: `embedded:///relative.db`, `embedded:////absolute.db`, `embedded:///:memory:`."""
    if url == f"embedded://{MEMORY}":
        return MEMORY
    path = url.removeprefix("embedded:///")
    if path and path != url and not path.endswith("/") and not set(path) & set("?#\0"):
        return path
    raise ConfigurationError(
        f"{url!r} is not the address of an embedded broker",
        remedy="write embedded:///file.db, embedded:////absolute/path/file.db or embedded:///:memory:",
    )


def _file(path: str) -> GroupCommit[MessageTable]:
    return GroupCommit(
        "broker",
        partial(MessageTable.open, path),
        control=MessageTable.control,
        disconnect=MessageTable.close,
        explain=partial(_explain, path),
    )


def _explain(path: str, error: BaseException) -> BaseException:
    if isinstance(error, sqlite3.DataError | OverflowError):
        return PublishRefused(
            f"the message does not fit into a row of {path}", permanent=True, remedy="make it smaller"
        )
    return explain_sqlite(error, path)
