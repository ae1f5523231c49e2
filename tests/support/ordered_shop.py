"""A shop that keeps the orders of each customer in their order, and an engine at hand."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from redrive import App, Message, Retry
from redrive.dead_letter import Actor, Status
from redrive.engine import RedriveEngine
from redrive.letter_query import LetterQuery
from redrive.run import RunPlan
from support.patience import until
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from redrive.dead_letter import DeadLetter
    from redrive.run import Run
    from redrive.stores import RunStore
    from redrive.transports import Transport

Step = tuple[str, int]
"""A customer and the number of their order."""


class OrderedShop:
    def __init__(self, folder: Path, *, retry: Retry | None = None, queue: str = "orders", **where: Any) -> None:
        self.folder = folder
        self.queue = queue
        self.where = where
        self.app = App("shop", retry=retry or Retry(1, "5s"))
        self.app.handler(queue, name="charge")(self.charge)
        self.fails: Callable[[Step], bool] = lambda _: False
        self.error: Exception = ValueError("no such customer")
        self.tried: list[Step] = []
        self.charged: list[Step] = []
        self.workshop: Workshop

    async def charge(self, message: Message) -> None:
        told = json.loads(message.payload or b"")
        step = told["customer"], told["number"]
        self.tried.append(step)
        if self.fails(step):
            raise self.error
        self.charged.append(step)

    @asynccontextmanager
    async def at_work(self, **settings: Any) -> AsyncIterator[OrderedShop]:
        queues = {self.queue: {"ordered_by": "key", **settings.pop("queue", {})}}
        async with workshop(self.app, self.folder, queues_settings=queues, **self.where, **settings) as opened:
            self.workshop = opened
            yield self

    @property
    def store(self) -> RunStore:
        return cast("RunStore", self.workshop.store)

    async def send(self, *steps: Step) -> None:
        for customer, number in steps:
            body = json.dumps({"customer": customer, "number": number}).encode()
            await self.workshop.send_foreign(self.queue, body, key=customer.encode())

    async def idle(self) -> None:
        await until(self.workshop.empty)

    async def letters(self, status: Status | None = None) -> dict[Step, DeadLetter]:
        found = await self.workshop.letters(status=status, limit=500)
        return {_step(letter): letter for letter in found}

    async def begun(self, **plan: Any) -> Run:
        selection = LetterQuery(queue=self.queue, **plan.pop("selection", {}))
        return await self.store.create_run(RunPlan(selection=selection, **plan), by=Actor("ann"))

    def engine(self, name: str = "engine", transport: Transport | None = None) -> RedriveEngine:
        sends = transport or self.workshop.transport
        return RedriveEngine(store=self.store, transport=sends, clock=self.workshop.clock, owner=name)

    async def run(self, **plan: Any) -> Run:
        """All dead orders, or those that the plan says, until the run has ended."""
        return await self.engine().carry_out((await self.begun(**plan)).id)

    async def outcomes(self, run: Run) -> dict[Step, str]:
        steps = {letter.id: step for step, letter in (await self.letters()).items()}
        return {steps[each.letter_id]: each.outcome for each in await self.store.outcomes(run.id, limit=500)}

    def of(self, customer: str) -> list[int]:
        return [number for each, number in self.charged if each == customer]


def _step(letter: DeadLetter) -> Step:
    told = json.loads(letter.message.payload or b"")
    return told["customer"], told["number"]
