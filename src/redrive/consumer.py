"""Runs the handler of one queue, and settles every delivery in an order that survives a kill at any point.

The life of a delivery:
1. It is received. If it was delivered before and never settled, its process may have died of it: it is counted
   in the journal first (`suspects`); after three deaths it is quarantined without running.
2. The handler runs. Success: a redriven message's letter is confirmed, then the delivery is acknowledged.
3. Failure: the policy decides. Retry: durable in the retry queue, and gone from here, in one step of the
   transport; in an ordered queue it is kept instead (`in_order`). Dead letter: the sink chain makes it durable,
   then the delivery is acknowledged. Drop: acknowledged.
4. No sink took it: it is not acknowledged, consumption pauses, readiness is false, and the sinks are tried again.
5. Many transient failures of one type in a row: the breaker pauses consumption and probes one at a time.
6. A delivery that is no longer ours, as far as its transport knows: its handler is cancelled, and nothing of it
   is settled. A plain `def` handler runs on in its thread, which nobody can stop.
7. Stopping: what was fetched and not begun is given back, what runs may finish within the grace, the rest is
   cancelled and given back. Nothing unfinished is ever acknowledged; what is finished is still settled.
"""

from __future__ import annotations

import asyncio
import contextlib
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import structlog

from redrive import faults
from redrive.breaker import Breaker, BreakerState
from redrive.crew import Crew
from redrive.errors import LeaseLost
from redrive.failure import FailureKind
from redrive.giving_back import GivingBack
from redrive.in_order import InOrder
from redrive.policy import Drop, RetryAfter
from redrive.reconnection import Reconnection
from redrive.telemetry.error_facts import error_facts
from redrive.telemetry.spans import told
from redrive.transports import TellingOfLosses, capabilities_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from redrive.attempt import Attempts
    from redrive.clock import Clock
    from redrive.failure import Failure
    from redrive.ordering import OrderedBy
    from redrive.settling import Settling
    from redrive.suspects import Suspects
    from redrive.telemetry.spans import Spans
    from redrive.transports import Delivery, Transport

log = structlog.get_logger("redrive.consumer")

_AGAIN = 1.0
_LONGEST_LOOK = 5.0
_SETTLING = 2.0
_GIVING_BACK = 5.0
_LEAVING = 5.0
_PLACES = 10
_FETCHED_AHEAD = 2
"""Messages in hand for each that may run, where that takes nothing from others: in an ordered queue they may wait
behind one another, and letters are written to the store together.
"""


class _Phase(Enum):
    FLOW = auto()
    WAIT = auto()
    PROBE = auto()


class ConsumerOptions(msgspec.Struct, frozen=True, kw_only=True):
    concurrency: int = 10
    prefetch: int | None = None
    """None: as many as `concurrency`; twice as many where they are fetched by requests, ten times as many of an
    ordered queue, and where no consumers compete.
    """
    grace: float = 30.0
    breaker_failures: int = 20
    breaker_pause: float = 30.0
    breaker_dead_letters: bool = False
    """S0's other choice: while the breaker is open, dead-letter instead of waiting."""

    def in_hand(self, *, ordered: bool, competing: bool, by_requests: bool) -> int:
        """How many messages may be fetched and not settled."""
        # What one of competing consumers holds without need, the others miss.
        places = _PLACES if ordered or not competing else _FETCHED_AHEAD if by_requests else 1
        return self.prefetch or self.concurrency * places


class Consumer:
    def __init__(
        self,
        queue: str,
        *,
        transport: Transport,
        attempts: Attempts,
        settling: Settling,
        suspects: Suspects,
        options: ConsumerOptions,
        clock: Clock,
        ordered_by: OrderedBy | None = None,
        spans: Spans | None = None,
    ) -> None:
        self.queue = queue
        self.breaker = Breaker(failures=options.breaker_failures, pause=options.breaker_pause)
        self._transport = transport
        self._attempts = attempts
        self._settling = settling
        self._suspects = suspects
        self._options = options
        self._clock = clock
        self._giving_back = GivingBack(transport)
        self._order: InOrder | None = None
        at_once, ordered = options.concurrency, ordered_by is not None
        can = self._capabilities = capabilities_of(transport, queue)
        self._prefetch = options.in_hand(ordered=ordered, competing=can.competing, by_requests=can.by_requests)
        if ordered_by is not None:
            self._order = InOrder(ordered_by, settling=settling, concurrency=at_once, clock=clock)
            at_once = self._prefetch
        handle = self._process if spans is None else partial(self._followed, spans)
        self._crew = Crew(at_once, self._prefetch, handle, self._forsaken)
        self._taking: asyncio.Task[None] | None = None
        self._stopped = False
        self._broker = Reconnection(queue, transport=transport, clock=clock)
        driver: object = transport
        if isinstance(driver, TellingOfLosses):
            driver.lost.listen(self._lose)

    @property
    def ready(self) -> bool:
        """Whether it consumes: the broker is there, a sink takes letters, the breaker holds nothing up."""
        return self._broker.connected and self._settling.durable and not self.held_up

    @property
    def held_up(self) -> bool:
        """Whether the breaker has stopped consumption, or one message is being tried. An open one of a queue to
        which nothing comes would else be told as trouble until something does.
        """
        if self.breaker.state is BreakerState.CLOSED:
            return False
        return self._crew.busy or self.breaker.holds_up(self._clock.monotonic())

    @property
    def in_hand(self) -> int:
        """Messages that are handled or settled right now."""
        return len(self._crew.running)

    @property
    def busy(self) -> bool:
        return self._crew.busy or bool(self._giving_back.under_way)

    async def run(self) -> None:
        """Consumes until `stop`. A broker that goes away is waited for; everything else is an error."""
        self._taking = asyncio.create_task(self._take())
        with contextlib.suppress(asyncio.CancelledError):
            await self._taking

    def stop(self) -> None:
        """Takes no more; `finish` waits for what runs. Safe to repeat."""
        if self._taking is not None and not self._stopped:
            self._taking.cancel()  # once: a second time would interrupt the giving back
        self._stopped = True

    async def finish(self, grace: float) -> None:
        """Lets running handlers end within the grace, then cancels them; cancelled deliveries are given back. What
        a handler has done is not done again for want of a moment: settling it may take a little longer.
        """
        self.stop()
        for delivery in self._crew.take_back():
            self._giving_back.start(delivery)
        for waiting in () if self._order is None else self._order.waiting:
            waiting.cancel()
        running = self._crew.running
        if running and grace > 0:
            await asyncio.wait(running, timeout=grace)
        for task in running.keys() - self._crew.settling:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_SETTLING)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_LEAVING)
        self._leave_behind()
        if last := {*self._giving_back.under_way, *([self._taking] if self._taking else [])}:
            await asyncio.wait(last, timeout=_GIVING_BACK)

    def _leave_behind(self) -> None:
        """Handlers that swallow their cancellation must not keep the process: it leaves without them."""
        left = self._crew.leave_behind()
        if left:
            log.error(
                "handlers do not end though cancelled, leaving without them", queue=self.queue, running=len(left)
            )
        for delivery in left:
            self._giving_back.start(delivery)

    async def _take(self) -> None:
        # Not only until it is cancelled: a broker that is away when deliveries are to be given back raises its
        # own error in the place of the cancellation.
        while not self._stopped:
            await self._broker.attempt(self._take_while_open)

    async def _take_while_open(self) -> None:
        await self._until_open()
        await self._broker.sign_of_life()
        await self._consume()

    def _phase(self) -> _Phase:
        if self.breaker.state is BreakerState.CLOSED:
            return _Phase.FLOW
        if self.breaker.remaining(self._clock.monotonic()):
            return _Phase.FLOW if self._options.breaker_dead_letters else _Phase.WAIT
        return _Phase.PROBE

    async def _until_open(self) -> None:
        """Waits until a message may be taken: a sink takes letters, the breaker is closed or wants a probe."""
        while True:
            if not self._settling.durable:
                await self._settling.until_durable()
            elif self.breaker.state is BreakerState.PROBING and self._crew.busy:
                await self._crew.something_ends()
            elif self._phase() is _Phase.WAIT:
                remaining = self.breaker.remaining(self._clock.monotonic())
                await self._clock.sleep(min(remaining, _LONGEST_LOOK))
            else:
                return

    async def _consume(self) -> None:
        """Takes deliveries until something asks for a pause; what was fetched and not begun is given back."""
        phase, crew = self._phase(), self._crew
        prefetch = 1 if phase is _Phase.PROBE else self._prefetch
        async with contextlib.aclosing(self._transport.receive(self.queue, prefetch=prefetch)) as deliveries:
            while self._settling.durable and self._phase() is phase:
                if crew.full:
                    await crew.something_ends()
                    continue
                delivery = await anext(deliveries)
                self._broker.connected = True
                if phase is _Phase.PROBE:
                    self.breaker.probe()
                crew.give(delivery)
                if phase is _Phase.PROBE:
                    return

    def _forsaken(self, delivery: Delivery, error: BaseException | None) -> None:
        if error is not None:
            log.error("a delivery could not be settled", queue=self.queue, **error_facts(error))
        self._giving_back.start(delivery)

    def _lose(self, receipt: object) -> None:
        """What its handler would still do, somebody else may be doing."""
        delivery = self._crew.give_up(receipt)
        if delivery is not None:
            log.warning(
                "lease lost, its handler is cancelled and another delivery goes on",
                queue=self.queue,
                message_id=delivery.message.id,
            )

    async def _followed(self, spans: Spans, delivery: Delivery) -> None:
        with told(spans.receive(delivery)):
            await self._process(delivery)

    async def _process(self, delivery: Delivery) -> None:
        try:
            faults.point("worker.received")
            if self._order is None:
                await self._begin(delivery)
            else:
                await self._order.run(delivery, self._begin)
        except LeaseLost:
            log.warning("lease lost, another delivery goes on", queue=self.queue, message_id=delivery.message.id)
        except Exception as error:  # noqa: BLE001  ours failed, not the handler: not settled, so not lost
            log.error(  # noqa: TRY400  a traceback may show the payload
                "not settled, will come again",
                queue=self.queue,
                message_id=delivery.message.id,
                **error_facts(error),
            )
            await self._clock.sleep(_AGAIN)  # no hot loop
            await asyncio.shield(self._giving_back.start(delivery))

    def _begin(self, delivery: Delivery) -> Awaitable[object]:
        return self._suspects.run(delivery, self._handle) if delivery.redelivered else self._handle(delivery)

    async def _handle(self, delivery: Delivery) -> bool:
        """Whether it waits in this process for its next attempt."""
        if self._options.breaker_dead_letters and self.breaker.state is BreakerState.OPEN:
            if self.breaker.remaining(self._clock.monotonic()):
                await self._settling.breaker_open(delivery, self._attempts)
                return False
            self.breaker.probe()  # the pause ended while no message came
        attempts = self._attempts
        failed = await (attempts.run(delivery) if self._order is None else self._order.attempt(delivery, attempts))
        self._crew.settles()
        if failed is None:
            self.breaker.succeeded()
            await self._settling.succeeded(delivery)
            return False
        if not isinstance(failed.decision, Drop):
            self._count(failed.failures[-1], delivery)
        await self._settling.failed(delivery, failed)
        return isinstance(failed.decision, RetryAfter) and not self._capabilities.durable_retries

    def _count(self, failure: Failure, delivery: Delivery) -> None:
        if failure.kind is not FailureKind.TRANSIENT:
            return
        if self.breaker.failed(failure.type, delivery.identity, self._clock.monotonic()):
            log.error("breaker opened, consumption pauses", queue=self.queue, error_type=failure.type)
