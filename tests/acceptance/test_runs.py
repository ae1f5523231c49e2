"""Redrive runs through the command line, with a real worker: what is selected, sent, and what became of each."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING

import pytest

from redrive.access import local
from redrive.actions import Actions
from redrive.dead_letter import Status
from redrive.run import RunStatus
from support.dead_letters import an_order, dead
from support.desk import Desk, LaterClock
from support.patience import until
from support.run_shop import RunShop, all_is_well
from support.terminal import on_terminal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport


@pytest.fixture
def shop(tmp_path: Path) -> RunShop:
    return RunShop(tmp_path)


async def test_three_hundred_letters_go_back_at_a_rate_and_each_is_confirmed(shop: RunShop) -> None:
    async with shop.with_dead_orders(300):
        shop.outcome = all_is_well

        ended = await shop.redrive("retry", "--where", "queue:orders age:<1h", "--rate", "400", "--yes")

        assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "Sent 300 letters back."), ended.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=300))
        report = await shop.report()
        assert report["summary"] == (
            "300 sent, 300 confirmed, 0 came back with the same group, 0 with a new one, 0 without word"
        )
        assert (report["status"], report["total"], report["remaining"], report["rate"]) == ("DONE", 300, 0, 400)
        assert report["selection"].startswith("queue:orders created:>")
        assert len({message.id for message in shop.charged}) == len(shop.charged) == 300


async def test_the_report_tells_what_came_back_with_which_group_and_what_is_without_word(shop: RunShop) -> None:
    async with shop.with_dead_orders(20):
        errors = {1: ValueError("no such customer"), 2: ValueError("no such customer"), 3: TimeoutError("slow")}
        shop.outcome = errors.get
        await shop.redrive("retry", "--queue", "orders", "--limit", "15", "--yes")
        await until(lambda: shop.count(Status.RESOLVED, at_least=12))
        await until(lambda: shop.count(Status.PENDING, at_least=8))

        told = "15 sent, 12 confirmed, 2 came back with the same group, 1 with a new one, 0 without word"
        report = await shop.report()
        assert (report["summary"], report["total"]) == (told, 15)

        await shop.opened.stop()
        again = await shop.redrive("retry", "--queue", "orders", "--yes")
        assert (again.returncode, again.stdout) == (0, "Sent 8 letters back.\n")
        report = await shop.report()
        assert report["summary"].endswith("8 without word")
        assert (await shop.redrive("runs", "show", report["id"])).stdout.splitlines()[1].strip() == report[
            "summary"
        ]


async def test_letters_that_die_while_the_run_goes_on_are_never_taken(shop: RunShop) -> None:
    """Nor its own returns: each message is sent once by the run."""
    async with shop.with_dead_orders(40):
        ended = await shop.redrive(
            "retry", "--queue", "orders", "--rate", "60", "--pause-when-back", "never", "--yes"
        )

        assert ended.returncode == 0, ended.stderr
        await until(lambda: shop.count(Status.PENDING, at_least=40))
        assert len(shop.charged) == 40
        assert (await shop.report())["came_back_same"] == 40


async def test_a_canary_that_comes_back_stops_the_run(shop: RunShop) -> None:
    async with shop.with_dead_orders(50):
        ended = await shop.redrive("retry", "--queue", "orders", "--canary", "2,10", "--yes")

        assert ended.returncode == 4
        assert "STOPPED: canary: 2 of 2 came back, 20% are allowed" in ended.stderr
        assert len(shop.charged) == 2
        report = await shop.report()
        assert (report["status"], report["sent"], report["remaining"]) == ("STOPPED", 2, 48)
        assert await shop.count(Status.PENDING) == 50


async def test_a_canary_that_comes_through_lets_the_rest_go(shop: RunShop) -> None:
    async with shop.with_dead_orders(30):
        shop.outcome = all_is_well

        ended = await shop.redrive("retry", "--queue", "orders", "--canary", "1,5", "--yes")

        assert ended.returncode == 0, ended.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=30))
        assert (await shop.report())["stage"] == 2


async def test_pause_resume_and_cancel_from_another_process(shop: RunShop) -> None:
    async with shop.with_dead_orders(300):
        shop.outcome = all_is_well
        running = await shop.started("retry", "--queue", "orders", "--rate", "20", "--yes")
        await until(lambda: shop.sent(at_least=1))
        [run] = await shop.runs()

        paused = await shop.redrive("runs", "pause", run["id"], "--reason", "the till is closed")

        assert paused.returncode == 0, paused.stderr
        _, err = await running.communicate()
        assert running.returncode == 4
        assert f"run {run['id']} is paused: the till is closed" in err

        assert (await shop.redrive("runs", "resume", run["id"], "--detach")).returncode == 0
        engine = await shop.started("engine")
        before = (await shop.report())["sent"]
        await until(lambda: shop.sent(at_least=before + 1))
        cancelled = await shop.redrive("runs", "cancel", run["id"], "--reason", "enough", "--yes")
        assert cancelled.returncode == 0, cancelled.stderr
        await until(lambda: _nothing_in_hand(shop))
        assert await engine.stop() == 0
        report = await shop.report()
        assert (report["status"], report["why"]) == ("CANCELLED", "enough")
        assert 0 < report["sent"] < 300
        await until(lambda: shop.count(Status.RESOLVED, at_least=report["sent"]))
        assert await shop.count(Status.PENDING) == 300 - report["sent"]


async def _nothing_in_hand(shop: RunShop) -> bool:
    return await shop.count(Status.REDRIVING) == 0


async def test_ctrl_c_pauses_the_run_and_says_how_to_go_on(shop: RunShop) -> None:
    async with shop.with_dead_orders(80):
        shop.outcome = all_is_well
        running = await shop.started("retry", "--queue", "orders", "--rate", "20", "--yes")
        await until(lambda: shop.sent(at_least=1))

        running.send_signal(signal.SIGINT)
        _, err = await running.communicate()

        assert running.returncode == 130
        [run] = await shop.runs()
        assert (run["status"], run["why"]) == ("PAUSED", "interrupted")
        assert f"`redrive runs resume {run['id']}` goes on with it, `redrive runs cancel {run['id']}`" in err

        resumed = await shop.redrive("runs", "resume", run["id"])
        assert resumed.returncode == 0, resumed.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=80))
        report = await shop.report()
        assert (report["status"], report["sent"], report["confirmed"]) == ("DONE", 80, 80)
        assert len({message.id for message in shop.charged}) == 80


async def test_what_was_paused_and_then_cancelled_is_pending_again(shop: RunShop) -> None:
    async with shop.with_dead_orders(90):
        shop.outcome = all_is_well
        running = await shop.started("retry", "--queue", "orders", "--rate", "20", "--yes")
        await until(lambda: shop.sent(at_least=1))
        running.send_signal(signal.SIGTERM)
        await running.communicate()
        assert running.returncode == 130

        run = await shop.report()
        assert (await shop.redrive("runs", "cancel", run["id"], "--yes")).returncode == 0

        await until(lambda: shop.count(Status.RESOLVED, at_least=run["sent"]))
        assert await shop.count(Status.PENDING) == 90 - run["sent"]


async def test_an_engine_carries_out_what_others_only_make(shop: RunShop) -> None:
    async with shop.with_dead_orders(10):
        shop.outcome = all_is_well
        made = await shop.redrive("retry", "--queue", "orders", "--detach", "--yes")
        assert (made.returncode, await shop.count(Status.PENDING)) == (0, 10)
        assert made.stdout.endswith("of 10 letters.\n")

        engine = await shop.started("engine")
        await until(lambda: shop.count(Status.RESOLVED, at_least=10))

        assert await engine.stop() == 0
        assert (await shop.report())["confirmed"] == 10


async def test_an_edit_over_a_selection_reaches_the_worker_and_the_original_is_kept(shop: RunShop) -> None:
    async with shop.with_dead_orders(5):
        shop.outcome = all_is_well

        edits = ("--set", "customer=bob", "--set", "paid=true", "--set-header", "tenant=acme")
        ended = await shop.redrive("retry", "--queue", "orders", *edits, "--reason", "wrong name", "--yes")

        assert ended.returncode == 0, ended.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=5))
        assert all(
            (payload["customer"], payload["paid"]) == ("bob", True) for payload in shop.payloads(shop.charged)
        )
        assert {dict(message.headers)["tenant"] for message in shop.charged} == {"acme"}
        [letter, *_] = await shop.opened.letters()
        assert letter.revision == 1
        assert b'"ann"' in (letter.revisions[0].message.body or b"")


async def test_letters_can_be_sent_to_another_queue(shop: RunShop) -> None:
    async with shop.with_dead_orders(4):
        ended = await shop.redrive("retry", "--queue", "orders", "--to", "repair", "--yes")

        assert ended.returncode == 0, ended.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=4))
        assert (len(shop.repaired), len(shop.charged)) == (4, 0)
        assert (await shop.report())["target"] == "repair"


async def test_a_group_goes_back_and_the_other_groups_stay(shop: RunShop) -> None:
    async with shop.with_dead_orders(6):
        [group] = await shop.opened.store.groups()
        await shop.opened.store.record(dead(an_order(99), error=TimeoutError("slow")))
        shop.outcome = all_is_well

        ended = await shop.redrive("retry", "--group", group.id[:12], "--yes")

        assert ended.stdout.splitlines()[0] == "Sent 6 letters back.", ended.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=6))
        assert await shop.count(Status.PENDING) == 1


async def test_the_settings_of_a_queue_keep_a_run_slow(shop: RunShop) -> None:
    (shop.desk.folder / "redrive.toml").write_text("[queues.orders]\nredrive_rate = 50\n")
    async with shop.with_dead_orders(3):
        await shop.redrive("retry", "--where", "type:ValueError", "--rate", "900", "--yes")
        assert (await shop.report())["rate"] == 50


async def test_a_run_whose_letters_come_back_pauses_by_itself(shop: RunShop) -> None:
    async with shop.with_dead_orders(200):
        ended = await shop.redrive("retry", "--queue", "orders", "--rate", "60", "--yes")

        assert ended.returncode == 4
        report = await shop.report()
        assert report["status"] == "PAUSED"
        assert f"run {report['id']} is paused: {report['why']}" in ended.stderr
        assert report["why"].endswith("outcomes came back")
        assert 50 < report["sent"] < 200


# What needs no worker


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_nothing_selected_is_a_usage_error_with_its_remedy(desk: Desk) -> None:
    ended = desk.redrive("retry", "--yes")
    assert (ended.code, "--where" in ended.err) == (2, True)


def test_ids_and_a_filter_exclude_each_other(desk: Desk) -> None:
    [letter] = desk.record(dead())
    assert desk.redrive("retry", letter, "--queue", "orders", "--yes").code == 2


def test_a_filter_that_nothing_matches_makes_no_run(desk: Desk) -> None:
    desk.record(dead())
    ended = desk.redrive("retry", "--where", "queue:mail", "--yes")
    assert (ended.code, "no pending letter matches" in ended.err) == (3, True)
    assert desk.redrive("runs", "list", "--output", "json").out == "[]\n"


def test_a_filter_that_cannot_be_read_is_told_with_its_column(desk: Desk) -> None:
    ended = desk.redrive("retry", "--where", "queue:", "--yes")
    assert (ended.code, "column" in ended.err) == (2, True)


def test_without_yes_and_nobody_to_ask_no_run_is_made(desk: Desk) -> None:
    desk.record(dead())
    ended = desk.redrive("retry", "--queue", "orders")
    assert (ended.code, "Send 1 letter back?" in ended.err) == (5, True)
    assert desk.redrive("runs").err == "No runs.\n"


def test_a_letter_of_a_run_that_the_broker_refuses_does_not_hold_up_the_others(desk: Desk) -> None:
    bad, *good = desk.record(dead(queue="orders\x07"), dead(), dead())
    ended = desk.redrive("retry", "--where", "age:<1h", "--yes")
    assert (ended.code, ended.out.splitlines()[0]) == (4, "Sent 2 letters back."), ended.err
    assert f"letter {bad}: refused" in ended.err
    assert [desk.letter(each).status for each in good] == [Status.REDRIVEN] * 2


def test_refusals_in_a_row_pause_the_run(desk: Desk) -> None:
    desk.record(*(dead(an_order(number, queue="bad\x07"), queue="bad\x07") for number in range(8)))
    ended = desk.redrive("retry", "--where", "age:<1h", "--yes")
    assert (ended.code, ended.out.splitlines()[0]) == (1, "Sent 0 letters back.")
    assert "is paused: 5 publish errors in a row" in ended.err
    assert "redrive runs resume" in ended.err


def test_a_full_target_pauses_the_run(desk: Desk) -> None:
    desk.record(*(dead(an_order(number)) for number in range(150)))
    ended = desk.redrive("retry", "--queue", "orders", "--rate", "50", "--max-backlog", "10", "--yes")
    assert ended.code == 4
    assert "messages wait in 'orders', more than 10" in ended.err
    assert 10 < len(desk.take("orders")) < 150


def test_a_broker_that_cannot_be_reached_is_told_before_any_run_is_made(desk: Desk) -> None:
    [letter] = desk.record(dead())
    (desk.folder / "redrive-broker.db").mkdir()
    for chosen in ((letter,), ("--queue", "orders")):
        assert desk.redrive("retry", *chosen, "--yes").code == 6
    assert desk.redrive("runs").err == "No runs.\n"
    assert desk.letter(letter).status is Status.PENDING


def test_a_run_whose_process_was_killed_is_resumed_with_the_same_redrive_ids(desk: Desk) -> None:
    ids = desk.record(*(dead(an_order(number)) for number in range(3)))
    assert desk.process("retry", "--queue", "orders", "--yes", faults="engine.sent=kill9").returncode == -9
    [run] = json.loads(desk.redrive("runs", "list", "--active", "--output", "json").out)
    assert (run["status"], run["in_hand"]) == ("RUNNING", 3)

    assert desk.do(_carried_out_later(desk, run["id"])) is RunStatus.DONE

    copies = desk.take("orders")
    assert len(copies) == 6
    assert len({dict(copy.message.headers)["x-redrive-id"] for copy in copies}) == 3
    assert {desk.letter(each).status for each in ids} == {Status.REDRIVEN}


def _carried_out_later(desk: Desk, run_id: str) -> Callable[[DeadLetterStore, Transport], Awaitable[RunStatus]]:
    """By somebody for whom the leases of the dead process have run out."""

    async def work(_store: DeadLetterStore, transport: Transport) -> RunStatus:
        clock = LaterClock()
        store = desk.store(clock=clock)
        try:
            actions = Actions(store=store, transport=transport, clock=clock, who=local("somebody"))
            return (await actions.carry_out(run_id)).status
        finally:
            await store.close()

    return work


def test_letters_that_are_not_searchable_yet_are_not_left_out(desk: Desk) -> None:
    """More of them than a look or two would make searchable by the way."""

    async def record(store: DeadLetterStore, _transport: Transport) -> None:
        await asyncio.gather(*(store.record(dead(an_order(number))) for number in range(3300)))

    desk.do(record)

    ended = desk.redrive("retry", "--where", '"no such customer"', "--detach", "--yes")

    assert ended.out.endswith("of 3300 letters.\n"), ended.err


def test_a_terminal_shows_how_far_it_is_and_how_long_it_will_take(desk: Desk) -> None:
    desk.record(*(dead(an_order(number)) for number in range(40)))
    seen = on_terminal(desk.folder, "retry", "--queue", "orders", "--rate", "20", typed="y\n")
    assert seen.code == 0
    assert "0 sent, 0 confirmed, 40 left, 2s to go" in seen.text
    assert "Sent 40 letters back." in seen.text


def test_what_people_write_cannot_reach_the_terminal(desk: Desk) -> None:
    desk.record(dead())
    desk.redrive("retry", "--queue", "orders", "--reason", "\x1b[2Jgone", "--detach", "--yes")
    [run] = json.loads(desk.redrive("runs", "list", "--output", "json").out)
    desk.redrive("runs", "pause", run["id"], "--reason", "\x1b]0;gone\x07")
    for output in ("table", "json", "jsonl"):
        shown = desk.redrive("runs", "show", run["id"], "--output", output)
        assert "gone" in shown.out
        assert not {"\x1b", "\x07"} & set(shown.out)


def test_every_letter_of_a_run_can_be_listed_with_what_became_of_it(desk: Desk) -> None:
    ids = desk.record(*(dead(an_order(number)) for number in range(3)))
    desk.redrive("retry", "--queue", "orders", "--yes")
    [run] = json.loads(desk.redrive("runs", "list", "--output", "json").out)

    ended = desk.redrive("runs", "show", run["id"], "--letters", "--output", "jsonl")

    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert {row["letter_id"] for row in rows} == set(ids)
    assert {row["outcome"] for row in rows} == {"sent"}


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "csv"])
def test_runs_are_listed_and_shown_in_every_format(desk: Desk, output: str) -> None:
    desk.record(dead())
    desk.redrive("retry", "--queue", "orders", "--reason", "till was closed", "--yes")
    [run] = json.loads(desk.redrive("runs", "list", "--output", "json").out)
    for command in (("list",), ("show", run["id"]), ("show", run["id"][:23])):
        ended = desk.redrive("runs", *command, "--output", output)
        assert (ended.code, run["id"] in ended.out, "DONE" in ended.out) == (0, True, True)


def test_a_run_that_nobody_made_is_not_found(desk: Desk) -> None:
    desk.record(dead())
    for command in ("show", "pause", "resume"):
        assert desk.redrive("runs", command, "01a1e159-cf20-722c").code == 3
        assert desk.redrive("runs", command, "01a").code == 2


def test_a_run_that_has_ended_cannot_be_changed_any_more(desk: Desk) -> None:
    desk.record(dead())
    desk.redrive("retry", "--queue", "orders", "--yes")
    [run] = json.loads(desk.redrive("runs", "list", "--output", "json").out)
    for command in (("pause",), ("resume",), ("cancel", "--yes"), ("approve", "--yes")):
        ended = desk.redrive("runs", command[0], run["id"], *command[1:])
        assert (ended.code, "is DONE: cannot" in ended.err) == (5, True)
