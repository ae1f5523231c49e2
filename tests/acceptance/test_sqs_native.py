"""What SQS itself dead-letters, as ElasticMQ plays it: a consumer that never deletes, and a RedrivePolicy. It is
collected with the queue that it came from, or SQS moves all of it back (`redrive move-back`).
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from redrive.errors import Unreachable
from redrive.transports.moving import Move, MoveState
from redrive.transports.sqs.move_tasks import MoveTasks
from support.desk import Desk
from support.elasticmq_server import ElasticMq
from support.forked import REDRIVE, Recorded
from support.patience import until_now
from support.plain_sqs import PlainSqs
from support.sqs_account import URL
from support.terminal import on_terminal

APP = """
from redrive import App

app = App("shop")

@app.handler("{queue}")
async def charge(body: dict) -> None:
    pass
"""


@pytest.fixture
def theirs(elasticmq: ElasticMq) -> PlainSqs:
    return PlainSqs(elasticmq.endpoint)


@pytest.fixture
def orders(elasticmq: ElasticMq, theirs: PlainSqs) -> str:
    """A queue of others. Where its dead letters go is not named as we would."""
    name = elasticmq.queue_name()
    theirs.make_family(name, f"{name}-failed")
    return name


@pytest.fixture
def shop(tmp_path: Path, elasticmq: ElasticMq, orders: str) -> Desk:
    (tmp_path / "app.py").write_text(APP.format(queue=orders))
    broker = f'[broker]\nurl = "{URL}"\n[broker.sqs]\nendpoint = "{elasticmq.endpoint}"\nwait = "1s"\n'
    (tmp_path / "redrive.toml").write_text(broker)
    return Desk(tmp_path)


def fail(theirs: PlainSqs, orders: str, count: int) -> list[str]:
    bodies = [json.dumps({"order": number}) for number in range(count)]
    theirs.send(orders, *bodies)
    theirs.fail_all(orders)
    assert theirs.visible(f"{orders}-failed") == count
    return bodies


def trail(shop: Desk) -> list[tuple[str, str, str]]:
    rows: list[dict[str, Any]] = json.loads(shop.redrive("audit", "list", "--output", "json").out)
    return [(row["what"], row["after"], row["reason"]) for row in reversed(rows) if row["kind"] == "queue"]


def test_what_sqs_moved_is_collected_with_its_source_queue_and_goes_back_there(
    shop: Desk, theirs: PlainSqs, orders: str
) -> None:
    theirs.send(orders, '{"order": 17}', tenant="acme")
    theirs.fail_all(orders)

    collected = shop.redrive("collect", f"{orders}-failed", "--once")
    assert collected.code == 0, collected.err
    [letter] = json.loads(shop.redrive("list", "--output", "json").out)
    assert (letter["queue"], letter["status"]) == (orders, "PENDING")
    assert theirs.visible(f"{orders}-failed") == 0
    assert f"moved there from {orders}, received 2 times" in shop.redrive("show", letter["id"]).out
    told = json.loads(shop.redrive("show", letter["id"], "--output", "json").out)["sqs"]
    assert (told["queue"], told["types"]) == (f"{orders}-failed", {})
    assert told["system"]["DeadLetterQueueSourceArn"].endswith(f":{orders}")
    assert "SenderId" not in told["system"]  # masked, as everything is

    retried = shop.redrive("retry", letter["id"], "--yes")
    assert retried.code == 0, retried.err
    worked = shop.process("work", "app:app", "--drain")
    assert worked.returncode == 0, worked.stderr
    assert shop.letter(letter["id"]).status == "RESOLVED"


def test_a_whole_queue_is_moved_back_and_written_down(shop: Desk, theirs: PlainSqs, orders: str) -> None:
    bodies = fail(theirs, orders, 25)

    moved = shop.redrive("move-back", f"{orders}-failed", "--yes", "--rate", "400", "--reason", "the bank is back")

    assert moved.code == 0, moved.err
    assert moved.out == f"COMPLETED: 25 of about 25 messages of {orders}-failed were moved back.\n"
    assert "nothing is filtered" in moved.err
    assert sorted(theirs.take(orders)) == sorted(bodies)
    assert trail(shop) == [
        ("move back", f"about 25 to {orders}, at most 400 per second", "the bank is back"),
        ("moved back", "COMPLETED, about 25", ""),
    ]


def test_a_dry_run_tells_what_would_move_and_where_to_and_moves_nothing(
    shop: Desk, theirs: PlainSqs, orders: str, elasticmq: ElasticMq
) -> None:
    other = f"z-{elasticmq.queue_name()}"
    theirs.make_family(other, f"{orders}-failed")
    fail(theirs, orders, 2)

    told = shop.redrive("move-back", f"{orders}-failed", "--dry-run")

    assert told.code == 0, told.err
    assert told.out == (
        f"Would move about 2 messages of {orders}-failed to {orders} and {other} back. Nothing was changed.\n"
    )
    assert theirs.visible(f"{orders}-failed") == 2
    assert trail(shop) == []


def test_nothing_is_moved_where_nobody_can_be_asked_or_a_person_says_no(
    shop: Desk, theirs: PlainSqs, orders: str
) -> None:
    fail(theirs, orders, 1)

    assert shop.redrive("move-back", f"{orders}-failed").code == 5
    seen = on_terminal(shop.folder, "move-back", f"{orders}-failed", typed="n\n")
    assert (seen.code, "Move about 1 message of" in seen.text) == (5, True), seen.text
    assert theirs.visible(f"{orders}-failed") == 1


def test_ctrl_c_cancels_the_move_and_tells_how_far_it_came(shop: Desk, theirs: PlainSqs, orders: str) -> None:
    fail(theirs, orders, 40)
    arguments = ("move-back", f"{orders}-failed", "--yes", "--rate", "2")
    running = Recorded(REDRIVE, *arguments, cwd=shop.folder, env=dict(os.environ))
    until_now(lambda: theirs.visible(orders) > 0)

    again = shop.redrive("move-back", f"{orders}-failed", "--yes")
    assert (again.code, "is under way" in again.err) == (5, True), again.err
    running.send_signal(signal.SIGINT)
    ended = running.ended()

    assert ended.returncode == 130, ended.stderr
    assert ended.stdout.startswith("CANCELLED: ")
    assert "stays where it is" in ended.stderr
    moved, left = theirs.visible(orders), theirs.visible(f"{orders}-failed")
    assert moved + left == 40
    assert left > 0
    assert [what for what, _, _ in trail(shop)] == ["move back", "cancel move back", "moved back"]


def test_a_move_whose_command_was_killed_goes_on_and_can_be_cancelled(
    shop: Desk, theirs: PlainSqs, orders: str
) -> None:
    fail(theirs, orders, 40)
    arguments = ("move-back", f"{orders}-failed", "--yes", "--rate", "2")
    running = Recorded(REDRIVE, *arguments, cwd=shop.folder, env=dict(os.environ))
    until_now(lambda: theirs.visible(orders) > 0)
    running.send_signal(signal.SIGKILL)
    running.ended()

    cancelled = shop.redrive("move-back", f"{orders}-failed", "--cancel", "--yes")

    assert cancelled.code == 0, cancelled.err
    assert cancelled.out.startswith("CANCELLED: ")
    assert theirs.visible(f"{orders}-failed") > 0
    assert shop.redrive("move-back", f"{orders}-failed", "--cancel", "--yes").code == 3


def test_a_move_that_sqs_gives_up_is_told_with_its_reason_and_the_other_way(
    shop: Desk, theirs: PlainSqs, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ElasticMQ never gives one up: what SQS would tell is made here."""

    async def given_up(_: MoveTasks, move: Move) -> Move:
        return replace(move, state=MoveState.FAILED, moved=1, why="CouldNotDetermineMessageSource")

    fail(theirs, orders, 3)
    monkeypatch.setattr(MoveTasks, "look", given_up)

    ended = shop.redrive("move-back", f"{orders}-failed", "--yes")

    assert ended.code == 4
    assert "CouldNotDetermineMessageSource" in ended.err
    assert f"redrive collect {orders}-failed" in ended.err


def test_a_move_that_cannot_be_followed_goes_on_and_is_written_down_so(
    shop: Desk, theirs: PlainSqs, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: MoveTasks, _move: Move) -> Move:
        raise Unreachable("SQS does not answer")

    fail(theirs, orders, 1)
    monkeypatch.setattr(MoveTasks, "look", away)

    ended = shop.redrive("move-back", f"{orders}-failed", "--yes")

    assert (ended.code, "SQS goes on by itself" in ended.err) == (6, True), ended.err
    assert [what for what, _, _ in trail(shop)] == ["move back", "move back not followed"]


def test_a_queue_that_needs_a_second_person_is_not_moved_behind_their_back(
    shop: Desk, theirs: PlainSqs, orders: str
) -> None:
    with (shop.folder / "redrive.toml").open("a") as file:
        file.write("[approval]\nmore_than = 2\n")
    fail(theirs, orders, 3)

    refused = shop.redrive("move-back", f"{orders}-failed", "--yes")

    assert (refused.code, "more than 2" in refused.err, "redrive collect" in refused.err) == (5, True, True)
    assert theirs.visible(f"{orders}-failed") == 3


def test_the_rate_is_never_above_the_ceiling_of_the_queue_that_gets_the_messages(
    shop: Desk, theirs: PlainSqs, orders: str
) -> None:
    with (shop.folder / "redrive.toml").open("a") as file:
        file.write(f"[queues.{orders}]\nredrive_rate = 30\n")
    fail(theirs, orders, 1)

    told = shop.redrive("move-back", f"{orders}-failed", "--rate", "300", "--dry-run")

    assert "at most 30 per second" in told.out, told.err


def test_what_cannot_be_moved_back_is_refused_with_another_way(shop: Desk, orders: str) -> None:
    nobodys = shop.redrive("move-back", orders, "--yes")
    assert (nobodys.code, f"redrive collect {orders}" in nobodys.err) == (5, True), nobodys.err
    assert shop.redrive("move-back", f"{orders}-nowhere", "--yes").code == 3
    empty = shop.redrive("move-back", f"{orders}-failed", "--yes")
    assert (empty.code, empty.out) == (0, f"Nothing to move back: {orders}-failed is empty.\n")


def test_a_broker_that_moves_nothing_by_itself_is_refused_with_another_way(tmp_path: Path) -> None:
    refused = Desk(tmp_path).redrive("move-back", "orders_dlq", "--yes")

    assert (refused.code, "redrive reprocess --queue orders_dlq" in refused.err) == (5, True), refused.err
