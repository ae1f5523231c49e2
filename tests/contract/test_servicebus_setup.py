"""`redrive setup`, `doctor` and `queues` on an emulator of Service Bus, asked by the SDK's own administration
client over HTTPS: what is missing is made, what exists is never changed, and what may lose a message is told.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.desk import Desk
from support.servicebus.beside import EmulatorBeside
from support.servicebus.entity import Rules
from support.servicebus.sections import Content

APP = """
from redrive import App

app = App("shop")

@app.handler("orders")
async def charge(body: bytes) -> None: ...
"""
TTL, KEEP = "DefaultMessageTimeToLive", "DeadLetteringOnMessageExpiration"


class Shop(Desk):
    """A folder with an app of one handler, and the emulator as its broker."""

    def __init__(self, folder: Path, emulator: EmulatorBeside) -> None:
        super().__init__(folder)
        self.emulator = emulator
        self.write()
        (folder / "app.py").write_text(APP)

    def write(self, *lines: str, more: str = "[queues.orders]") -> None:
        own = "\n".join(lines)
        (self.folder / "redrive.toml").write_text(f"{self.emulator.settings}{own}\n{more}\n")

    def make(self, name: str, rules: Rules | None = None, given: dict[str, str] | None = None) -> None:
        def made(emulator: Any) -> None:
            emulator.namespace.queue(name, rules or Rules(max_deliveries=100, dead_letter_expired=True))
            emulator.administration.given[name.lower()] = given or {}

        self.emulator.do(made)

    def given(self, path: str) -> dict[str, str]:
        told: dict[str, str] = self.emulator.do(lambda emulator: emulator.administration.given[path.lower()])
        return told

    def names(self) -> set[str]:
        return self.emulator.do(lambda emulator: set(emulator.namespace.queues()))

    def findings(self) -> dict[tuple[str, str | None], str]:
        """The levels of what the doctor finds on the broker."""
        ended = self.redrive("doctor", "--output", "json")
        return {
            (each["check"], each["queue"]): each["level"]
            for each in json.loads(ended.out)
            if each["place"] == "broker"
        }


@pytest.fixture
def shop(tmp_path: Path, service_bus: EmulatorBeside) -> Shop:
    return Shop(tmp_path, service_bus)


def test_what_is_shown_is_made_once_and_the_doctor_finds_nothing_then(shop: Shop) -> None:
    assert shop.findings() == {("broker", None): "ok", ("queue", "orders"): "problem"}
    looked = shop.redrive("setup", "--dry-run")
    assert (looked.code, shop.names()) == (0, set()), looked.err
    assert "Would make 2 queues; nothing was changed." in looked.err

    made = shop.redrive("setup", "--yes")
    again = shop.redrive("setup")

    assert (made.code, "Made 2 queues." in made.err) == (0, True), made.err
    assert (again.code, "Nothing was missing." in again.err) == (0, True), again.err
    assert shop.names() == {"orders", "orders_dlq"}
    orders = shop.given("orders")
    assert (orders["MaxDeliveryCount"], orders["LockDuration"], orders[KEEP]) == ("100", "PT1M", "true")
    assert TTL not in orders
    assert shop.findings() == {("broker", None): "ok", ("queue", "orders"): "ok"}


def test_a_subscription_is_made_with_its_topic_and_the_queues_beside_it(shop: Shop) -> None:
    shop.write('lock_duration = "5m"', "max_delivery_count = 2000", 'sessions = ["events/subscriptions/MAIL"]')
    ended = shop.redrive("setup", "--yes", "--queue", "events/Subscriptions/mail")
    assert (ended.code, "Made 2 queues, 1 topic, 1 subscription." in ended.err) == (0, True), ended.err
    assert shop.names() == {"events.mail_dlq", "events.mail_retry"}
    mail = shop.given("events/subscriptions/mail")
    assert (mail["MaxDeliveryCount"], mail["LockDuration"], mail["RequiresSession"]) == ("2000", "PT5M", "true")


def test_what_exists_is_left_as_it_is_and_told(shop: Shop) -> None:
    shop.make("orders", Rules(sessions=True), {TTL: "PT1H"})
    shop.emulator.do(lambda emulator: emulator.namespace.topic("orders_dlq"))

    ended = shop.redrive("setup", "--yes")

    assert ended.code == 4
    assert f"queue orders: {KEEP} is False, wanted is True" in ended.err
    assert "queue orders: RequiresSession is True, wanted is False" in ended.err
    assert "queue orders_dlq: kind is topic, wanted is queue" in ended.err
    asked = shop.emulator.do(lambda emulator: list(emulator.administration.asked))
    assert not [each for each in asked if not each.startswith("GET ")]


def test_the_doctor_tells_what_may_lose_a_message(shop: Shop) -> None:
    shop.make("orders", Rules(lock=5, sessions=True), {TTL: "PT1H", "ForwardTo": "sb://host/elsewhere"})
    shop.make("orders_dlq", given={TTL: "P1D", KEEP: "false"})

    def die(emulator: Any) -> None:
        orders = emulator.namespace.receivable("orders")
        orders.dead_letters.enqueue(Content())
        orders.transfer_dead_letters.enqueue(Content())

    shop.emulator.do(die)
    assert shop.findings() == {
        ("broker", None): "ok",
        ("forwarding", "orders"): "problem",
        ("ttl", "orders"): "problem",
        ("ttl", "orders_dlq"): "problem",
        ("delivery-limit", "orders"): "warn",
        ("lock", "orders"): "warn",
        ("sessions", "orders"): "problem",
        ("uncollected", "orders/$DeadLetterQueue"): "warn",
        ("uncollected", "orders/$Transfer/$DeadLetterQueue"): "warn",
    }


def test_who_may_not_manage_is_told_so_and_the_key_is_not(shop: Shop) -> None:
    settings = shop.folder / "redrive.toml"
    settings.write_text(settings.read_text().replace("bm90IGEgc2VjcmV0", "hunter2"))
    ended = shop.redrive("setup", "--dry-run")
    assert ended.code == 6
    assert "Azure Service Bus Data Owner" in ended.err
    assert "hunter2" not in ended.err + ended.out


def test_queues_tells_what_is_active_waits_and_is_dead(shop: Shop) -> None:
    def fill(emulator: Any) -> None:
        orders = emulator.namespace.queue("orders")
        emulator.namespace.queue("orders_dlq")
        for due_at in (None, None, emulator.now() + 900):
            orders.enqueue(Content(), due_at=due_at)
        orders.dead_letters.enqueue(Content())

    shop.emulator.do(fill)
    told = json.loads(shop.redrive("queues", "--output", "json").out)
    shown = {each["name"]: (each["type"], each["ready"], each["delayed"]) for each in told}
    assert shown == {
        "orders": ("queue", 2, 1),
        "orders/$DeadLetterQueue": ("subqueue", 1, None),
        "orders_dlq": ("queue", 0, 0),
    }


def test_what_is_not_there_cannot_be_collected(shop: Shop) -> None:
    ended = shop.redrive("collect", "orders/$DeadLetterQueue", "--once")
    assert ended.code == 3
    assert "there is no queue 'orders/$DeadLetterQueue' on the broker" in ended.err
    assert shop.names() == set()
