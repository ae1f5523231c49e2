"""SQS, as ElasticMQ plays it in a process of its own: messages per second that are sent, and that go from a full
queue through an empty handler to the delete, in one process. The first ones do not count.

The raw loop is aiobotocore's own client with the same requests: ten messages at a time. Sending, it has as many
requests under way as ours, which puts together what waits together. Consuming, it receives, reads the JSON of
each and deletes, one request after the other ("bare"), or deletes while it receives the next ("overlapped"),
which is what ours does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import uvloop
from aiobotocore.session import get_session

from bench.measuring import NO_AIM, Aim, Benchmark
from redrive import wiring
from redrive.app import App
from redrive.settings import Settings
from redrive.telemetry.logs import configure_logs

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.elasticmq_server import ELASTICMQ, PrivateElasticMq  # found on the path above
from support.sqs_account import CREDENTIALS, REGION, URL  # as above

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

MESSAGES, WARM = 5_000, 500
"""The first of them do not count."""
BATCH = 10
REQUESTS = 10
"""At once, while messages are sent."""
BODY = {"order_id": 123, "note": "x" * 220}
SENDING, CONSUMING = "sending 256 B", "consuming 256 B"
OURS, WIDE = "redrive", "redrive, concurrency 100"
RAW, OVERLAPPED = "aiobotocore, bare", "aiobotocore, bare, overlapped"


class Bench:
    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def ours_sending(self) -> float:
        return self._run(self._ours_sending)

    def raw_sending(self) -> float:
        return self._run(self._raw_sending)

    def ours_consuming(self, concurrency: int | None = None) -> float:
        return self._run(lambda queue: self._ours_consuming(queue, concurrency))

    def raw_consuming(self, *, overlapped: bool) -> float:
        return self._run(lambda queue: self._raw_consuming(queue, overlapped=overlapped))

    def _run(self, measure: Callable[[str], Coroutine[Any, Any, float]]) -> float:
        return MESSAGES / uvloop.run(measure(f"bench-{uuid4().hex[:12]}"))

    async def _ours_sending(self, queue: str) -> float:
        app = App("bench")
        app.handler(queue)(_nothing)
        with tempfile.TemporaryDirectory() as folder:
            async with wiring.worker(app, self._settings(Path(folder))):
                await asyncio.gather(*(app.send(queue, BODY) for _ in range(WARM)))
                started = time.perf_counter()
                for _ in range(MESSAGES // (BATCH * REQUESTS)):
                    await asyncio.gather(*(app.send(queue, BODY) for _ in range(BATCH * REQUESTS)))
                return time.perf_counter() - started

    async def _raw_sending(self, queue: str) -> float:
        async with self._client() as client:
            url = await _made(client, queue)
            await asyncio.gather(*(_send(client, url) for _ in range(WARM // BATCH)))
            started = time.perf_counter()
            for _ in range(MESSAGES // (BATCH * REQUESTS)):
                await asyncio.gather(*(_send(client, url) for _ in range(REQUESTS)))
            return time.perf_counter() - started

    async def _ours_consuming(self, queue: str, concurrency: int | None) -> float:
        app, done, started, finished = App("bench"), 0, 0.0, asyncio.Event()

        @app.handler(queue, concurrency=concurrency)
        async def handle(order: dict[str, object]) -> None:
            nonlocal done, started
            assert order
            done += 1
            if done == WARM:
                started = time.perf_counter()
            if done == WARM + MESSAGES:
                finished.set()

        with tempfile.TemporaryDirectory() as folder:
            async with wiring.worker(app, self._settings(Path(folder))) as worker:
                await self._fill(queue)
                working = asyncio.create_task(worker.run(drain=False))
                await finished.wait()
                took = time.perf_counter() - started
                worker.stop()
                await working
                return took

    async def _raw_consuming(self, queue: str, *, overlapped: bool) -> float:
        async with self._client() as client:
            url = await self._fill(queue)
            started, done = 0.0, 0
            deleting = asyncio.create_task(asyncio.sleep(0))
            while done < WARM + MESSAGES:
                answer = await client.receive_message(
                    QueueUrl=url,
                    MaxNumberOfMessages=BATCH,
                    WaitTimeSeconds=1,
                    MessageAttributeNames=["All"],
                    MessageSystemAttributeNames=["All"],
                )
                found = answer.get("Messages", [])
                done += sum(bool(json.loads(each["Body"])) for each in found)
                if done == WARM:
                    started = time.perf_counter()
                await deleting
                deleting = asyncio.create_task(_delete(client, url, found))
                if not overlapped:
                    await deleting
            await deleting
            return time.perf_counter() - started

    async def _fill(self, queue: str) -> str:
        async with self._client() as client:
            url = await _made(client, queue)
            for _ in range((WARM + MESSAGES) // BATCH):
                await _send(client, url)
            return url

    def _client(self) -> Any:
        return get_session().create_client("sqs", region_name=REGION, endpoint_url=self._endpoint)

    def _settings(self, folder: Path) -> Settings:
        return Settings.model_validate(
            {
                "broker": {"url": URL, "sqs": {"endpoint": self._endpoint, "wait": "1s"}},
                "store": {"url": f"sqlite:///{folder}/store.db"},
                "spool": {"folder": folder / "spool"},
                "journal": {"path": folder / "journal.db"},
            }
        )


async def _nothing(order: dict[str, object]) -> None: ...


async def _made(client: Any, queue: str) -> str:
    return str((await client.create_queue(QueueName=queue))["QueueUrl"])


async def _send(client: Any, url: str) -> None:
    entries = [{"Id": str(number), "MessageBody": json.dumps({"data": BODY})} for number in range(BATCH)]
    answer = await client.send_message_batch(QueueUrl=url, Entries=entries)
    assert len(answer["Successful"]) == BATCH


async def _delete(client: Any, url: str, messages: list[dict[str, Any]]) -> None:
    if messages:
        entries = [
            {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]} for number, each in enumerate(messages)
        ]
        answer = await client.delete_message_batch(QueueUrl=url, Entries=entries)
        assert len(answer["Successful"]) == len(messages)


def main() -> None:
    configure_logs(level="error", style="json")
    os.environ.update(CREDENTIALS)
    benchmark = Benchmark("sqs", "messages/s", ("aiobotocore", "uvloop"), "one process, batches of ten")
    ELASTICMQ.require()
    with ExitStack() as at_the_end:
        server = PrivateElasticMq()
        at_the_end.callback(server.clean_up)
        bench = Bench(server.endpoint)
        _, version, _ = ELASTICMQ.folder.name.split("-")
        benchmark.facts["ElasticMQ"] = f"{version} on the same machine, in memory; a fake, and not AWS"
        benchmark.measure(SENDING, {OURS: bench.ours_sending, RAW: bench.raw_sending})
        benchmark.measure(
            CONSUMING,
            {
                OURS: bench.ours_consuming,
                WIDE: lambda: bench.ours_consuming(100),
                RAW: lambda: bench.raw_consuming(overlapped=False),
                OVERLAPPED: lambda: bench.raw_consuming(overlapped=True),
            },
        )
    benchmark.compare(Aim(SENDING, OURS, RAW, "at least 0.8"))
    for ours in (OURS, WIDE):
        benchmark.compare(Aim(CONSUMING, ours, RAW, "at least 0.8"))
        benchmark.compare(Aim(CONSUMING, ours, OVERLAPPED, NO_AIM))
    benchmark.save()
