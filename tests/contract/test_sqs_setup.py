"""`redrive setup`, `doctor` and `queues` on SQS as moto plays it: what is missing is made, what exists is not
changed but for a RedrivePolicy that is not there, and what may lose a message is told.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiobotocore.session import get_session

from support.desk import Desk
from support.moto_server import CREDENTIALS, REGION, URL

APP = """
from redrive import App

app = App("shop")

@app.handler("orders")
async def charge(body: bytes) -> None: ...
"""
RETENTION = "MessageRetentionPeriod"


class Shop(Desk):
    """A folder with an app of one handler, and SQS as its broker."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        super().__init__(folder)
        self.endpoint = endpoint
        self.queue = "orders"
        self.write()
        (folder / "app.py").write_text(APP)

    def write(self, *lines: str, more: str = "") -> None:
        own = "\n".join([f'endpoint = "{self.endpoint}"', 'wait = "1s"', *lines])
        (self.folder / "redrive.toml").write_text(
            f'[broker]\nurl = "{URL}"\n[broker.sqs]\n{own}\n{more}\n[queues."{self.queue}"]\n'
        )

    def sqs(self, operation: str, **given: Any) -> dict[str, Any]:
        async def call() -> dict[str, Any]:
            async with get_session().create_client(
                "sqs", region_name=REGION, endpoint_url=self.endpoint
            ) as client:
                answer: dict[str, Any] = await getattr(client, operation)(**given)
                return answer

        return asyncio.run(call())

    def make(self, name: str, **attributes: str) -> str:
        return str(self.sqs("create_queue", QueueName=name, Attributes=attributes)["QueueUrl"])

    def attributes(self, name: str) -> dict[str, Any]:
        url = self.sqs("get_queue_url", QueueName=name)["QueueUrl"]
        told: dict[str, Any] = self.sqs("get_queue_attributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return told

    def names(self) -> set[str]:
        return {url.rpartition("/")[2] for url in self.sqs("list_queues").get("QueueUrls", ())}

    def findings(self) -> dict[tuple[str, str | None], str]:
        """The levels of what the doctor finds on the broker."""
        ended = self.redrive("doctor", "--output", "json")
        return {
            (each["check"], each["queue"]): each["level"]
            for each in json.loads(ended.out)
            if each["place"] == "broker"
        }


@pytest.fixture
def shop(tmp_path: Path, new_sqs_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return Shop(tmp_path, new_sqs_endpoint)


def test_what_is_shown_is_made_once(shop: Shop) -> None:
    looked = shop.redrive("setup", "--dry-run")
    assert (looked.code, shop.names()) == (0, set()), looked.err
    assert "Would make 2 queues; nothing was changed." in looked.err

    made = shop.redrive("setup", "--yes")
    again = shop.redrive("setup")

    assert (made.code, "Made 2 queues." in made.err) == (0, True), made.err
    assert (again.code, "Nothing was missing." in again.err) == (0, True), again.err
    assert shop.names() == {"orders", "orders_dlq"}
    orders, dead = shop.attributes("orders"), shop.attributes("orders_dlq")
    rule = json.loads(orders["RedrivePolicy"])
    assert rule["deadLetterTargetArn"] == dead["QueueArn"]
    assert int(rule["maxReceiveCount"]) == 50
    assert orders[RETENTION] == dead[RETENTION] == str(14 * 86_400)
    assert "RedrivePolicy" not in dead


def test_how_often_a_message_is_received_is_a_setting(shop: Shop) -> None:
    shop.write("max_receive_count = 3")
    assert shop.redrive("setup", "--yes").code == 0
    assert int(json.loads(shop.attributes("orders")["RedrivePolicy"])["maxReceiveCount"]) == 3


def test_without_a_count_sqs_moves_nothing(shop: Shop) -> None:
    shop.write('max_receive_count = "none"')
    assert shop.redrive("setup", "--yes").code == 0
    assert "RedrivePolicy" not in shop.attributes("orders")


def test_what_exists_is_left_as_it_is_and_told(shop: Shop) -> None:
    shop.make("elsewhere")
    rule = json.dumps({"deadLetterTargetArn": shop.attributes("elsewhere")["QueueArn"], "maxReceiveCount": "3"})
    shop.make("orders", RedrivePolicy=rule)
    shop.make("orders_dlq", **{RETENTION: "3600"})

    ended = shop.redrive("setup", "--yes")

    assert ended.code == 4
    wanted = "wanted is orders_dlq after 50 receptions"
    assert f"queue orders: RedrivePolicy is elsewhere after 3 receptions, {wanted}" in ended.err
    assert f"queue orders_dlq: {RETENTION} is 3600, wanted is 1209600" in ended.err
    assert "elsewhere" in shop.attributes("orders")["RedrivePolicy"]
    assert shop.attributes("orders_dlq")[RETENTION] == "3600"


def test_a_queue_that_exists_without_a_policy_gets_one_and_nothing_else(shop: Shop) -> None:
    shop.make("orders", **{RETENTION: "3600"})

    looked = shop.redrive("setup", "--dry-run")
    assert "Would make 1 queue, 1 route; nothing was changed." in looked.err, looked.err
    assert "route orders -> orders_dlq (moved by SQS): missing" in looked.out
    assert "RedrivePolicy" not in shop.attributes("orders")

    made = shop.redrive("setup", "--yes")
    again = shop.redrive("setup")

    assert (made.code, "Made 1 queue, 1 route." in made.err) == (0, True), made.err
    assert (again.code, "Nothing was missing." in again.err) == (0, True), again.err
    orders = shop.attributes("orders")
    assert json.loads(orders["RedrivePolicy"])["deadLetterTargetArn"] == shop.attributes("orders_dlq")["QueueArn"]
    assert orders[RETENTION] == "3600"


def test_the_doctor_finds_a_queue_that_is_not_there(shop: Shop) -> None:
    assert shop.findings() == {("broker", None): "ok", ("queue", "orders"): "problem"}


def test_the_doctor_finds_nothing_where_setup_was(shop: Shop) -> None:
    shop.redrive("setup", "--yes")
    assert shop.findings() == {("broker", None): "ok", ("queue", "orders"): "ok"}


def test_the_doctor_finds_dead_letters_that_are_deleted_early_and_a_policy_of_few_receptions(shop: Shop) -> None:
    shop.make("orders_dlq", **{RETENTION: "3600"})
    arn = shop.attributes("orders_dlq")["QueueArn"]
    shop.make("orders", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "3"}))

    assert shop.findings() == {
        ("broker", None): "ok",
        ("retention", "orders_dlq"): "problem",
        ("dead-letter-route", "orders"): "warn",
    }


def test_the_doctor_finds_retries_that_the_queue_would_not_survive(shop: Shop) -> None:
    shop.write(more='[retry]\ndelays = ["2d"]')
    shop.make("orders", **{RETENTION: "86400"})
    assert shop.findings()["retention", "orders"] == "problem"


def test_the_doctor_says_that_sqs_does_not_answer(shop: Shop) -> None:
    shop.endpoint = "http://127.0.0.1:1"
    shop.write('connect_timeout = "1s"')
    assert shop.redrive("doctor", "--output", "json").code == 6


def test_queues_tells_what_is_visible_waits_and_is_in_hand(shop: Shop) -> None:
    url = shop.make("orders")
    shop.make("orders_dlq")
    for body in ("one", "two", "three"):
        shop.sqs("send_message", QueueUrl=url, MessageBody=body)
    shop.sqs("send_message", QueueUrl=url, MessageBody="later", DelaySeconds=900)
    shop.sqs("receive_message", QueueUrl=url, MaxNumberOfMessages=1)

    told = json.loads(shop.redrive("queues", "--output", "json").out)

    shown = {each["name"]: (each["type"], each["ready"], each["delayed"], each["unacked"]) for each in told}
    assert shown == {"orders": ("standard", 2, 1, 1), "orders_dlq": ("standard", 0, 0, 0)}


def test_what_is_not_there_cannot_be_collected(shop: Shop) -> None:
    ended = shop.redrive("collect", "orders_dlq", "--once")
    assert ended.code == 3
    assert "there is no queue 'orders_dlq' on the broker" in ended.err
    assert shop.names() == set()


# FIFO


@pytest.fixture
def fifo_shop(shop: Shop) -> Shop:
    shop.queue = "orders.fifo"
    shop.write()
    return shop


def test_a_fifo_queue_is_made_with_dead_letters_that_keep_their_order_too(fifo_shop: Shop) -> None:
    looked = fifo_shop.redrive("setup", "--dry-run")
    assert "more groups, more throughput" in looked.out + looked.err
    made = fifo_shop.redrive("setup", "--yes")
    again = fifo_shop.redrive("setup")

    assert (made.code, "Made 2 queues." in made.err) == (0, True), made.err
    assert (again.code, "Nothing was missing." in again.err) == (0, True), again.err
    assert fifo_shop.names() == {"orders.fifo", "orders_dlq.fifo"}
    orders, dead = fifo_shop.attributes("orders.fifo"), fifo_shop.attributes("orders_dlq.fifo")
    assert orders["FifoQueue"] == dead["FifoQueue"] == "true"
    assert orders["ContentBasedDeduplication"] == dead["ContentBasedDeduplication"] == "false"
    assert json.loads(orders["RedrivePolicy"])["deadLetterTargetArn"] == dead["QueueArn"]
    assert fifo_shop.findings() == {("broker", None): "ok", ("queue", "orders.fifo"): "ok"}


def test_the_doctor_says_that_a_policy_of_few_receptions_breaks_the_order_of_a_group(fifo_shop: Shop) -> None:
    fifo_shop.write("max_receive_count = 3")
    fifo_shop.redrive("setup", "--yes")
    told = json.loads(fifo_shop.redrive("doctor", "--output", "json").out)
    [found] = [each for each in told if each["check"] == "dead-letter-route"]
    assert (found["level"], "out of its order" in found["what"]) == ("warn", True), found


def test_the_doctor_finds_retries_that_a_fifo_queue_refuses(fifo_shop: Shop) -> None:
    fifo_shop.write(more='[retry]\ndelays = ["13h"]')
    fifo_shop.redrive("setup", "--yes")
    assert fifo_shop.findings()["visibility", "orders.fifo"] == "problem"


def test_queues_tells_of_a_fifo_queue_and_its_dead_letters(fifo_shop: Shop) -> None:
    fifo_shop.redrive("setup", "--yes")
    assert fifo_shop.redrive("send", "orders.fifo", "{}").code == 0
    told = json.loads(fifo_shop.redrive("queues", "--output", "json").out)
    shown = {each["name"]: (each["type"], each["ready"]) for each in told}
    assert shown == {"orders.fifo": ("fifo", 1), "orders_dlq.fifo": ("fifo", 0)}
