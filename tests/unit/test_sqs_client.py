"""The one client of SQS, before a server that takes its time."""

from __future__ import annotations

import asyncio

import pytest

from redrive.errors import Unreachable
from redrive.transports.sqs.address import Address
from redrive.transports.sqs.client import SqsClient
from support.sqs_account import CREDENTIALS, REGION

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{"QueueUrl":"u"}'


async def test_who_is_asking_when_the_client_is_closed_is_answered_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client itself would leave them without an answer until their patience is over."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await may_answer.wait()
        writer.write(ANSWER)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = SqsClient(Address(REGION), endpoint=endpoint, connect_timeout=5, patience=5)
        asking = asyncio.create_task(client.call("get_queue_url", QueueName="orders"))
        await asked.wait()
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        with pytest.raises(Unreachable, match="closed"):
            await client.call("get_queue_url", QueueName="orders")
        may_answer.set()

        assert (await asking)["QueueUrl"] == "u"
        await closing
