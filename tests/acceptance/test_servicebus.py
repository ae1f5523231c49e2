"""The whole loop on an emulator of Service Bus, by commands: a message fails, is set apart, put back and succeeds;
and what the broker or other consumers dead-lettered is collected from its subqueues.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from support.desk import Desk
from support.servicebus.beside import EmulatorBeside
from support.servicebus.entity import TRANSFER_DEAD_LETTERS

APP = """
from pathlib import Path
from redrive import App

app = App("shop")

@app.handler("orders")
async def charge(body: dict) -> None:
    if not Path("mended").exists():
        raise ValueError("no such customer")
"""
MANY = 30


@pytest.fixture
def shop(tmp_path: Path, service_bus: EmulatorBeside) -> Desk:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "redrive.toml").write_text(f"{service_bus.settings}[retry]\nattempts = 1\n[queues.orders]\n")
    made = Desk(tmp_path)
    assert made.redrive("setup", "--yes").code == 0
    return made


def work(shop: Desk) -> None:
    ended = shop.process("work", "app:app", "--drain")
    assert ended.returncode == 0, ended.stderr


def letters(shop: Desk, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shop.redrive("list", "--output", "json", *arguments).out)
    return found


def messages_in(service_bus: EmulatorBeside, path: str) -> int:
    def count(emulator: Any) -> int:
        return len(emulator.namespace.receivable(path).messages)

    return service_bus.do(count)


def test_a_message_that_failed_is_put_back_and_confirmed(shop: Desk, service_bus: EmulatorBeside) -> None:
    assert shop.redrive("send", "orders", '{"order": 17}').code == 0
    work(shop)
    [letter] = letters(shop)
    assert (letter["queue"], letter["status"]) == ("orders", "PENDING")

    (shop.folder / "mended").touch()
    retried = shop.redrive("retry", letter["id"], "--yes")
    assert retried.code == 0, retried.err
    work(shop)

    assert shop.letter(letter["id"]).status == "RESOLVED"
    assert messages_in(service_bus, "orders") == 0


def test_what_is_dead_in_the_subqueues_is_collected_whole_and_goes_back_to_its_queue(
    shop: Desk, service_bus: EmulatorBeside
) -> None:
    async def die() -> None:
        """By another consumer; by the broker, for want of a lock; and of ours, for the same."""
        client = ServiceBusClient.from_connection_string(service_bus.connection_string)
        async with client, client.get_queue_sender("orders") as sender:
            await sender.send_messages(ServiceBusMessage(b'{"order": 1}', message_id="theirs"))
            async with client.get_queue_receiver("orders") as receiver:
                [first] = await receiver.receive_messages(max_wait_time=30)
                await receiver.dead_letter_message(first, reason="NoCustomer", error_description="no 17")
            await sender.send_messages([ServiceBusMessage(b'{"order": 2}') for _ in range(MANY)])

    asyncio.run(die())
    assert shop.redrive("send", "orders", '{"order": 3}', "--header", "kind=gold").code == 0

    def exceed(emulator: Any) -> None:
        orders = emulator.namespace.receivable("orders")
        for held in list(orders.messages.values()):
            orders._dead_letter(held, "MaxDeliveryCountExceeded", "not consumed after 100 attempts")
        held = next(iter(orders.dead_letters.messages.values()))
        orders.subqueues[TRANSFER_DEAD_LETTERS].enqueue(held.content)

    service_bus.do(exceed)
    dead, undelivered = "orders/$DeadLetterQueue", f"orders/{TRANSFER_DEAD_LETTERS}"
    collected = shop.redrive("collect", dead, undelivered, "--once")
    assert collected.code == 0, collected.err
    assert (messages_in(service_bus, dead), messages_in(service_bus, undelivered)) == (0, 0)

    found = letters(shop, "--limit", "500")
    assert len(found) == MANY + 3
    assert {(each["queue"], each["status"]) for each in found} == {("orders", "PENDING")}
    types = [shop.letter(each["id"]).failures[-1].type for each in found]
    assert types.count("servicebus.MaxDeliveryCountExceeded") == MANY + 1
    assert types.count("servicebus.NoCustomer") == 2

    (shop.folder / "mended").touch()
    [gold] = [each["id"] for each in found if ("kind", "gold") in shop.letter(each["id"]).message.headers]
    assert b'{"order": 3}' in (shop.letter(gold).message.body or b"")
    assert shop.redrive("retry", "--queue", "orders", "--yes").code == 0
    work(shop)
    assert {each["status"] for each in letters(shop, "--limit", "500")} == {"RESOLVED"}
    assert messages_in(service_bus, "orders") == messages_in(service_bus, dead) == 0


def test_a_subscription_is_worked_on_and_collected_from_and_its_letters_reach_it_alone(
    tmp_path: Path, service_bus: EmulatorBeside
) -> None:
    mail, audit = "events/Subscriptions/mail", "events/Subscriptions/audit"
    (tmp_path / "app.py").write_text(APP.replace("orders", mail))
    (tmp_path / "redrive.toml").write_text(f"{service_bus.settings}[retry]\nattempts = 1\n")
    shop = Desk(tmp_path)
    assert shop.redrive("setup", "app:app", "--yes", "--queue", audit).code == 0

    async def publish() -> None:
        """One is for our worker, the other is dead-lettered by somebody else who reads the subscription."""
        client = ServiceBusClient.from_connection_string(service_bus.connection_string)
        async with client, client.get_topic_sender("events") as sender:
            await sender.send_messages(ServiceBusMessage(b'{"order": 1}'))
            async with client.get_subscription_receiver("events", "mail") as receiver:
                [first] = await receiver.receive_messages(max_wait_time=30)
                await receiver.dead_letter_message(first, reason="NoCustomer")
            await sender.send_messages(ServiceBusMessage(b'{"order": 2}'))

    asyncio.run(publish())
    collected = shop.redrive("collect", f"{mail}/$DeadLetterQueue", "--once")
    assert collected.code == 0, collected.err
    work(shop)
    found = letters(shop)
    assert [(each["queue"], each["status"]) for each in found] == [(mail, "PENDING")] * 2

    (shop.folder / "mended").touch()
    assert shop.redrive("retry", "--queue", mail, "--yes").code == 0
    work(shop)
    assert {each["status"] for each in letters(shop)} == {"RESOLVED"}
    assert (messages_in(service_bus, mail), messages_in(service_bus, audit)) == (0, 2)


def test_letters_of_a_subscription_that_others_read_are_not_sent_where_nobody_reads_and_all_who_get_them_are_named(
    tmp_path: Path, service_bus: EmulatorBeside
) -> None:
    mail, audit = "events/Subscriptions/mail", "events/Subscriptions/audit"
    (tmp_path / "redrive.toml").write_text(service_bus.settings)
    shop = Desk(tmp_path)

    def make(emulator: Any) -> None:
        """As others would: no queue beside the subscription."""
        for parts, kind in (
            (["events"], "Topic"),
            (mail.split("/"), "Subscription"),
            (audit.split("/"), "Subscription"),
        ):
            emulator.administration._make(parts, f"{kind}Description", {})

    service_bus.do(make)

    async def die() -> None:
        client = ServiceBusClient.from_connection_string(service_bus.connection_string)
        async with client, client.get_topic_sender("events") as sender:
            await sender.send_messages(ServiceBusMessage(b'{"order": 1}'))
            async with client.get_subscription_receiver("events", "mail") as receiver:
                [first] = await receiver.receive_messages(max_wait_time=30)
                await receiver.dead_letter_message(first, reason="NoCustomer")

    asyncio.run(die())
    assert shop.redrive("collect", f"{mail}/$DeadLetterQueue", "--once").code == 0

    refused = shop.redrive("retry", "--queue", mail, "--yes")
    assert refused.code == 5
    told = " ".join(refused.err.split())
    for words in ("subscription", "events.mail_retry", "audit, mail", "--original-topic"):
        assert words in told

    sent = shop.redrive("retry", "--queue", mail, "--yes", "--original-topic")
    assert sent.code == 0, sent.err
    assert "2 subscriptions read: audit, mail" in " ".join(sent.err.split())
    assert (messages_in(service_bus, mail), messages_in(service_bus, audit)) == (1, 2)


@pytest.mark.parametrize("sink", ["queue", "both"])
def test_dead_letters_of_ours_can_be_service_buss_own_and_are_one_letter_each(
    tmp_path: Path, service_bus: EmulatorBeside, sink: str
) -> None:
    (tmp_path / "app.py").write_text(APP)
    told = service_bus.settings.replace("[broker]", '[broker]\ndead_letter_queue = "{queue}/$DeadLetterQueue"')
    (tmp_path / "redrive.toml").write_text(
        f'{told}[retry]\nattempts = 1\n[queues.orders]\n[dead_letters]\nsink = "{sink}"\n'
    )
    shop, dead = Desk(tmp_path), "orders/$DeadLetterQueue"
    assert shop.redrive("setup", "--yes").code == 0
    assert shop.redrive("send", "orders", '{"order": 17}').code == 0
    work(shop)

    assert (messages_in(service_bus, "orders"), messages_in(service_bus, dead)) == (0, 1)
    assert len(letters(shop)) == (0 if sink == "queue" else 1)
    assert shop.redrive("collect", dead, "--once").code == 0
    [letter] = letters(shop)
    kept = shop.letter(letter["id"])
    assert (kept.queue, kept.failures[-1].type, kept.failures[-1].text) == (
        "orders",
        "ValueError",
        "no such customer",
    )
    assert kept.failures[-1].handler == "charge"
    assert messages_in(service_bus, dead) == 0
