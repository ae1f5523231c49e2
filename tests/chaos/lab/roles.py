"""What a child process of an experiment does: produce, work, redrive, reprocess, collect, and end. Writers that
use nothing but the store are in `writers`.

`faults` arms failpoints as `REDRIVE_FAULTS` would, `seed` makes their dice repeatable.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import random
import signal
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.lab import writers
from chaos.lab.embedded import Embedded
from chaos.lab.history import AGAIN, LISTENS, SEND, SENT, STRUCK, History
from chaos.lab.kafka import Kafka
from chaos.lab.places import digest
from chaos.lab.premises import EFFECTS, ORDERS, Premises, Shop
from chaos.lab.rabbit import Rabbit
from chaos.lab.servicebus import ServiceBus
from chaos.lab.sqs import Sqs
from redrive import faults, wiring
from redrive.access import local
from redrive.actions import Actions
from redrive.clock import SystemClock, new_id
from redrive.dead_letter import Actor, Status
from redrive.engine import RedriveEngine
from redrive.errors import Unreachable
from redrive.letter_query import MAX_PAGE, LetterQuery
from redrive.message import Message
from redrive.run import ENDED, Brakes, RunPlan
from redrive.stores import open_store
from redrive.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from chaos.lab.broker import Broker
    from redrive.run import Run
    from redrive.stores import RunStore
    from redrive.transports import Transport
    from redrive.worker import Worker

_LOOK_EVERY = 0.02
_ASK_EVERY = 0.2
"""Where a question is a request over HTTP for each queue."""


class Ahead(SystemClock):
    """The time in some seconds: for whoever takes over what a dead process claimed."""

    def __init__(self, seconds: float) -> None:
        self._ahead = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return super().now() + self._ahead


async def produce(premises: Premises, *, messages: list[tuple[str, str]]) -> None:
    """Sends one message per (plan, expectation), several at a time."""
    history = History(premises.history)
    async with wiring.producer(premises.settings()) as transport:
        await asyncio.gather(*(_send(premises, transport, history, *each) for each in messages))


async def _send(
    premises: Premises,
    transport: Transport,
    history: History,
    plan: str,
    expect: str,
    *,
    persistently: bool = False,
) -> None:
    broker, queue = premises.broker, EFFECTS if plan == "effect" else ORDERS
    name = new_id()
    message = Message.create(
        id=name,
        sent_at=SystemClock().now(),
        queue=broker.address(queue),
        data={"plan": plan},
        key=broker.key(name),
    )
    history.write(SEND, message.id, expect=expect, body=digest(message.body))
    while True:
        try:
            await transport.send(message)
            break
        except Unreachable:
            if not persistently:
                raise
            await asyncio.sleep(_LOOK_EVERY)
            history.write(AGAIN, message.id)
    history.write(SENT, message.id)


async def keep_sending(premises: Premises, *, plans: list[tuple[str, str]], pace: float = 0.02) -> None:
    """Sends these plans in turn, a few at a time, until SIGTERM. What is not acknowledged is sent again."""
    history, stopping = History(premises.history), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)

    async def send(transport: Transport, plan: str, expect: str) -> None:
        while not stopping.is_set():
            await _send(premises, transport, history, plan, expect, persistently=True)
            await asyncio.sleep(pace)

    async with wiring.producer(premises.settings()) as transport:
        await asyncio.gather(*(send(transport, *each) for each in plans))


async def work(premises: Premises, *, spool_too: bool = True, forever: bool = False, mended: bool = False) -> None:
    """Works until queues and spool are empty (or only the queues), or until SIGTERM."""
    shop = Shop(premises, mended=mended)
    async with wiring.worker(shop.app, premises.settings()) as worker:
        worker.listen_to_signals()
        _note(premises, LISTENS)
        running = asyncio.create_task(worker.run(drain=not spool_too and not forever))
        if spool_too and not forever:
            watching = asyncio.create_task(_stop_when_empty(worker, premises, shop))
            await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done() and (failed := watching.exception()) is not None:
                raise failed  # nobody would stop the worker
            watching.cancel()
        await running
    await shop.close()


def _note(premises: Premises, op: str) -> None:
    history = History(premises.history)
    history.write(op, "")
    history.close()


async def _stop_when_empty(worker: Worker, premises: Premises, shop: Shop) -> None:
    while await _under_way(premises, shop.app.transport) or premises.unplayed():
        await asyncio.sleep(_ASK_EVERY if premises.named_queues else _LOOK_EVERY)
    worker.stop()


async def _under_way(premises: Premises, transport: Transport) -> int:
    try:
        depths = await transport.depths(premises.named_queues)
    except Unreachable:
        return 1  # nobody knows
    known = sum(depth.total for name, depth in depths.items() if not premises.broker.is_dead(name))
    return known or await asyncio.to_thread(premises.broker.under_way)


async def redrive(premises: Premises, *, ahead: float = 0.0) -> None:
    """Sends back every letter that waits, and what a dead process left half-way, by a clock that is ahead."""
    settings, clock = premises.settings(), Ahead(ahead)
    store = open_store(settings.store.url.reveal(), clock=clock)
    async with wiring.producer(settings) as transport:
        try:
            actions = Actions(store=store, transport=transport, clock=clock, who=local("chaos"))
            for status in (Status.PENDING, Status.REDRIVING):
                found = await actions.letters(LetterQuery(status=status, limit=MAX_PAGE))
                await actions.retry([letter.id for letter in reversed(found)])
        finally:
            await store.close()


async def request(premises: Premises) -> None:
    """Makes the run of all letters that wait, if none is under way."""
    store = open_store(premises.settings().store.url.reveal(), clock=SystemClock())
    try:
        await _run_under_way(store)
    finally:
        await store.close()


async def carry_out(
    premises: Premises, *, ahead: float = 0.0, once: bool = False, slowly: float = 0.0, **how: Any
) -> None:
    """An engine for the run that is under way, or for one of all letters that wait, until none does, or `once`."""
    settings, clock = premises.settings(), Ahead(ahead)
    store = open_store(settings.store.url.reveal(), clock=clock)
    async with wiring.producer(settings) as transport:
        try:
            broker: Any = Slow(transport, slowly) if slowly else transport
            engine = RedriveEngine(
                store=store, transport=broker, clock=clock, owner="chaos", **{"lease": 0.5, **how}
            )
            while (run := await _run_under_way(store)) is not None:
                run = await engine.carry_out(run.id)
                assert run.status in ENDED, f"{run.status}: {run.why}"
                if once:
                    break
        finally:
            await store.close()


class Slow:
    """A broker that takes its time, so that an engine has nothing else to do when its message is sent."""

    def __init__(self, transport: Transport, seconds: float) -> None:
        self._transport = transport
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def send(self, message: Message, *, queue: str | None = None) -> None:
        await asyncio.sleep(self._seconds)
        await self._transport.send(message, queue=queue)


async def _run_under_way(store: RunStore) -> Run | None:
    if active := await store.runs(active=True):
        return active[-1]
    pending = await store.count(LetterQuery(status=Status.PENDING))
    plan = RunPlan(selection=LetterQuery(), brakes=Brakes(publish_errors=None))
    return await store.create_run(plan, by=Actor("chaos")) if pending.number else None


async def reprocess(premises: Premises, *, all_of_it: bool = False) -> None:
    """`redrive reprocess` of the dead orders, once, or until nothing is left, not even in dead hands."""
    dead = premises.broker.dead(ORDERS)
    async with wiring.desk(premises.settings(), local("chaos")) as actions:
        await actions.reprocess(dead)
        while all_of_it and (left := await actions.select_dead(dead)).in_queue + left.in_other_hands:
            await actions.reprocess(left)
            await asyncio.sleep(_LOOK_EVERY)


async def collect(premises: Premises) -> None:
    """`redrive collect --once` of the dead letters of both queues."""
    dead = [premises.broker.dead(each) for each in (ORDERS, EFFECTS)]
    async with wiring.collector(premises.settings(), dead) as collecting:
        await collecting.run(once=True)


ROLES: dict[str, Callable[..., Awaitable[None]]] = {
    role.__name__: role
    for role in (
        *(produce, keep_sending, work, redrive, request, carry_out, reprocess, collect),
        *(writers.record, writers.merge, writers.split, writers.fold, writers.index),
    )
}


BROKERS: dict[str, Callable[..., Broker]] = {
    each.__name__: each for each in (Embedded, Rabbit, Kafka, Sqs, ServiceBus)
}


def live(order: dict[str, Any]) -> None:
    """The whole life of a child. An exception is its exit code 1 and a traceback in the log."""
    kind, told = order["broker"]
    broker = BROKERS[kind](**told)
    os.environ.update(broker.environment)
    premises = Premises(Path(order["folder"]), broker, sink=order["sink"], store_url=order["store_url"])
    log = os.open(premises.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # `kill -USR1` tells in the log where it stands
    configure_logs(level="warning", style="json")
    random.seed(order["seed"])
    os.environ["REDRIVE_FAULTS"] = order["faults"]
    faults.arm(order["faults"])
    _bear_witness(History(premises.history))
    asyncio.run(_role(order["role"], premises, order["arguments"]))


async def _role(name: str, premises: Premises, arguments: dict[str, Any]) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, _tell_tasks)
    await ROLES[name](premises, **arguments)


def _tell_tasks() -> None:
    """`kill -USR2` tells in the log what each task waits for."""
    for task in asyncio.all_tasks():
        task.print_stack()


def _bear_witness(history: History) -> None:
    """Writes down each time that a point really raises or stands still: armed is not yet struck."""
    strike = faults._strike

    def witnessed(name: str, fault: Any) -> int | None:
        if fault.action == "hang":
            history.write(STRUCK, name)
        try:
            return strike(name, fault)
        except BaseException:
            history.write(STRUCK, name)
            raise

    faults._strike = witnessed
