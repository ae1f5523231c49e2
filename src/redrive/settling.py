"""What becomes of a delivery once it is known how its handler ended: the order of writes, in one place.

Record before you remove: nothing is acknowledged before what replaces it is durable.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
import structlog

from redrive import control, faults
from redrive.dead_letter import Actor, DeadLetter, Entry, Recorded, Status
from redrive.errors import NotDurable, Permanent, PublishRefused, Transient, Unreachable
from redrive.failure import Failure, FailureKind, Host, attempts_in, capture
from redrive.fingerprint import cause, fingerprint
from redrive.handler import in_thread, is_async
from redrive.ordering import parked, parked_group
from redrive.policy import Drop, RetryAfter
from redrive.sinks import with_failure, with_trail
from redrive.telemetry.error_facts import error_facts
from redrive.telemetry.spans import told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Executor
    from datetime import datetime

    from redrive.attempt import Attempts, Failed
    from redrive.availability import Availability
    from redrive.clock import Clock
    from redrive.control import RedriveTicket
    from redrive.handler import DeadLetterHook, Handler
    from redrive.ordering import OrderedBy
    from redrive.sinks import Kept, SinkChain
    from redrive.stores import DeadLetterStore
    from redrive.telemetry.counts import HandlerCounts
    from redrive.telemetry.spans import Span, Spans
    from redrive.transports import Delivery, NativeDeadLetters, Transport

log = structlog.get_logger("redrive.consumer")

T = TypeVar("T")

HOOK_TIMEOUT = 30.0
_SINK_FIRST, _SINK_LAST = 0.5, 5.0


class DiedOfIt(Permanent):
    """The process died while handling this message, several times."""


class BreakerOpen(Transient):
    """The breaker was open and its mode is to dead-letter."""


class Settling:
    """For the one handler of one queue. `on_critical` is told of every critical letter."""

    def __init__(
        self,
        handler: Handler,
        *,
        transport: Transport,
        store: DeadLetterStore,
        availability: Availability,
        sinks: SinkChain,
        executor: Executor,
        clock: Clock,
        host: Host,
        on_critical: Callable[[DeadLetter], object] | None = None,
        notify_critical: bool = True,
        ordered_by: OrderedBy | None = None,
        counts: HandlerCounts,
        spans: Spans | None = None,
    ) -> None:
        self._handler = handler
        self._counts = counts
        self._transport = transport
        self._store = store
        self._availability = availability
        self._sinks = sinks
        self._executor = executor
        self._clock = clock
        self._host = host
        self._on_critical = on_critical
        self._notify_critical = notify_critical
        self._ordered_by = ordered_by
        self._spans = spans
        self.durable = True
        """False while a letter waits because no sink takes it."""
        self._is_durable = asyncio.Event()
        self._is_durable.set()
        self._waiting = 0

    async def until_durable(self) -> None:
        await self._is_durable.wait()

    def succeeded(self, delivery: Delivery) -> Awaitable[None]:
        if delivery.message.headers or faults.armed():
            return self._done(delivery, "succeeded")
        return self._transport.ack(delivery)  # no ticket: the usual way, and the shortest

    async def failed(self, delivery: Delivery, failed: Failed) -> None:
        decision = failed.decision
        if isinstance(decision, RetryAfter):
            await self._retry_or_dead_letter(delivery, failed, decision.delay)
        elif isinstance(decision, Drop):
            log.info("message dropped by its handler", queue=delivery.queue, message_id=delivery.message.id)
            await self._done(delivery, "dropped it")
        else:
            await self._dead_letter(delivery, failed.failures, failed.first_attempt_at)

    async def deadly(self, delivery: Delivery, deaths: int) -> None:
        """A message whose process died each time goes to quarantine without running again."""
        error = DiedOfIt(f"the process died {deaths} times while it handled this message")
        await self._without_running(delivery, error, quarantine=f"{deaths} process deaths")

    async def breaker_open(self, delivery: Delivery, attempts: Attempts) -> None:
        error = BreakerOpen("the breaker of this queue is open")
        await self._without_running(delivery, error, kind=attempts.policy.classify(error))

    async def _without_running(
        self,
        delivery: Delivery,
        error: Exception,
        *,
        kind: FailureKind = FailureKind.CRITICAL,
        quarantine: str | None = None,
    ) -> None:
        now = self._clock.now()
        failure = capture(
            error, attempt=delivery.attempt, at=now, kind=kind, handler=self._handler.name, host=self._host
        )
        failures = (*attempts_in(delivery.trail), failure)
        await self._dead_letter(delivery, failures, delivery.first_attempt_at or now, quarantine=quarantine)

    async def _done(self, delivery: Delivery, how: str) -> None:
        if control.carries_ticket(delivery.message.headers):
            await self._confirm(delivery, how)
        await self._ack(delivery)

    async def _confirm(self, delivery: Delivery, how: str) -> None:
        """T10. If the store is away the letter stays REDRIVEN, which is true: nobody has confirmed it."""
        faults.point("worker.before_confirm")
        with told(None if self._spans is None else self._spans.confirm(delivery)) as span:
            try:
                if self._ordered_by is None:
                    await self._availability.ask(lambda: self._confirm_ticket(delivery, how, span))
                else:  # or everything behind it would wait for ever
                    await self._ask_until_answered(delivery, lambda: self._confirm_ticket(delivery, how, span))
            except Exception as error:  # noqa: BLE001  the handler has succeeded: it must not run again for this
                log.warning("redrive not confirmed", message_id=delivery.message.id, **error_facts(error))
                span.end(error)
        faults.point("worker.after_confirm")

    async def _confirm_ticket(self, delivery: Delivery, how: str, span: Span) -> None:
        if (ticket := await self._ticket(delivery)) is not None:
            span.note(letter_id=ticket.letter_id, redrive_id=ticket.redrive_id, generation=ticket.generation)
            await self._store.confirm(ticket, by=Actor("consumer", f"{self._handler.name} {how}"))

    async def _ticket(self, delivery: Delivery) -> RedriveTicket | None:
        if not control.carries_ticket(delivery.message.headers):
            return None
        return control.read_ticket(delivery.message.headers, delivery.queue, await self._store.signing_key())

    # Order.

    async def ahead(self, lane: str, delivery: Delivery) -> str | None:
        """The letter that this delivery has to wait behind, if there is one. While the store is away nobody knows:
        then it waits, and nothing new is taken.
        """
        return await self._ask_until_answered(delivery, lambda: self._ahead(lane, delivery))

    async def _ahead(self, lane: str, delivery: Delivery) -> str | None:
        ticket = await self._ticket(delivery)
        return await self._store.ahead(lane, of=None if ticket is None else ticket.letter_id)

    async def _ask_until_answered(self, delivery: Delivery, question: Callable[[], Awaitable[T]]) -> T:
        said = "the store is away, which alone knows the order of this queue: consumption pauses"
        return await self._insist(lambda: self._availability.ask(question), delivery.queue, said)

    async def park(self, delivery: Delivery, ahead: str) -> None:
        """It has not failed and is not tried: a letter behind that one, and then it is acknowledged."""
        now, error = self._clock.now(), parked()
        transient, attempt = FailureKind.TRANSIENT, delivery.attempt
        failure = capture(
            error, attempt=attempt, at=now, kind=transient, handler=self._handler.name, host=self._host
        )
        failures = (*attempts_in(delivery.trail), failure)
        entry = self._entry(delivery, failures, delivery.first_attempt_at or now, None)
        kept = await self._record(
            delivery, msgspec.structs.replace(entry, fingerprint=parked_group(delivery.queue))
        )
        about = {"message_id": delivery.message.id, "letter_id": kept.letter_id, "blocked_by": ahead}
        log.info("message parked behind a dead one of its key", queue=delivery.queue, **about)

    async def _retry_or_dead_letter(self, delivery: Delivery, failed: Failed, delay: float) -> None:
        try:
            await self._retry(delivery, failed, delay)
        except PublishRefused as error:
            if not error.permanent:
                raise
            # It would be refused for ever, and run for ever without being counted.
            log.warning(
                "retry refused by the broker, no further attempt", queue=delivery.queue, **error_facts(error)
            )
            await self._dead_letter(delivery, failed.failures, failed.first_attempt_at)

    async def _retry(self, delivery: Delivery, failed: Failed, delay: float) -> None:
        last = failed.failures[-1]
        message = with_failure(delivery.message, last)
        faults.point("worker.before_retry")
        with told(None if self._spans is None else self._spans.retry(delivery, delay=delay)):
            await with_trail(
                failed.failures, lambda trail: self._transport.retry(delivery, message, delay=delay, trail=trail)
            )
        faults.point("worker.after_retry")
        self._counts.retried += 1
        log.info(
            "retry scheduled",
            queue=delivery.queue,
            message_id=message.id,
            attempt=last.attempt,
            delay=round(delay, 3),
            error_type=last.type,
        )

    async def _dead_letter(
        self,
        delivery: Delivery,
        failures: tuple[Failure, ...],
        first_attempt_at: datetime,
        *,
        quarantine: str | None = None,
    ) -> None:
        kept = await self._record(delivery, self._entry(delivery, failures, first_attempt_at, quarantine))
        self._tell(kept)
        await self._call_hooks(kept)

    async def _record(self, delivery: Delivery, entry: Entry) -> Kept:
        faults.point("worker.before_record")
        with told(None if self._spans is None else self._spans.dead_letter(delivery)) as span:
            kept = await self._keep(entry, span)
            faults.point("worker.after_record")
            seconds = (entry.at - entry.first_attempt_at).total_seconds()
            self._counts.count_letter(entry.failures[-1].kind, kept.sink, seconds)
            await (self._give_to_the_dead(delivery, kept.entry) if kept.natively else self._ack(delivery))
        return kept

    async def _give_to_the_dead(self, delivery: Delivery, entry: Entry) -> None:
        """In the place of an ack. Before it the message is in its queue, whatever else has the letter."""
        driver = cast("NativeDeadLetters", self._transport)
        last = entry.failures[-1]
        faults.point("worker.before_ack")
        await with_trail(
            entry.failures,
            lambda trail: driver.dead_letter(delivery, reason=last.type, text=last.text, trail=trail),
            identity=entry.identity,
        )
        faults.point("worker.after_ack")

    def _entry(
        self,
        delivery: Delivery,
        failures: tuple[Failure, ...],
        first_attempt_at: datetime,
        quarantine: str | None,
    ) -> Entry:
        return Entry(
            identity=f"{delivery.identity}/{self._handler.name}",
            message=delivery.message,
            queue=delivery.queue,
            handler=self._handler.name,
            failures=failures,
            fingerprint=fingerprint(failures[-1], queue=delivery.queue),
            at=self._clock.now(),
            first_attempt_at=first_attempt_at,
            quarantine=quarantine,
            lane=None if self._ordered_by is None else self._ordered_by.lane(delivery.message, delivery.queue),
        )

    async def _keep(self, entry: Entry, span: Span) -> Kept:
        """Tries the sinks until one takes the letter. Meanwhile nothing is acknowledged and nothing new taken."""
        said = "no sink takes dead letters, consumption pauses"
        kept = await self._insist(lambda: self._sinks.keep(entry), entry.queue, said)
        span.note(kind=str(entry.failures[-1].kind), group_id=entry.fingerprint.id, sink=kept.sink)
        if kept.letter_id is not None:
            span.note(letter_id=kept.letter_id)
        return kept

    async def _insist(self, ask: Callable[[], Awaitable[T]], queue: str, said: str) -> T:
        wait = _SINK_FIRST
        self._waiting += 1
        try:
            while True:
                try:
                    return await ask()
                except (NotDurable, Unreachable) as error:
                    self.durable = False
                    self._is_durable.clear()
                    log.critical(said, queue=queue, error=str(error))
                    await self._clock.sleep(wait)
                    wait = min(wait * 2, _SINK_LAST)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.durable = True
                self._is_durable.set()

    async def _ack(self, delivery: Delivery) -> None:
        faults.point("worker.before_ack")
        await self._transport.ack(delivery)
        faults.point("worker.after_ack")

    def _tell(self, kept: Kept) -> None:
        """S2's line. The reason is the group's title: the exception's own text may repeat the payload."""
        entry = kept.entry
        last = entry.failures[-1]
        (log.critical if self._needs_a_person(entry) else log.warning)(
            "message sent to dead letter queue",
            message_id=entry.message.id,
            message_type=self._handler.payload_type,
            queue=entry.queue,
            attempts=last.attempt,
            reason=cause(last),  # not the group's title: the error's text may hold words of the payload
            group_id=entry.fingerprint.id,
            kind=str(last.kind),
            letter_id=kept.letter_id,
            sink=kept.sink,
        )

    def _needs_a_person(self, entry: Entry) -> bool:
        return self._notify_critical and entry.failures[-1].kind is FailureKind.CRITICAL

    async def _call_hooks(self, kept: Kept) -> None:
        if kept.recorded is Recorded.AGAIN:
            return
        letter = as_letter(kept.entry, kept.letter_id)
        if self._handler.hook is not None:
            await self._call_hook(self._handler.hook, letter)
        if self._on_critical is not None and self._needs_a_person(kept.entry):
            await self._call_hook(self._on_critical, letter)

    async def _call_hook(self, hook: DeadLetterHook, letter: DeadLetter) -> None:
        try:
            async with asyncio.timeout(HOOK_TIMEOUT):
                told = hook(letter) if is_async(hook) else await in_thread(self._executor, hook, letter)
                if inspect.isawaitable(told):
                    await told
        except (Exception, SystemExit) as error:  # noqa: BLE001  the letter is safe, whatever becomes of the hook
            log.error(  # noqa: TRY400  a traceback may show the payload
                "a dead-letter hook failed", queue=letter.queue, letter_id=letter.id, **error_facts(error)
            )


def as_letter(entry: Entry, letter_id: str | None) -> DeadLetter:
    """The letter as a hook sees it, before anybody has read it back from the store."""
    last = entry.failures[-1]
    return DeadLetter(
        id=letter_id or "",
        status=Status.QUARANTINED if entry.quarantine else Status.PENDING,
        how=entry.quarantine,
        message=entry.message,
        queue=entry.queue,
        handler=entry.handler,
        kind=str(last.kind),
        type=last.type,
        text=last.text,
        group_id=entry.fingerprint.id,
        identity=entry.identity,
        generation=entry.ticket.generation + 1 if entry.ticket else 1,
        revision=0,
        deliveries=1,
        attempts=last.attempt,
        created_at=entry.at,
        first_attempt_at=entry.first_attempt_at,
        last_attempt_at=last.at,
        changed_at=entry.at,
        failures=entry.failures,
    )
