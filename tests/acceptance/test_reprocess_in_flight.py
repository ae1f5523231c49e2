"""Several messages of a dead-letter queue go home at a time; what befalls one is not told of another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from redrive import dead_letter_queue
from redrive.clock import SystemClock
from redrive.dead_letter_queue import DeadLetterQueue
from redrive.errors import Unreachable
from redrive.pace import Pace
from redrive.transports import Names
from redrive.transports.embedded import EmbeddedTransport
from support.dead_letters import an_order

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.message import Message


class Failing(EmbeddedTransport):
    """Takes its time over each message for `orders`, and then loses it from sight."""

    may_fail: asyncio.Event

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        if queue == "orders":
            await self.may_fail.wait()
            raise Unreachable("the broker is away")
        await super().send(message, queue=queue, delay=delay, trail=trail)


async def test_a_send_that_fails_late_is_an_error_and_no_message_that_somebody_else_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_queue, "_PATIENCE", 0.01)
    transport = Failing(f"embedded:///{tmp_path}/broker.db", names=Names())
    transport.may_fail = asyncio.Event()
    await transport.send(an_order(), queue="orders_dlq")
    queue = DeadLetterQueue("orders_dlq", transport=transport)

    asyncio.get_running_loop().call_later(0.2, transport.may_fail.set)  # long after nothing more has come
    with pytest.raises(Unreachable):
        await queue.drain(2, pace=Pace(None, SystemClock()))  # one more than there is
    await transport.close()
