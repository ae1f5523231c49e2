"""What SQS itself keeps of a message beside its attributes goes along with a retry and a redrive. The client is a
fake: moto forgets the trace of what is sent in a batch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio

from redrive.transports.sqs.transport import SqsTransport

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793"
TRACED = {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}


class FakeClient:
    """One message lies in each queue, as another program has sent it."""

    def __init__(self) -> None:
        self.owner: dict[str, str] = {}
        self.sent: list[dict[str, Any]] = []
        self.attributes: dict[str, Any] = {}
        self.system = {"AWSTraceHeader": TRACE, "MessageGroupId": "tenant-1", "SenderId": "AIDA"}

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        answers: dict[str, Any] = {
            "get_queue_url": lambda: {"QueueUrl": f"http://sqs/1/{given['QueueName']}"},
            "get_queue_attributes": lambda: {"Attributes": {"QueueArn": "arn:aws:sqs:eu-west-1:1:orders"}},
            "receive_message": lambda: {
                "Messages": [
                    {
                        "MessageId": "m-1",
                        "ReceiptHandle": "r-1",
                        "Body": "hello",
                        "Attributes": self.system,
                        "MessageAttributes": self.attributes,
                    }
                ]
            },
        }
        if operation in answers:
            found: dict[str, Any] = answers[operation]()
            return found
        if operation == "send_message_batch":
            self.sent += given["Entries"]
        return {"Successful": [{"Id": each["Id"]} for each in given["Entries"]]}

    async def close(self) -> None: ...


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest_asyncio.fixture
async def transport(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqsTransport]:
    monkeypatch.setattr("redrive.transports.sqs.transport.SqsClient", lambda *_, **__: client)
    opened = SqsTransport("sqs://eu-west-1")
    yield opened
    await opened.close()


async def taken(transport: SqsTransport, queue: str) -> Any:
    async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        return await anext(deliveries)


async def test_a_retry_keeps_group_and_trace(client: FakeClient, transport: SqsTransport) -> None:
    delivery = await taken(transport, "orders")
    await transport.retry(delivery, delivery.message, delay=5, trail=b"trail")

    [entry] = client.sent
    assert (entry["MessageGroupId"], entry["MessageSystemAttributes"]) == ("tenant-1", TRACED)
    assert entry["DelaySeconds"] == 5
    assert "MessageDeduplicationId" not in entry


@pytest.mark.parametrize("queue", ["orders", "orders.fifo"])
async def test_a_redrive_keeps_group_and_trace(queue: str, client: FakeClient, transport: SqsTransport) -> None:
    delivery = await taken(transport, queue)
    await transport.send(delivery.message)

    [entry] = client.sent
    assert (entry["MessageGroupId"], entry["MessageSystemAttributes"]) == ("tenant-1", TRACED)
    assert "MessageAttributes" not in entry  # it needs no note of ours


async def test_what_was_sent_without_them_goes_without_them(client: FakeClient, transport: SqsTransport) -> None:
    client.system = {}
    delivery = await taken(transport, "orders")
    await transport.send(delivery.message)

    [entry] = client.sent
    assert entry.keys() == {"Id", "MessageBody"}


@pytest.mark.parametrize(("target", "goes_along"), [("orders", False), ("undelivered", True)])
async def test_what_lambda_wrote_on_a_dead_letter_goes_only_back_to_where_it_was_read(
    target: str, *, goes_along: bool, client: FakeClient, transport: SqsTransport
) -> None:
    client.attributes = {
        name: {"DataType": "String", "StringValue": "x"} for name in ("ErrorCode", "RequestID", "tenant")
    }
    delivery = await taken(transport, "undelivered")
    await transport.send(delivery.message, queue=target)

    [entry] = client.sent
    assert entry["MessageAttributes"].keys() == (
        {"ErrorCode", "RequestID", "tenant"} if goes_along else {"tenant"}
    )
