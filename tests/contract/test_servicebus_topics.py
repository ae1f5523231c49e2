"""Subscriptions of a topic, with the driver for Service Bus on the emulator: who gets what is sent back."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from azure.servicebus import ServiceBusMessage
from msgspec.structs import replace

from redrive.control import RedriveTicket, stamp
from redrive.errors import PublishRefused
from redrive.message import Message
from redrive.transports import Landing, OriginSending
from redrive.transports.servicebus.topics import ONLY, Rule
from redrive.transports.servicebus.transport import ServiceBusTransport
from support.servicebus.clients import dead_lettered_by_others, sent_by_others
from support.servicebus.counts import EmulatorCounts
from support.servicebus.emulator import ServiceBusEmulator, emulated
from support.servicebus.rules import TopicRules

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from redrive.transports import Delivery

TOPIC, MAIL, BILLING = "events", "events/Subscriptions/mail", "events/Subscriptions/billing"
EVERYTHING = Rule(sql="1=1")


def only(name: str) -> Rule:
    return Rule(sql=f'"{ONLY}" IS NULL OR "{ONLY}" = \'{name}\'')


def unmarked_or(name: str) -> Any:
    """What that rule says, for the emulator, which has functions."""

    def wants(properties: Mapping[Any, Any]) -> bool:
        return properties.get(ONLY) in {None, name}

    return wants


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[ServiceBusEmulator]:
    async with emulated() as made:
        made.namespace.topic(TOPIC)
        made.namespace.queue("events.mail_retry")
        made.namespace.queue("events.mail_dlq")
        yield made


async def opened(emulator: ServiceBusEmulator, **rules: Rule) -> ServiceBusTransport:
    topics = TopicRules({TOPIC: {name: [rule] for name, rule in rules.items()}}) if rules else None
    return ServiceBusTransport(emulator.url, counts=EmulatorCounts(emulator), topics=topics)


@pytest_asyncio.fixture
async def transport(emulator: ServiceBusEmulator) -> AsyncIterator[ServiceBusTransport]:
    made = await opened(emulator)
    yield made
    await made.close()


async def take(transport: ServiceBusTransport, queue: str = MAIL) -> Delivery:
    async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        return await anext(deliveries)


def redriven(message: Message) -> Message:
    ticket = RedriveTicket("redrive-1", "letter-1", 1, MAIL)
    return message.with_headers(stamp(message.headers, ticket, b"key"))


async def test_a_retry_of_a_subscription_s_consumer_comes_back_to_it_and_reaches_no_other(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    mail, billing = (emulator.namespace.subscription(TOPIC, name) for name in ("mail", "billing"))
    await sent_by_others(emulator, TOPIC, ServiceBusMessage(b"placed", message_id="theirs"))
    first = await take(transport)
    assert (first.queue, first.message.queue) == (MAIL, MAIL)
    await transport.retry(first, first.message, delay=0, trail=b"trail")
    again = await take(transport)
    assert (again.message, again.identity, again.attempt) == (first.message, first.identity, 2)
    assert (again.queue, again.trail) == (MAIL, b"trail")
    await transport.ack(again)
    assert not mail.messages
    assert len(billing.messages) == 1


async def test_what_we_send_to_a_topic_is_the_same_message_in_each_subscription_and_knows_its_way_back(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    mail, billing = (
        emulator.namespace.subscription(TOPIC, name, wants=unmarked_or(name)) for name in ("mail", "billing")
    )
    headers = (("twice", "a"), ("twice", "b"), ("none", None))
    sent = Message(
        id="m-1", queue=TOPIC, body=b"{}", sent_at=datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC), headers=headers
    )
    await transport.send(sent)
    found, other = await take(transport), await take(transport, BILLING)
    assert (found.message.id, found.message.headers, found.message.sent_at) == ("m-1", headers, sent.sent_at)
    assert (other.message.id, other.message.headers) == ("m-1", headers)
    assert (found.message.queue, other.message.queue) == (MAIL, BILLING)
    assert found.identity != other.identity
    await transport.ack(other)

    await transport.retry(found, found.message, delay=0, trail=b"trail")
    again = await take(transport)
    assert (again.message, again.identity) == (found.message, found.identity)
    await transport.ack(again)
    await transport.send_to_origin(redriven(replace(again.message, headers=())))
    assert (len(mail.messages), len(billing.messages)) == (1, 0)
    assert (await take(transport)).message.id == "m-1"


async def test_what_is_sent_to_a_subscription_goes_to_the_queue_beside_it(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    billing = emulator.namespace.subscription(TOPIC, "billing")
    emulator.namespace.subscription(TOPIC, "mail")
    sent = Message(id="m-1", queue=MAIL, body=b"{}", sent_at=datetime(2030, 1, 2, tzinfo=UTC))
    await transport.send(sent)
    await transport.send(sent, delay=60)
    found = await take(transport)
    assert (found.message, found.queue) == (sent, MAIL)
    depths = await transport.depths([MAIL])
    assert {name: depth.total for name, depth in depths.items()} == {f"{MAIL}_retry": 2}
    assert not billing.messages


async def test_dead_letters_of_a_subscription_have_a_queue_beside_it_too(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    emulator.namespace.subscription(TOPIC, "mail")
    dead = transport.names.dead_of(MAIL)
    sent = Message(id="m-1", queue=MAIL, body=b"{}", sent_at=datetime(2030, 1, 2, tzinfo=UTC))
    await transport.send(sent, queue=dead, trail=b"trail")
    found = await take(transport, dead)
    assert (found.message, found.trail) == (sent, b"trail")
    assert dead == f"{MAIL}_dlq"
    for asked in (MAIL, dead):
        assert {name: depth.total for name, depth in (await transport.depths([asked])).items()} == {dead: 1}


async def test_trap_7_sent_back_to_a_topic_it_reaches_the_one_subscription_whose_others_leave_it_out(
    emulator: ServiceBusEmulator,
) -> None:
    mail = emulator.namespace.subscription(TOPIC, "mail", wants=unmarked_or("mail"))
    billing = emulator.namespace.subscription(TOPIC, "billing", wants=unmarked_or("billing"))
    transport = await opened(emulator, mail=only("mail"), billing=only("billing"))
    await sent_by_others(emulator, TOPIC, ServiceBusMessage(b"placed", message_id="theirs"))
    await dead_lettered_by_others(emulator, MAIL, "NoCustomer", "no 17")
    dead = await take(transport, f"{MAIL}/$DeadLetterQueue")
    assert isinstance(transport, OriginSending)
    assert await transport.readers_of_origin([dead.queue]) == ("mail",)
    await transport.send_to_origin(redriven(dead.message))
    await transport.ack(dead)
    assert [len(each.messages) for each in (mail, billing)] == [1, 1]  # billing has its first one still
    back = await take(transport)
    assert (back.message.id, back.message.body) == ("theirs", b"placed")
    assert ONLY not in dict(back.message.headers)
    await transport.close()


async def test_without_a_queue_beside_it_a_subscription_is_reached_by_its_topic_if_no_other_gets_it_there() -> (
    None
):
    async with emulated() as emulator:
        emulator.namespace.topic(TOPIC)
        mail = emulator.namespace.subscription(TOPIC, "mail", wants=unmarked_or("mail"))
        billing = emulator.namespace.subscription(TOPIC, "billing", wants=unmarked_or("billing"))
        await sent_by_others(emulator, TOPIC, ServiceBusMessage(b"placed", message_id="theirs"))
        await dead_lettered_by_others(emulator, MAIL, "NoCustomer", "no 17")
        transport = await opened(emulator, mail=only("mail"), billing=EVERYTHING)
        dead = await take(transport, f"{MAIL}/$DeadLetterQueue")
        told = await transport.landing_of(MAIL)
        assert told is not None
        assert (told.readers, bool(told.impossible)) == (("billing", "mail"), True)
        with pytest.raises(PublishRefused, match="would not reach that one alone, but billing, mail") as refused:
            await transport.send(redriven(dead.message), queue=MAIL)
        assert "--original-topic" in refused.value.remedy
        await transport.close()
        assert [len(each.messages) for each in (mail, billing)] == [0, 1]

        transport = await opened(emulator, mail=only("mail"), billing=only("billing"))
        assert await transport.landing_of(MAIL) == Landing(place=TOPIC, readers=("mail",))
        await transport.send(redriven(dead.message), queue=MAIL)
        await transport.close()
        assert [len(each.messages) for each in (mail, billing)] == [1, 1]


async def test_where_a_message_lands_is_told_before_it_is_sent(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    emulator.namespace.subscription(TOPIC, "mail")
    assert await transport.landing_of(MAIL) == Landing(place="events.mail_retry")
    assert await transport.landing_of(TOPIC) is None


async def test_trap_7_a_subscription_without_such_a_rule_is_named_among_those_who_get_it(
    emulator: ServiceBusEmulator,
) -> None:
    transport = await opened(emulator, mail=only("mail"), billing=EVERYTHING, audit=Rule(sql="amount > 17"))
    assert await transport.readers_of_origin([MAIL]) == ("audit", "billing", "mail")
    await transport.close()


@pytest.mark.parametrize("rules", [{"mail": Rule(sql="1=0")}, {"mail": only("billing")}, {"billing": EVERYTHING}])
async def test_trap_7_what_its_subscription_would_not_get_is_refused_and_not_lost(
    emulator: ServiceBusEmulator, rules: dict[str, Rule]
) -> None:
    emulator.namespace.subscription(TOPIC, "mail")
    billing = emulator.namespace.subscription(TOPIC, "billing")
    transport = await opened(emulator, **rules)
    await sent_by_others(emulator, TOPIC, ServiceBusMessage(b"placed", message_id="theirs"))
    dead = await take(transport)
    with pytest.raises(PublishRefused) as refused:
        await transport.send_to_origin(dead.message)
    assert "would not get" in str(refused.value)
    assert len(billing.messages) == 1
    await transport.close()


async def test_nobody_can_tell_who_gets_it_if_the_rules_cannot_be_asked_for(
    transport: ServiceBusTransport,
) -> None:
    assert await transport.readers_of_origin([MAIL]) is None
    assert await transport.readers_of_origin(["orders/$DeadLetterQueue"]) == ("orders",)
