"""A store as it is two hours after the night's incident began, the same one each time.

Letters of a week, people who looked at them, and runs that went well, were stopped by their canary, are under way,
or wait for an approval.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from redrive.access import local
from redrive.actions import Actions
from redrive.alerts.alert import Alert
from redrive.alerts.rule import DEFAULTS
from redrive.approvals import ApprovalRules
from redrive.clock import new_id
from redrive.control import RedriveTicket
from redrive.dead_letter import Actor, Entry, Status, Verdict
from redrive.engine import RedriveEngine
from redrive.failure import Failure, Host, Raised
from redrive.fingerprint import fingerprint
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.privacy.maskers import Maskers
from redrive.run import Canary, RunChange, RunPlan
from redrive.run_policy import RunPolicy
from redrive.search import parse
from redrive.stores import Store
from redrive.transports import Transport
from redrive.uptime import Uptime, uptime
from redrive.watching import Watch
from tools.causes import CAUSES, Cause

APPROVED_ABOVE = 100
_RETRIED_AFTER = (0.0, 5.0, 35.0, 155.0)
"""Seconds from the first attempt to each."""


class StoryClock:
    """Says when it is in the story; goes on from there."""

    def __init__(self) -> None:
        self.tell(datetime.now(UTC))

    def tell(self, moment: datetime) -> None:
        self._at, self._since = moment, time.monotonic()

    def now(self) -> datetime:
        return self._at + timedelta(seconds=time.monotonic() - self._since)

    def monotonic(self) -> float:
        return time.monotonic()

    def uptime(self) -> Uptime:
        return uptime()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.05))


@dataclass(frozen=True)
class _Failed:
    """One message that failed for good, at that moment."""

    cause: Cause
    at: datetime
    number: int


@dataclass
class Incident:
    store: Store
    transport: Transport
    clock: StoryClock
    masks: Maskers
    now: datetime

    async def tell(self) -> None:
        await self._record(before=30 * 60)
        await self._look(hours=30)
        await self._record(before=28 * 60, after=30 * 60)
        await self._yesterday()
        await self._look(hours=25.9)
        await self._record(before=110, after=28 * 60)
        await self._look(minutes=110)
        await self._record(before=0, after=110)
        await self._tonight()
        await self._look(minutes=0.3)
        await self._seen_to()
        self.clock.tell(self.now)

    # Messages that fail

    async def _record(self, *, before: float, after: float = 1e9) -> None:
        """Those of that time, in minutes before now, in the order of time."""
        for failed in _all(self.now):
            if before <= (self.now - failed.at).total_seconds() / 60 < after:
                self.clock.tell(failed.at)
                await self.store.record(_entry(failed))

    # What people did

    async def _yesterday(self) -> None:
        self._at(hours=27.5)
        carol = self._as("carol")
        group = await self._group("label")
        await carol.annotate(group, owner="logistics", verdict=Verdict.REPLAYABLE, reason="the carrier is back")
        plan = RunPlan(selection=self._matching("queue:shipments"), rate=None, reason="NordPost answers again")
        run_id = await self._carried_out(carol, plan)
        await self._confirm(run_id, leave=0)
        self._at(hours=26)
        old = await carol.letters(LetterQuery(where=parse("queue:emails", now=self.now), limit=40))
        await carol.discard([each.id for each in old], "mailboxes that are gone")

    async def _tonight(self) -> None:
        ann, ben = self._as("ann"), self._as("ben")
        await self._notes(ann)
        self._at(minutes=70)
        held = await ann.letters(
            LetterQuery(where=parse("queue:orders type:IntegrityError", now=self.now), limit=4)
        )
        await ann.quarantine([each.id for each in held], "may have been charged twice")
        corrected = await ben.letters(LetterQuery(where=parse("queue:emails age:<1d", now=self.now), limit=6))
        await ben.resolve([each.id for each in corrected], "support has corrected the addresses")
        await self._stopped_by_its_canary(ben)
        await self._under_way(ann)
        self._at(minutes=6)
        selection = self._matching("type:GatewayTimeout")
        await self._made(ben, RunPlan(selection=selection, rate=20, reason="the acquirer says that it is back"))
        for cause, waiting in (("gateway", 12), ("customer", 4), ("mail", 1)):
            await self._wait_in_queue(cause, waiting)

    async def _notes(self, ann: Actions) -> None:
        self._at(minutes=95)
        await ann.annotate(
            await self._group("gateway"),
            owner="payments",
            verdict=Verdict.INVESTIGATE,
            note="lisboa-2 stopped answering at the failover. Their status page says: investigating.",
            runbook="https://wiki.example.com/payments/acquirer-down",
            reason="first look",
        )
        fix = "waits for the release of Thursday"
        await ann.annotate(await self._group("tax"), owner="billing", verdict=Verdict.REQUIRES_FIX, reason=fix)

    async def _stopped_by_its_canary(self, ben: Actions) -> None:
        self._at(minutes=52)
        canary = Canary(steps=(3, 20), wait=300.0)
        plan = RunPlan(
            selection=self._matching("type:NoCustomer"), canary=canary, reason="customers were imported"
        )
        planned = await ben.plan_run(plan)
        run = await ben.create_run(planned)
        engine = asyncio.create_task(self._engine().carry_out(run.id))
        await self._sent(run.id, 3)
        await self._come_back(run.id)
        await engine

    async def _under_way(self, ann: Actions) -> None:
        self._at(minutes=9)
        canary = Canary(steps=(24, 60), wait=600.0, at_most_back=0.5)
        plan = RunPlan(
            selection=self._matching("queue:invoices"), canary=canary, rate=None, reason="tax ids are in"
        )
        run = await ann.create_run(await ann.plan_run(plan))
        engine = asyncio.create_task(self._engine().carry_out(run.id))
        await self._sent(run.id, 24)
        await self._confirm(run.id, leave=7)
        engine.cancel()
        with suppress(asyncio.CancelledError):
            await engine

    # What the server tells by itself

    async def _look(self, **ago: float) -> None:
        """At the rules as they are without any setting."""
        self._at(**ago)
        rules = tuple(DEFAULTS.values())
        watch = Watch(
            rules,
            store=self.store,
            tell=_nobody,
            masks=self.masks,
            clock=self.clock,
            holder="redrive-1",
            every=15.0,
        )
        await watch.look()

    async def _seen_to(self) -> None:
        self._at(minutes=0.2)
        ann, ben = self._as("ann"), self._as("ben")
        firing = {each.key: each.id for each in await ann.incidents(firing=True)}
        await ann.acknowledge(firing[f"new_group/{await self._group('gateway')}"], "talking to the acquirer")
        await ben.snooze(firing["age"], "1d", "those of last week wait for billing")

    # How runs are carried out

    async def _made(self, who: Actions, plan: RunPlan) -> str:
        return (await who.create_run(await who.plan_run(plan))).id

    async def _carried_out(self, who: Actions, plan: RunPlan) -> str:
        run = await who.create_run(await who.plan_run(plan))
        if run.approval is not None:
            await self._as("abe").change_run(run.id, RunChange.APPROVE, "looked at it")
        await self._engine().carry_out(run.id)
        return run.id

    def _engine(self) -> RedriveEngine:
        return RedriveEngine(store=self.store, transport=self.transport, clock=self.clock, owner="redrive-1")

    async def _sent(self, run_id: str, number: int) -> None:
        while (run := await self.store.run(run_id)) and run.progress.sent < number:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.02)

    async def _tickets(self, run_id: str) -> list[RedriveTicket]:
        desk = self._as("ann")
        found = [each async for each in desk.outcomes(run_id) if each.outcome == "sent"]
        letters = [await self.store.get(each.letter_id) for each in found]
        return [
            RedriveTicket(each.redrive_id, each.letter_id, letter.generation, each.queue)
            for each, letter in zip(found, letters, strict=True)
            if letter is not None
        ]

    async def _confirm(self, run_id: str, *, leave: int) -> None:
        tickets = await self._tickets(run_id)
        settled = tickets[: len(tickets) - leave]
        for ticket in settled:
            await self.store.confirm(ticket, by=Actor("consumer"))
        await self._handled(tickets[0].target, len(settled))

    async def _handled(self, queue: str, number: int) -> None:
        """So many messages are gone from the queue."""
        receiving = self.transport.receive(queue, prefetch=number)
        for _ in range(number):
            await self.transport.ack(await anext(receiving))
        await receiving.aclose()

    async def _wait_in_queue(self, cause: str, number: int) -> None:
        found = next(each for each in CAUSES if each.name == cause)
        for each in range(number):
            message = _entry(_Failed(found, self.now, 5000 + each)).message
            await self.transport.send(message, queue=message.queue)

    async def _come_back(self, run_id: str) -> None:
        cause = next(each for each in CAUSES if each.name == "customer")
        tickets = await self._tickets(run_id)
        await self._handled(cause.queue, len(tickets))
        for number, ticket in enumerate(tickets):
            again = _entry(_Failed(cause, self.clock.now(), 900 + number))
            letter = await self.store.get(ticket.letter_id)
            assert letter is not None
            await self.store.record(
                Entry(
                    identity=letter.identity,
                    message=letter.message,
                    queue=again.queue,
                    handler=again.handler,
                    failures=again.failures,
                    fingerprint=again.fingerprint,
                    at=again.at,
                    first_attempt_at=again.first_attempt_at,
                    ticket=ticket,
                )
            )

    # Who and when

    def _as(self, name: str) -> Actions:
        policy = RunPolicy(approval=ApprovalRules(more_than=APPROVED_ABOVE))
        return Actions(
            store=self.store, transport=self.transport, clock=self.clock, who=local(name), policy=policy
        )

    def _at(self, **ago: float) -> None:
        self.clock.tell(self.now - timedelta(**ago))

    def _matching(self, text: str) -> LetterQuery:
        return LetterQuery(where=parse(text, now=self.now), status=Status.PENDING)

    async def _group(self, cause: str) -> str:
        found = next(each for each in _all(self.now) if each.cause.name == cause)
        return _entry(found).fingerprint.id


async def _nobody(_message: Alert, _channels: Collection[str] | None) -> None:
    """There are no channels."""


def _all(now: datetime) -> Sequence[_Failed]:
    """In the order of time."""
    dice = random.Random(7)
    found = [
        _Failed(cause, now - timedelta(minutes=dice.uniform(burst.until, burst.since)), number)
        for cause in CAUSES
        for burst in cause.bursts
        for number in range(burst.count)
    ]
    return sorted(found, key=lambda each: each.at)


def _entry(failed: _Failed) -> Entry:
    cause, dice = failed.cause, random.Random(f"{failed.cause.name} {failed.number}")
    data = cause.data(dice, failed.number)
    begun = failed.at - timedelta(seconds=_RETRIED_AFTER[cause.attempts - 1])
    failures = tuple(
        _failure(cause, data, number, begun + timedelta(seconds=_RETRIED_AFTER[number - 1]))
        for number in range(1, cause.attempts + 1)
    )
    message = Message.create(
        id=f"{cause.queue}-{dice.randrange(16**12):012x}",
        sent_at=begun - timedelta(seconds=0.4),
        queue=cause.queue,
        data=data,
        source="checkout" if cause.queue in {"orders", "payments"} else "backoffice",
        metadata={"correlation_id": f"cart-{dice.randrange(16**8):08x}", "event_type": f"{cause.queue}.requested"},
        headers=(
            ("content-type", "application/json"),
            ("x-region", "eu-west-1"),
            ("x-priority", dice.randint(1, 3)),
        ),
    )
    return Entry(
        identity=new_id(),
        message=message,
        queue=cause.queue,
        handler=cause.handler,
        failures=failures,
        fingerprint=fingerprint(failures[-1], queue=cause.queue),
        at=failed.at,
        first_attempt_at=begun,
    )


def _failure(cause: Cause, data: dict[str, object], attempt: int, at: datetime) -> Failure:
    host = Host(
        name=f"shop-{attempt % 2 + 1}", process=4100 + attempt, app="shop", app_version="8.4.1", environment="live"
    )
    raised = Raised(cause.type, cause.text(data), cause.frames)
    behind = () if cause.behind is None else (Raised(*cause.behind, cause.frames[-1:], "cause"),)
    return Failure(
        attempt=attempt, at=at, kind=cause.kind, handler=cause.handler, chain=(*behind, raised), host=host
    )
