"""Azure Service Bus: messages per second through the emulator of the tests, which has a process of its own.

Everybody sends the same 256 B, a hundred at a time, and then receives and completes them; what counts is the time
of both. The raw loop is that of the SDK's own samples: a list is sent, a hundred are received, and completed one
after the other. Its second kind completes all that it has received at once. Ours is the driver alone, and a worker
with an empty handler. The emulator takes most of the time, so that this tells how many round trips a message costs
and nothing of Azure: the processor's time of our side is told beside it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import cast

from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from bench.measuring import Aim, Benchmark
from redrive import wiring
from redrive.app import App
from redrive.clock import new_id
from redrive.message import Message
from redrive.settings import Settings
from redrive.telemetry.logs import configure_logs
from redrive.transports import Delivery, Transport
from redrive.transports.servicebus.transport import ServiceBusTransport

TESTS = Path(__file__).parent.parent / "tests"
QUEUE, COUNT, TOGETHER = "orders", 1000, 100
BODY = b"x" * 256
CASE = f"{TOGETHER} in flight"
RAW, RAW_AT_ONCE = "azure-servicebus, one by one", "azure-servicebus, all at once"
OURS, OURS_ALONE = "redrive", "redrive, the driver alone"


class Emulator:
    def __init__(self, told: dict[str, str]) -> None:
        self.sdk, self.url = told["sdk"], told["url"]
        self.spent: dict[str, list[float]] = {}
        """Of our processor, per message, in milliseconds."""

    def run(self, system: str, use: Callable[[Watch], Awaitable[None]]) -> float:
        watch = Watch()
        asyncio.run(_awaited(use(watch)))
        self.spent.setdefault(system, []).append(watch.cpu / COUNT * 1000)
        return COUNT / watch.seconds

    async def raw(self, watch: Watch, *, at_once: bool) -> None:
        client = ServiceBusClient.from_connection_string(self.sdk)
        async with client, client.get_queue_sender(QUEUE) as sender, client.get_queue_receiver(QUEUE) as receiver:
            watch.start()
            for _ in range(COUNT // TOGETHER):
                await sender.send_messages([ServiceBusMessage(BODY) for _ in range(TOGETHER)])
            done = 0
            while done < COUNT:
                received = await receiver.receive_messages(max_message_count=TOGETHER, max_wait_time=5)
                done += len(received)
                if at_once:
                    await asyncio.gather(*(receiver.complete_message(each) for each in received))
                else:
                    for each in received:
                        await receiver.complete_message(each)
            watch.stop()

    async def driver(self, watch: Watch) -> None:
        transport = ServiceBusTransport(self.url)
        async with aclosing(transport.receive(QUEUE, prefetch=TOGETHER)) as deliveries:
            await transport.send(_message())
            await transport.ack(await anext(deliveries))
            watch.start()
            await _fill(transport)
            async with asyncio.TaskGroup() as acks:
                for _ in range(COUNT):
                    acks.create_task(transport.ack(await anext(deliveries)))
            watch.stop()
        await transport.close()

    async def worker(self, watch: Watch) -> None:
        app = App("bench")

        @app.handler(QUEUE, concurrency=TOGETHER)
        async def handle(body: bytes) -> None:
            assert body

        with tempfile.TemporaryDirectory() as folder:
            settings = Settings.model_validate(
                {
                    "broker": {"url": self.url},
                    "store": {"url": f"sqlite:///{folder}/store.db"},
                    "spool": {"folder": f"{folder}/spool"},
                    "journal": {"path": f"{folder}/journal.db"},
                }
            )
            async with wiring.worker(app, settings) as worker:
                working = asyncio.create_task(worker.run(drain=False))
                completed = Completions(cast("ServiceBusTransport", app.transport))
                await app.transport.send(_message())
                await completed.reach(1)
                watch.start()
                await _fill(app.transport)
                await completed.reach(COUNT + 1)
                watch.stop()
                worker.stop()
                await working


class Completions:
    """Counted where the driver says that a message is completed: a worker is not done before, like the others."""

    def __init__(self, transport: ServiceBusTransport) -> None:
        self._done = 0
        self._more = asyncio.Event()
        self._ack = transport.ack
        transport.ack = self._counted  # type: ignore[method-assign]  # for the time of a measurement

    async def reach(self, count: int) -> None:
        while self._done < count:
            self._more.clear()
            await self._more.wait()

    async def _counted(self, delivery: Delivery) -> None:
        await self._ack(delivery)
        self._done += 1
        self._more.set()


class Watch:
    """From the first message that is sent to the last that is done, with everything open before."""

    seconds = cpu = _started = _busy = 0.0

    def start(self) -> None:
        self._started, self._busy = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.seconds, self.cpu = time.perf_counter() - self._started, time.process_time() - self._busy


async def _awaited(used: Awaitable[None]) -> None:
    await used


def _message() -> Message:
    return Message(id=new_id(), queue=QUEUE, body=BODY, sent_at=datetime.now(UTC))


async def _fill(transport: Transport) -> None:
    for _ in range(COUNT // TOGETHER):
        await asyncio.gather(*(transport.send(_message()) for _ in range(TOGETHER)))


@contextmanager
def emulator() -> Iterator[Emulator]:
    process = subprocess.Popen(
        [sys.executable, "-m", "support.servicebus", QUEUE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Emulator(json.loads(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.wait()


def main() -> None:
    configure_logs(level="error")
    benchmark = Benchmark(
        "servicebus",
        "messages/s",
        ("azure-servicebus", "python-qpid-proton"),
        "send, handle and complete on the emulator of the tests, which takes most of the time",
    )
    with emulator() as emulated:
        benchmark.measure(
            CASE,
            {
                OURS: lambda: emulated.run(OURS, emulated.worker),
                OURS_ALONE: lambda: emulated.run(OURS_ALONE, emulated.driver),
                RAW: lambda: emulated.run(RAW, partial(emulated.raw, at_once=False)),
                RAW_AT_ONCE: lambda: emulated.run(RAW_AT_ONCE, partial(emulated.raw, at_once=True)),
            },
        )
        for other in (RAW, RAW_AT_ONCE):
            benchmark.compare(Aim(CASE, OURS, other, "at least 0.8"))
            benchmark.compare(Aim(CASE, OURS_ALONE, other, "at least 0.8"))
        for system, spent in emulated.spent.items():
            benchmark.facts[f"processor's time per message, {system}"] = f"{median(spent):.2f} ms"
    benchmark.save()
