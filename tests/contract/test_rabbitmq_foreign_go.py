"""A client in Go reads what we wrote and the reverse, with the types that Python's clients do not have. Behind
`REDRIVE_TEST_GO=1`: it has to be compiled, and its library (tests/support/go_client/go.mod) fetched once.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from redrive.message import Message
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.patience import until
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.transports import Delivery

pytestmark = pytest.mark.skipif(not os.environ.get("REDRIVE_TEST_GO"), reason="REDRIVE_TEST_GO is not set")
SOURCE = Path(__file__).parents[1] / "support" / "go_client"
BINARY = bytes(range(256))
NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    built = tmp_path_factory.mktemp("go") / "client"
    subprocess.run([go, "build", "-o", built, "."], cwd=SOURCE, check=True, timeout=600)
    return built


def ran(*command: str | Path, stdin: bytes = b"") -> bytes:
    done = subprocess.run(command, input=stdin, capture_output=True, check=True, timeout=60)
    return done.stdout


async def publish(client: Path, url: str, queue: str) -> None:
    await asyncio.to_thread(ran, client, "publish", url, queue, stdin=BINARY)


async def got(client: Path, url: str, queue: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await asyncio.to_thread(ran, client, "get", url, queue))
    found["headers"].pop("x-delivery-count", None)
    return found


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[RabbitTransport]:
    transport = RabbitTransport(url)
    try:
        yield transport
    finally:
        await transport.close()


async def taken(transport: RabbitTransport) -> Delivery:
    async with asyncio.timeout(30), aclosing(transport.receive("orders", prefetch=1)) as deliveries:
        return await anext(deliveries)


async def test_what_go_writes_go_reads_again_behind_us_with_every_type(client: Path, rabbitmq_url: str) -> None:
    with PlainClient(rabbitmq_url) as other:
        for queue in ("orders", "copies"):
            other.declare(queue)
        await publish(client, rabbitmq_url, "orders")
        original = await got(client, rabbitmq_url, "orders")
        await publish(client, rabbitmq_url, "orders")
        async with opened(rabbitmq_url) as transport:
            first = await taken(transport)
            await transport.retry(first, first.message, delay=0.1, trail=b"story")
            again = await taken(transport)
            await transport.send(again.message, queue="copies")
            await transport.ack(again)
        await until(lambda: other.count("copies"))
        assert await got(client, rabbitmq_url, "copies") == original
    assert base64.b64decode(original["body"]) == BINARY
    assert original["headers"]["float32"] == "float32 1.5"
    headers = dict(first.message.headers)
    assert (headers["byte"], headers["int8"], headers["int16"]) == (200, -5, -300)
    assert (headers["float64"], headers["decimal"], headers["bytes"]) == (1.1, 12.34, b"\x00\xff")
    assert (headers["time"], headers["table"]) == (NOW, {"deep": {"tenth": 0.1}})


async def test_what_we_write_go_reads_with_its_types(client: Path, rabbitmq_url: str) -> None:
    headers = (
        ("float", 1.1), ("int", 7), ("long", 2**40), ("true", True), ("none", None), ("text", "é"), ("when", NOW),
        ("table", {"deep": {"tenth": 0.1}}),
    )  # fmt: skip
    async with opened(rabbitmq_url) as transport:
        await transport.send(
            Message(id="m-1", queue="orders", body=BINARY, sent_at=NOW, headers=headers, source="checkout")
        )
    found = await got(client, rabbitmq_url, "orders")
    told = found["headers"]
    assert told.pop("x-redrive").startswith("[]uint8 ")
    assert told == {
        "float": "float64 1.1",
        "int": "int32 7",
        "long": f"int64 {2**40}",
        "true": "bool true",
        "none": "<nil> <nil>",
        "text": "string é",
        "when": f"time {int(NOW.timestamp())}",
        "table": "table deep=table tenth=float64 0.1",
    }
    assert (base64.b64decode(found["body"]), found["message_id"], found["app_id"]) == (BINARY, "m-1", "checkout")
    assert (found["timestamp"], found["delivery_mode"]) == (int(NOW.timestamp()), 2)
