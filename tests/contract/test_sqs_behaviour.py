"""What the driver for SQS does beside the contract: with other programs' messages, long delays, its heartbeat, and
queues that are not there. On moto.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio

from redrive.dialects import Arrival, read
from redrive.errors import ConfigurationError, LeaseLost, PublishRefused, Unreachable
from redrive.transports.sqs.transport import SqsTransport
from support.moto_server import MotoSqs
from support.sqs_broker import Broker, a_broker

HOUR = 3600.0


@pytest_asyncio.fixture
async def broker(sqs: MotoSqs) -> AsyncIterator[Broker]:
    async with a_broker(sqs) as broker:
        yield broker


# Other programs


async def test_another_programs_message_goes_through_retry_and_redrive_as_it_came(broker: Broker) -> None:
    url = await broker.made()
    attributes = {
        "count": {"DataType": "Number", "StringValue": "1.50"},
        "raw": {"DataType": "Binary.png", "BinaryValue": b"\x89\x00"},
        "tenant": {"DataType": "String", "StringValue": "acme"},
    }
    told = {"MessageAttributes": attributes, "MessageGroupId": "tenant-1"}
    await broker.theirs.send_message(QueueUrl=url, MessageBody="Größe", **told)

    first = await broker.take()
    await broker.transport.retry(first, first.message, delay=0, trail=b"trail")
    again = await broker.take()
    await broker.transport.ack(again)
    await broker.transport.send(again.message)

    assert first.message.headers == (("count", "1.50"), ("raw", b"\x89\x00"), ("tenant", "acme"))
    assert (again.message, again.identity, again.attempt) == (first.message, first.identity, 2)
    received = await broker.theirs.receive_message(
        QueueUrl=url, MessageAttributeNames=["All"], MessageSystemAttributeNames=["MessageGroupId"]
    )
    [message] = received["Messages"]
    assert (message["Body"], message["MessageAttributes"]) == ("Größe", attributes)
    assert message["Attributes"]["MessageGroupId"] == "tenant-1"


async def test_other_programs_read_our_text_and_are_told_how_the_rest_is_written(broker: Broker) -> None:
    url = await broker.made()
    await broker.transport.send(broker.message(body=b"hello", headers=(("tenant", "acme"),)))
    await broker.transport.send(broker.message(body=b"\x00"))

    received = await broker.theirs.receive_message(
        QueueUrl=url, MessageAttributeNames=["All"], MaxNumberOfMessages=10
    )
    by_body = {each["Body"]: each["MessageAttributes"] for each in received["Messages"]}
    assert by_body["hello"]["tenant"]["StringValue"] == "acme"
    assert "x-redrive-body" not in by_body["hello"]
    assert by_body["AA=="]["x-redrive-body"]["StringValue"] == "base64"


async def test_a_note_that_another_program_copied_to_another_queue_is_not_believed(broker: Broker) -> None:
    await broker.transport.send(broker.message(), trail=b"trail")
    first = await broker.take()
    other = f"{broker.queue}_copies"
    url = await broker.made(other)
    attributes = first.receipt.arrived.attributes
    await broker.theirs.send_message(QueueUrl=url, MessageBody="copied", MessageAttributes=attributes)

    copy = await broker.take(other)

    assert (copy.message.body, copy.trail) == (b"copied", None)
    assert copy.identity != first.identity


def tells_the_source(broker: Broker, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQS tells of a message that it has moved where it was; moto does not."""
    ask = broker.transport._client.call

    async def told(operation: str, **given: Any) -> dict[str, Any]:
        answer = await ask(operation, **given)
        for message in answer.get("Messages", ()) if given["QueueUrl"].endswith("_dlq") else ():
            message["Attributes"]["DeadLetterQueueSourceArn"] = source
        return answer

    monkeypatch.setattr(broker.transport._client, "call", told)


async def test_what_sqs_itself_dead_lettered_goes_back_to_its_queue(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = broker.transport.names.dead_of(broker.queue)
    await broker.made(dead)
    facts = await broker.transport.queues().facts(dead)
    assert facts is not None
    rule = f'{{"deadLetterTargetArn": "{facts.arn}", "maxReceiveCount": "1"}}'
    url = await broker.made(RedrivePolicy=rule)
    ours = broker.message(headers=(("a", 1),), key=b"k")
    await broker.theirs.send_message(QueueUrl=url, MessageBody="theirs")
    await broker.transport.send(ours)
    for _ in range(2):
        taken = await broker.theirs.receive_message(QueueUrl=url, VisibilityTimeout=10, MaxNumberOfMessages=10)
        broker.sqs.clock.advance(11)
    assert not taken.get("Messages")
    source = await broker.transport.queues().facts(broker.queue)
    assert source is not None
    tells_the_source(broker, source.arn, monkeypatch)

    letters = {}
    for _ in range(2):
        delivery = await broker.take(dead)
        await broker.transport.ack(delivery)
        arrival = Arrival(
            message=delivery.message,
            queue=dead,
            home_of_dead=broker.transport.names.home_of_dead,
            now=broker.sqs.clock.now(),
            trail=delivery.trail,
        )
        letters[delivery.message.body] = read(arrival)

    assert {each.home for each in letters.values()} == {broker.queue}
    assert {each.dialect for each in letters.values()} == {"sqs"}
    kept = letters[b"{}"].message
    assert (kept.id, kept.headers, kept.key) == (ours.id, ours.headers, ours.key)
    await broker.transport.send(kept)
    back = (await broker.take()).message
    assert (back.id, back.headers, back.key, back.sent_at) == (ours.id, ours.headers, ours.key, ours.sent_at)


# Delays


async def test_a_delay_that_sqs_does_not_have_is_never_early_and_no_death(broker: Broker) -> None:
    message = broker.message()
    await broker.transport.send(message, delay=10 * HOUR)

    for passed in (0.5, 8, 1.4):
        broker.sqs.clock.advance(passed * HOUR)
        await broker.expect_nothing()
    broker.sqs.clock.advance(0.2 * HOUR)
    delivery = await broker.take()

    assert (delivery.message, delivery.attempt, delivery.redelivered) == (message, 1, False)


async def test_a_delay_that_the_queue_would_not_survive_is_refused(broker: Broker) -> None:
    await broker.made(MessageRetentionPeriod="86400")
    with pytest.raises(PublishRefused, match="would delete") as refused:
        await broker.transport.send(broker.message(), delay=24 * HOUR)
    assert refused.value.permanent
    assert await broker.transport.depths([broker.queue]) == {}


# Leases


async def test_the_heartbeat_keeps_what_is_in_hand(broker: Broker) -> None:
    await broker.transport.send(broker.message())
    taken = await broker.take()
    for _ in range(3):
        broker.sqs.clock.advance(40)
        await broker.transport._leases.renew()
    await broker.expect_nothing()
    await broker.transport.ack(taken)
    assert await broker.transport.depths([broker.queue]) == {}


async def test_a_lease_that_sqs_does_not_renew_is_lost(broker: Broker) -> None:
    await broker.transport.send(broker.message())
    taken = await broker.take()
    url = await broker.made()
    await broker.theirs.purge_queue(QueueUrl=url)
    await broker.transport._leases.renew()
    with pytest.raises(LeaseLost):
        await broker.transport.ack(taken)


async def test_a_lost_lease_gives_its_place_to_another(broker: Broker) -> None:
    await broker.transport.send(broker.message())
    async with aclosing(broker.transport.receive(broker.queue, prefetch=1)) as deliveries, asyncio.timeout(30):
        lost = await anext(deliveries)
        broker.sqs.clock.advance(61)
        with pytest.raises(LeaseLost):
            await broker.transport.ack(lost)
        again = await anext(deliveries)
    assert (again.identity, again.redelivered) == (lost.identity, True)


async def test_what_a_reader_leaves_behind_goes_to_other_processes(broker: Broker) -> None:
    for _ in range(3):
        await broker.transport.send(broker.message())
    async with aclosing(broker.transport.receive(broker.queue, prefetch=3)) as deliveries:  # no request waits then
        kept = await anext(deliveries)
    other = broker.open()
    taken = [await broker.take(transport=other) for _ in range(2)]
    assert len({each.identity for each in (kept, *taken)}) == 3


# Queues, and what is not there


async def test_a_queue_that_is_missing_is_made_only_if_that_is_allowed(broker: Broker) -> None:
    with pytest.raises(PublishRefused, match="there is no queue"):
        await broker.open(declare="never").send(broker.message())
    await broker.transport.send(broker.message())
    facts = await broker.transport.queues().facts(broker.queue)
    assert facts is not None
    assert (facts.max_bytes, facts.retention) == (2**20, 14 * 86_400)


async def test_queues_of_another_account_are_asked_for_there_and_never_made(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moto knows no owner of a queue: only what it is asked can be seen."""
    theirs = broker.open(url=f"{broker.sqs.url}/210987654321")
    asked: list[dict[str, Any]] = []
    ask = theirs._client.call

    async def call(operation: str, **given: Any) -> dict[str, Any]:
        asked.append({"operation": operation, **given})
        return await ask(operation, **given)

    monkeypatch.setattr(theirs._client, "call", call)
    with pytest.raises(PublishRefused, match="makes queues in one's own"):
        await theirs.send(broker.message())
    await broker.made()
    message = broker.message()
    await theirs.send(message)

    assert (await broker.take(transport=theirs)).message == message
    looked = [each for each in asked if each["operation"] == "get_queue_url"]
    assert {each["QueueOwnerAWSAccountId"] for each in looked} == {"210987654321"}
    assert "create_queue" not in {each["operation"] for each in asked}


async def test_a_queue_that_was_deleted_is_made_again(broker: Broker) -> None:
    await broker.transport.send(broker.message())
    await broker.theirs.delete_queue(QueueUrl=await broker.made())
    message = broker.message()
    await broker.transport.send(message)
    assert (await broker.take()).message == message


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 81, "ä", ".fifo", "a.fifo.fifo", "x" * 76 + ".fifo"])
async def test_what_cannot_be_a_queue_is_refused(broker: Broker, name: str) -> None:
    with pytest.raises(PublishRefused, match="cannot be the name"):
        await broker.transport.send(broker.message(), queue=name)


async def test_without_sqs_everything_says_so(broker: Broker) -> None:
    away = broker.open(endpoint="http://127.0.0.1:1", connect_timeout=1)
    with pytest.raises(Unreachable, match="does not answer"):
        await away.send(broker.message())
    with pytest.raises(Unreachable, match="does not answer"):
        await broker.take(transport=away)


@pytest.mark.parametrize(
    "url", ["sqs://", "sqs://eu west", "sqs://eu-west-1/1234", "sqs://user:secret@eu-west-1", "sqs:/eu-west-1"]
)
def test_an_address_that_is_none_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        SqsTransport(url)
    assert "secret" not in str(refused.value) + refused.value.remedy


@pytest.mark.parametrize(
    "options", [{"declare": "sometimes"}, {"visibility": 0}, {"visibility": 50_000}, {"wait": 21}]
)
def test_what_sqs_does_not_take_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        SqsTransport("sqs://eu-west-1", **options)
