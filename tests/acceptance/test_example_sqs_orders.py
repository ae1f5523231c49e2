"""examples/sqs_orders.py, as its first lines say, in a hurry and on SQS as moto plays it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.desk import Desk
from support.moto_server import CREDENTIALS

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def shop(tmp_path: Path, new_sqs_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    shutil.copy(EXAMPLES / "sqs_orders.py", tmp_path)
    shutil.copy(EXAMPLES / "sqs_orders.toml", tmp_path / "redrive.toml")
    told = {
        "BROKER__SQS__ENDPOINT": new_sqs_endpoint,
        "BROKER__SQS__WAIT": "1s",
        "RETRY__ATTEMPTS": "2",
        "RETRY__INITIAL_DELAY": "1ms",
    }
    for name, value in told.items():
        monkeypatch.setenv(f"REDRIVE_{name}", value)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return Desk(tmp_path)


def test_orders_are_charged_retried_or_set_apart_and_shipments_keep_their_turn(shop: Desk) -> None:
    made = shop.redrive("setup", "sqs_orders:app", "--yes")
    assert (made.code, "Made 4 queues." in made.err) == (0, True), made.err
    for number, total in enumerate((299.9, 0, 5000)):
        assert shop.redrive("send", "orders", json.dumps({"order_id": number, "total": total})).code == 0
    for number in range(2):
        sent = shop.redrive("send", "shipments.fifo", json.dumps({"order_id": number}), "--key", "customer-3")
        assert sent.code == 0, sent.err

    ended = shop.process("work", "sqs_orders:app", "--drain")

    assert ended.returncode == 0, ended.stderr
    shipped = [line for line in ended.stdout.splitlines() if line.startswith("shipped")]
    assert shipped == [f"shipped order {number} in its turn, of customer-3" for number in range(2)]
    assert "charged order 0" in ended.stdout
    assert "dead letter after 1 attempts: an order of nothing cannot be charged" in ended.stdout
    assert "dead letter after 2 attempts: the bank does not answer" in ended.stdout
    letters = json.loads(shop.redrive("list", "--output", "json").out)
    assert sorted(each["queue"] for each in letters) == ["orders", "orders"]
