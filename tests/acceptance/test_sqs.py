"""The whole loop on SQS as moto plays it: a message fails, is set apart, put back, and succeeds; and what others
dead-lettered is collected.
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
from pathlib import Path
from redrive import App

app = App("shop")

@app.handler("orders")
async def charge(body: dict) -> None:
    if not Path("mended").exists():
        raise ValueError("no such customer")

@app.handler("orders.fifo")
async def charge_in_order(body: dict) -> None:
    await charge(body)
"""
QUEUES = {"orders": "orders_dlq", "orders.fifo": "orders_dlq.fifo"}
"""With those of their dead letters."""


@pytest.fixture
def shop(tmp_path: Path, new_sqs_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "app.py").write_text(APP)
    broker = f'[broker]\nurl = "{URL}"\n[broker.sqs]\nendpoint = "{new_sqs_endpoint}"\nwait = "1s"\n'
    (tmp_path / "redrive.toml").write_text(f"{broker}[retry]\nattempts = 1\n[queues.orders]\n")
    return Desk(tmp_path)


def work(shop: Desk) -> None:
    ended = shop.process("work", "app:app", "--drain")
    assert ended.returncode == 0, ended.stderr


def letters(shop: Desk, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shop.redrive("list", "--output", "json", *arguments).out)
    return found


def put_back(shop: Desk, letter: dict[str, Any]) -> None:
    """Its handler succeeds from now on."""
    (shop.folder / "mended").touch()
    retried = shop.redrive("retry", letter["id"], "--yes")
    assert retried.code == 0, retried.err
    work(shop)
    assert shop.letter(letter["id"]).status == "RESOLVED"


@pytest.mark.parametrize("queue", QUEUES)
def test_a_message_that_failed_is_put_back_and_confirmed(shop: Desk, queue: str) -> None:
    assert shop.redrive("send", queue, '{"order": 17}').code == 0
    work(shop)
    [letter] = letters(shop)
    assert (letter["queue"], letter["status"]) == (queue, "PENDING")
    put_back(shop, letter)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("sink", ["queue", "both"])
def test_a_dead_letter_in_the_brokers_queue_is_collected_once_and_put_back(
    shop: Desk, queue: str, sink: str
) -> None:
    with (shop.folder / "redrive.toml").open("a") as settings:
        settings.write(f'[dead_letters]\nsink = "{sink}"\n')
    assert shop.redrive("send", queue, '{"order": 17}').code == 0
    work(shop)
    assert len(letters(shop)) == (1 if sink == "both" else 0)
    for _ in range(2):
        collected = shop.redrive("collect", QUEUES[queue], "--once")
        assert collected.code == 0, collected.err

    [letter] = letters(shop)
    assert (letter["queue"], letter["status"]) == (queue, "PENDING")
    assert [failure.type for failure in shop.letter(letter["id"]).failures] == ["ValueError"]
    put_back(shop, letter)


def test_what_another_consumer_dead_lettered_is_collected_and_put_back(shop: Desk, new_sqs_endpoint: str) -> None:
    assert shop.redrive("setup", "--yes").code == 0

    async def undelivered() -> None:
        async with get_session().create_client("sqs", region_name=REGION, endpoint_url=new_sqs_endpoint) as theirs:
            queue = (await theirs.get_queue_url(QueueName="orders"))["QueueUrl"]
            arns = await theirs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
            told = {
                "RULE_ARN": "arn:aws:events:eu-west-1:123456789012:rule/orders",
                "TARGET_ARN": arns["Attributes"]["QueueArn"],
                "ERROR_CODE": "NO_PERMISSIONS",
            }
            attributes = {name: {"DataType": "String", "StringValue": value} for name, value in told.items()}
            dead = (await theirs.get_queue_url(QueueName="orders_dlq"))["QueueUrl"]
            await theirs.send_message(QueueUrl=dead, MessageBody='{"order": 18}', MessageAttributes=attributes)

    asyncio.run(undelivered())
    collected = shop.redrive("collect", "orders_dlq", "--once")
    assert collected.code == 0, collected.err
    [letter] = letters(shop)
    assert (letter["queue"], letter["status"]) == ("orders", "PENDING")
    assert shop.letter(letter["id"]).failures[-1].type == "eventbridge.NO_PERMISSIONS"

    put_back(shop, letter)
