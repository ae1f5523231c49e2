"""How the transport contract meets a driver: opening, closing, receiving, letting time pass."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import pytest_asyncio

from redrive.clock import new_id
from redrive.message import Message
from redrive.transports import ImmediateSending, capabilities_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from redrive.transports import Capabilities, Delivery, QueueDepth, Transport


@pytest.mark.asyncio
class TransportHarness:
    """Hooks first, which a driver's test writes; then what the tests of the contract use."""

    lease: ClassVar[float] = 60.0
    """Seconds after which a silent process has lost its deliveries; `make_transport` opens with it."""
    delay: ClassVar[float] = 5.0
    """Seconds of the delays asked for: short for a broker whose time passes by itself."""
    exact_time: ClassVar[bool] = True
    """`pass_time` moves the broker's time, and nothing else does."""
    patience: ClassVar[float] = 30.0
    """Seconds after which a delivery that does not come has failed its test."""

    queue_ending: ClassVar[str] = ""
    """What the names of the queues end with, where that says of which kind they are."""

    queue: str
    _opened: list[Transport]

    async def make_transport(self) -> Transport:
        """One more transport on the broker of this test, as another process would open it."""
        raise NotImplementedError

    async def pass_time(self, seconds: float) -> None:
        """Lets the broker's time pass."""
        raise NotImplementedError

    async def abandon(self, transport: Transport) -> None:
        """As if its process had died: it says nothing to the broker any more. Nothing to do for a driver whose
        heartbeat does not beat during a test.
        """

    # What the tests use.

    @pytest_asyncio.fixture(autouse=True)
    async def _tidy(self) -> AsyncIterator[None]:
        self.queue = f"contract_{new_id()}{self.queue_ending}"
        self._opened = []
        yield
        for transport in self._opened:
            await transport.close()

    @pytest_asyncio.fixture
    async def transport(self, _tidy: None) -> Transport:
        return await self.open()

    def can(self, transport: Transport) -> Capabilities:
        return capabilities_of(transport, self.queue)

    async def open(self) -> Transport:
        transport = await self.make_transport()
        self._opened.append(transport)
        return transport

    async def open_another(self, transport: Transport) -> Transport:
        if not self.can(transport).several_processes:
            pytest.skip("one process only")
        return await self.open()

    def message(self, **given: Any) -> Message:
        sent_at = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
        usual: dict[str, Any] = {
            "id": new_id(),
            "queue": self.queue,
            "body": b"{}",
            "sent_at": sent_at,
            "source": "contract",
        }
        return Message(**(usual | given))

    def aside(self, **given: Any) -> Message:
        """One that others need not wait for, and that waits for none of them: it has a key of its own."""
        return self.message(**({"key": new_id().encode()} | given))

    async def next(self, deliveries: AsyncGenerator[Delivery]) -> Delivery:
        async with asyncio.timeout(self.patience):
            return await anext(deliveries)

    async def take(self, transport: Transport, count: int = 1) -> list[Delivery]:
        """That many deliveries, unsettled; the iterator is closed."""
        if count > 1:
            self.need_side_by_side(transport)
        async with aclosing(transport.receive(self.queue, prefetch=count)) as deliveries:
            return [await self.next(deliveries) for _ in range(count)]

    async def take_one(self, transport: Transport) -> Delivery:
        return (await self.take(transport))[0]

    async def handle(self, transport: Transport, count: int) -> list[Delivery]:
        """That many deliveries, each acknowledged before the next; the iterator is closed."""
        taken: list[Delivery] = []
        async with aclosing(transport.receive(self.queue, prefetch=count)) as deliveries:
            while len(taken) < count:
                taken.append(await self.next(deliveries))
                await transport.ack(taken[-1])
        return taken

    def need_side_by_side(self, transport: Transport) -> None:
        if not self.can(transport).side_by_side:
            pytest.skip("one by one")

    async def expect_only(self, transport: Transport) -> Delivery:
        """Nothing but a message that is sent now can be received."""
        message = self.aside()
        async with aclosing(transport.receive(self.queue, prefetch=10)) as deliveries:
            await transport.send(message)
            delivery = await self.next(deliveries)
            assert delivery.message == message
            await self.expect_nothing(transport, deliveries)
        return delivery

    async def expect_nothing(self, transport: Transport, deliveries: AsyncGenerator[Delivery]) -> None:
        """Nothing more comes, given a few turns of the broker; the iterator is at its end then."""
        more = asyncio.create_task(anext(deliveries))
        for _ in range(3):
            await self.depths_of(transport)
        arrived = more.done()
        more.cancel()
        await asyncio.wait({more})
        assert not arrived

    def expect_unmarked(self, transport: Transport, *given_back: Delivery) -> None:
        """What was given back is not taken for what a dead process held, where the broker can tell them apart."""
        if self.can(transport).clean_release:
            assert not any(delivery.redelivered for delivery in given_back)

    def quick(self, transport: Transport) -> ImmediateSending:
        driver: object = transport
        if not isinstance(driver, ImmediateSending):
            pytest.skip("not at once")
        return driver

    def told(self, quick: ImmediateSending, message: Message) -> asyncio.Future[Exception | None]:
        """What becomes of a message that is sent at once; told twice, it would raise."""
        word: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        assert quick.send_at_once(message, queue=self.queue, done=word.set_result)
        return word

    async def total(self, transport: Transport) -> int:
        return sum(depth.total for depth in (await self.depths_of(transport)).values())

    async def depths_of(self, transport: Transport) -> dict[str, QueueDepth]:
        """What lies in this test's queues."""
        found = await transport.depths((self.queue,))
        own = self.queue.removesuffix(self.queue_ending)
        return {name: depth for name, depth in found.items() if own in name}

    async def open_another_with_leases(self, transport: Transport) -> Transport:
        if not self.can(transport).lease_expiry:
            pytest.skip("no leases")
        return await self.open_another(transport)
