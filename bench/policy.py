"""In-process cost of a successful call: microseconds per call, the fastest of several repeats in each run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import backoff
import stamina
import tenacity

from bench.measuring import Aim, Benchmark
from redrive import FailurePolicy, Message, Retry, execute_with_retry

CALLS = 20_000
MESSAGE = Message.create(
    id="018f0000-0000-7000-8000-000000000000",
    sent_at=datetime(2026, 1, 1, tzinfo=UTC),
    queue="orders",
    data={"order_id": 123},
)
POLICY = FailurePolicy(Retry(attempts=5))


async def handle(message: Message) -> None:
    pass


@stamina.retry(on=Exception, attempts=5)
async def by_stamina(message: Message) -> None:
    pass


@tenacity.retry(stop=tenacity.stop_after_attempt(5), wait=tenacity.wait_exponential())
async def by_tenacity(message: Message) -> None:
    pass


@backoff.on_exception(backoff.expo, Exception, max_tries=5)
async def by_backoff(message: Message) -> None:
    pass


async def by_hand(message: Message) -> None:
    for _ in range(5):
        try:
            await handle(message)
        except Exception:  # noqa: BLE001, S112  the loop everybody writes first
            continue
        else:
            return


async def by_redrive(message: Message) -> None:
    await execute_with_retry(message, handle, policy=POLICY)


def microseconds(call: Callable[[Message], Awaitable[None]]) -> Callable[[], float]:
    async def loop() -> float:
        best = float("inf")
        for _ in range(3):
            started = time.perf_counter()
            for _ in range(CALLS):
                await call(MESSAGE)
            best = min(best, time.perf_counter() - started)
        return best / CALLS * 1e6

    return lambda: asyncio.run(loop())


def main() -> None:
    benchmark = Benchmark(
        "policy",
        "µs per call",
        ("stamina", "tenacity", "backoff"),
        "one successful call of an empty async handler through each library's retry",
    )
    benchmark.measure(
        "success",
        {
            "redrive execute_with_retry": microseconds(by_redrive),
            "bare try/except loop": microseconds(by_hand),
            "backoff": microseconds(by_backoff),
            "stamina": microseconds(by_stamina),
            "tenacity": microseconds(by_tenacity),
        },
    )
    for other in ("bare try/except loop", "backoff", "stamina", "tenacity"):
        benchmark.compare(Aim("success", "redrive execute_with_retry", other, "redrive under 2 µs"))
    benchmark.save()
