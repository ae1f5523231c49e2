"""A trap that others fell into with SQS, on moto, which has it too: dead letters are as old as their message.

In a standard queue, retention counts from when a message was first sent, wherever SQS has moved it since.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.desk import Desk
from support.moto_server import MotoSqs
from support.plain_sqs import PlainSqs

DAY = 86_400
RETENTION = "MessageRetentionPeriod"
QUEUE = "orders"


@pytest.fixture
def theirs(new_sqs_endpoint: str) -> PlainSqs:
    return PlainSqs(new_sqs_endpoint)


@pytest.fixture
def shop(tmp_path: Path, sqs: MotoSqs) -> Desk:
    broker = f'[broker]\nurl = "{sqs.url}"\n[broker.sqs]\nendpoint = "{sqs.endpoint}"\nwait = "1s"\n'
    (tmp_path / "redrive.toml").write_text(f"{broker}[queues.{QUEUE}]\n")
    return Desk(tmp_path)


@pytest.fixture
def dead(sqs: MotoSqs, theirs: PlainSqs) -> str:
    """Queue and dead letters keep messages for four days, as SQS does unasked. One message failed on the third."""
    name = f"{QUEUE}_dlq"
    rule = {"deadLetterTargetArn": theirs.make(name, **{RETENTION: str(4 * DAY)}), "maxReceiveCount": "1"}
    theirs.make(QUEUE, RedrivePolicy=json.dumps(rule), **{RETENTION: str(4 * DAY)})
    theirs.send(QUEUE, '{"order": 17}')
    sqs.clock.advance(3 * DAY)
    theirs.fail_all(QUEUE)
    assert theirs.visible(name) == 1
    return name


def test_trap_22_a_dead_letter_is_deleted_by_the_age_of_its_message_a_day_after_it_came(
    sqs: MotoSqs, theirs: PlainSqs, dead: str
) -> None:
    sqs.clock.advance(DAY + 1)

    assert theirs.take(dead) == []


@pytest.mark.usefixtures("dead")
def test_trap_22_setup_and_doctor_tell_of_it(shop: Desk) -> None:
    setup = shop.redrive("setup", "--dry-run")
    assert setup.code == 4
    assert f"queue {QUEUE}_dlq: {RETENTION} is {4 * DAY}, wanted is {14 * DAY}" in setup.err

    doctor = json.loads(shop.redrive("doctor", "--output", "json").out)
    [told] = [each for each in doctor if each["check"] == "retention"]
    assert (told["queue"], told["level"]) == (f"{QUEUE}_dlq", "warn")
    assert "since they were first sent" in told["what"]
    assert "collect" in told["remedy"]


def test_trap_22_the_collector_has_it_before_it_is_deleted(
    sqs: MotoSqs, shop: Desk, theirs: PlainSqs, dead: str
) -> None:
    sqs.clock.advance(DAY - 60)
    collected = shop.redrive("collect", dead, "--once")
    assert collected.code == 0, collected.err
    sqs.clock.advance(2 * DAY)

    [letter] = json.loads(shop.redrive("list", "--output", "json").out)
    assert letter["queue"] == QUEUE  # in quarantine: moto does not say where it came from
    assert shop.letter(letter["id"]).message.body == b'{"order": 17}'
    assert theirs.take(dead) == []
