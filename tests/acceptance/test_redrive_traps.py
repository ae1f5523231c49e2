"""Traps of putting messages back that others fell into, each under its number in the list of dialects, with a real
worker; on both stores where the store decides. Those of one broker alone are tested with that broker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from redrive import App, Message, Retry
from redrive.access import local
from redrive.actions import Actions
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from redrive.run import RunPlan, RunStatus
from support.dead_letters import an_order, dead, foreign
from support.patience import until
from support.run_shop import RunShop, all_is_well
from support.shop_desk import GatedShop, all_is_handled, carried_out, carried_out_later, done, letter_ids
from support.workshop import workshop

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = ("retry", "--queue", "orders", "--yes")


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/redrive.db"
    url: str = request.getfixturevalue("postgres_store_url")
    return url


@pytest.fixture
def shop(tmp_path: Path, store_url: str) -> GatedShop:
    """On either store."""
    return GatedShop(tmp_path, store_url=store_url)


@pytest.fixture
def small_shop(tmp_path: Path) -> GatedShop:
    """On files."""
    return GatedShop(tmp_path)


async def test_trap_8_whoever_presses_again_sends_nothing_twice(shop: GatedShop) -> None:
    """While the first is under way, while nothing is heard of it, and when it has come through."""
    async with shop.with_dead_orders(5):
        shop.outcome = all_is_well
        shop.gate.clear()
        both = await asyncio.gather(shop.redrive(*ORDERS), shop.redrive(*ORDERS))
        assert 0 in {ended.returncode for ended in both}, both
        assert sum(run["sent"] for run in await shop.runs()) == 5
        silent = await shop.redrive(*ORDERS)

        shop.gate.set()
        await until(lambda: shop.count(Status.RESOLVED, at_least=5))
        late = await shop.redrive(*ORDERS)

        assert (silent.returncode, late.returncode) == (3, 3)
        assert "no pending letter matches" in silent.stderr
        await all_is_handled(shop)
        assert [*_copies(shop).values()] == [1] * 5


async def test_trap_8_whoever_reprocesses_a_queue_again_sends_nothing_twice(small_shop: GatedShop) -> None:
    shop = small_shop
    async with shop.with_dead_orders(1):
        shop.gate.clear()
        shop.outcome = all_is_well
        messages = [an_order(number, queue="orders_dlq") for number in range(3)]
        for message in messages:
            await shop.opened.transport.send(message, queue="orders_dlq")
        again = ("reprocess", "--queue", "orders_dlq", "--yes")

        for _ in range(3):
            assert (await shop.redrive(*again)).returncode in {0, 3}

        shop.gate.set()
        await until(lambda: len(shop.charged) >= 4)
        await all_is_handled(shop)
        assert [*_copies(shop).values()] == [1] * 4


async def test_trap_10_a_letter_that_is_in_two_batches_is_processed_once(shop: GatedShop) -> None:
    async with shop.with_dead_orders(40):
        shop.outcome = all_is_well
        for chosen in ("queue:orders", "type:ValueError"):
            await done(shop, "retry", "--where", chosen, "--rate", "80", "--detach", "--yes")

        await carried_out(shop, engines=2)

        await until(lambda: shop.count(Status.RESOLVED, at_least=40))
        await all_is_handled(shop)
        assert [*_copies(shop).values()] == [1] * 40
        runs = await shop.runs()
        assert [(run["status"], run["total"]) for run in runs] == [("DONE", 40)] * 2
        assert sum(run["sent"] for run in runs) == sum(run["confirmed"] for run in runs) == 40


async def test_trap_11_a_group_that_is_retried_is_the_group_as_it_was_when_somebody_said_so(
    shop: GatedShop,
) -> None:
    async with shop.with_dead_orders(6):
        [group] = await shop.opened.store.groups()
        asked_for = {letter.message.id for letter in await shop.opened.letters()}
        await done(shop, "retry", "--group", group.id, "--detach", "--yes")
        await shop.opened.send("orders", *({"order_id": each, "customer": "ann"} for each in range(100, 104)))
        await until(lambda: shop.count(Status.PENDING, at_least=10))
        assert len(await shop.opened.store.groups()) == 1
        shop.charged.clear()
        shop.outcome = all_is_well

        await carried_out(shop)

        await until(lambda: shop.count(Status.RESOLVED, at_least=6))
        await all_is_handled(shop)
        assert {message.id for message in shop.charged} == asked_for
        assert await shop.count(Status.PENDING) == 4


async def test_trap_12_of_an_edited_letter_only_the_edited_one_is_ever_sent(small_shop: GatedShop) -> None:
    """Nor does one who takes over from a process that was killed send the original."""
    shop = small_shop
    async with shop.with_dead_orders(3):
        shop.outcome = all_is_well
        edit = (*ORDERS, "--set", "customer=bob", "--reason", "wrong name")

        killed = await shop.redrive(*edit, REDRIVE_FAULTS="engine.sent=kill9")

        assert killed.returncode == -9
        await until(lambda: shop.count(Status.RESOLVED, at_least=3))
        [run] = await shop.runs()
        assert (await carried_out_later(shop, run["id"])).status is RunStatus.DONE
        await all_is_handled(shop)
        assert {each["customer"] for each in shop.payloads(shop.charged)} == {"bob"}
        assert len(_copies(shop)) == 3
        assert [letter.revision for letter in await shop.opened.letters()] == [1] * 3


async def test_trap_12_an_edit_that_is_taken_over_unsent_is_sent_once_as_edited(shop: GatedShop) -> None:
    async with shop.with_dead_orders(3):
        shop.outcome = all_is_well
        edit = (*ORDERS, "--set", "customer=bob", "--reason", "wrong name")
        assert (await shop.redrive(*edit, REDRIVE_FAULTS="engine.taken=kill9")).returncode == -9
        [run] = await shop.runs()

        assert (await carried_out_later(shop, run["id"])).status is RunStatus.DONE

        await until(lambda: shop.count(Status.RESOLVED, at_least=3))
        await all_is_handled(shop)
        assert [each["customer"] for each in shop.payloads(shop.charged)] == ["bob"] * 3
        assert [letter.revision for letter in await shop.opened.letters()] == [1] * 3


async def test_trap_13_a_second_edit_is_applied_or_refused_aloud(small_shop: GatedShop) -> None:
    shop = small_shop
    async with shop.with_dead_orders(1):
        [letter_id] = await letter_ids(shop)
        await done(shop, *ORDERS, "--set", "customer=bob", "--reason", "wrong name")
        await until(lambda: shop.count(Status.PENDING, at_least=1) if shop.charged else False)
        shop.outcome = all_is_well

        await done(shop, *ORDERS, "--set", "customer=carol", "--reason", "wrong again")

        await until(lambda: shop.count(Status.RESOLVED, at_least=1))
        assert [each["customer"] for each in shop.payloads(shop.charged)] == ["bob", "carol"]
        file = shop.desk.folder / "dave.json"
        file.write_text('{"order_id": 0, "customer": "dave"}')
        third = await shop.redrive(
            "edit", letter_id, "--from", str(file), "--reason", "too late", "--retry", "--yes"
        )
        assert (third.returncode, "RESOLVED" in third.stderr) == (5, True)
        await all_is_handled(shop)
        assert len(shop.charged) == 2
        [letter] = await shop.opened.letters()
        assert letter.revision == 2


async def test_trap_14_what_was_edited_is_confirmed_like_everything_else(small_shop: GatedShop) -> None:
    shop = small_shop
    async with shop.with_dead_orders(3):
        shop.outcome = all_is_well
        edit = ("--set", "customer=bob", "--set-header", "tenant=acme", "--to", "orders")

        await done(shop, *ORDERS, *edit, "--reason", "wrong name")

        await until(lambda: shop.count(Status.RESOLVED, at_least=3))
        assert [letter.how for letter in await shop.opened.letters()] == ["confirmed"] * 3
        assert (await shop.report())["summary"] == (
            "3 sent, 3 confirmed, 0 came back with the same group, 0 with a new one, 0 without word"
        )


async def test_trap_15_all_means_all_that_match_and_nothing_else(small_shop: GatedShop) -> None:
    """More of them than a list shows on one page."""
    shop = small_shop
    async with shop.with_dead_orders(60):
        others = [
            (await shop.opened.store.record(dead(an_order(900 + each), error=TimeoutError("slow"))))[0]
            for each in range(3)
        ]
        shop.outcome = all_is_well

        await done(shop, "retry", "--where", "queue:orders type:ValueError", "--yes")

        await until(lambda: shop.count(Status.RESOLVED, at_least=60))
        await all_is_handled(shop)
        assert {each["order_id"] for each in shop.payloads(shop.charged)} == {*range(60)}
        left = [letter.id for letter in await shop.opened.letters(status=Status.PENDING)]
        assert sorted(left) == sorted(others)
        listed = await done(shop, "list", "--where", "type:TimeoutError", "--limit", "2", "--output", "jsonl")
        ids = [each for each in others if each in listed]
        await done(shop, "discard", *ids, "--reason", "test orders", "--yes")
        assert (len(ids), await shop.count(Status.DISCARDED), await shop.count(Status.PENDING)) == (2, 2, 1)


async def test_trap_16_a_letter_that_cannot_be_made_ready_holds_up_neither_its_run_nor_later_ones(
    shop: GatedShop,
) -> None:
    """An edit that does not fit it, or somebody who has purged it meanwhile."""
    async with shop.with_dead_orders(3):
        poison, _ = await shop.opened.store.record(dead(foreign(b"\xff not JSON")))
        gone, _ = await shop.opened.store.record(dead(an_order(50)))
        shop.outcome = all_is_well
        edit = ("--set", "customer=bob", "--reason", "wrong name")
        chosen = [*await letter_ids(shop)]
        await done(shop, "retry", *chosen, *edit, "--detach", "--yes")
        await done(shop, "discard", gone, "--reason", "a test order", "--yes")
        await done(shop, "purge", gone, "--reason", "a test order", "--yes")

        await carried_out(shop)

        await until(lambda: shop.count(Status.RESOLVED, at_least=3))
        report = await shop.report()
        assert (report["status"], report["sent"], report["passed_over"]) == ("DONE", 3, 2)
        assert [letter.id for letter in await shop.opened.letters(status=Status.PENDING)] == [poison]
        await shop.opened.store.record(dead(an_order(51)))
        assert (await shop.redrive(*ORDERS, *edit)).returncode == 4
        await until(lambda: shop.count(Status.RESOLVED, at_least=4))


async def test_trap_17_a_letter_that_fails_again_is_the_same_letter_and_goes_once_each_time(
    small_shop: GatedShop,
) -> None:
    shop = small_shop
    async with shop.with_dead_orders(4):
        before = {letter.id: letter.message.id for letter in await shop.opened.letters()}
        for times in (1, 2):
            await done(shop, *ORDERS, "--pause-when-back", "never")
            await until(lambda number=4 * times: len(shop.charged) >= number)  # type: ignore[misc]  # a number
            await until(lambda: shop.count(Status.PENDING, at_least=4))
            await all_is_handled(shop)
            after = {letter.id: letter.message.id for letter in await shop.opened.letters()}
            assert after == before
            assert _copies(shop) == dict.fromkeys(before.values(), times)
        assert {letter.generation for letter in await shop.opened.letters()} == {3}


@pytest.mark.parametrize("counted_before", [0, 9], ids=["ours", "counted by others"])
async def test_trap_18_a_letter_that_had_used_up_its_attempts_has_all_of_them_again(
    tmp_path: Path, counted_before: int
) -> None:
    """Also if its own envelope says that others have tried often enough."""
    app, tried = App("shop", retry=Retry(3, ["10ms"])), list[int]()

    @app.handler("orders")
    async def charge(message: Message) -> None:
        tried.append(message.retry_count)
        if len(tried) < 6:
            raise TimeoutError("the bank does not answer")

    async with workshop(app, tmp_path) as opened:
        order = an_order(1).with_failure("slow", "504", "", retry_count=counted_before)
        await opened.send_foreign("orders", order.to_json())
        await until(lambda: opened.letters(status=Status.PENDING))
        desk = Actions(store=opened.store, transport=opened.transport, clock=opened.clock, who=local("ann"))
        planned = await desk.plan_run(RunPlan(selection=LetterQuery(queue="orders")))
        run = await desk.create_run(planned)

        await desk.carry_out(run.id)

        await until(lambda: opened.letters(status=Status.RESOLVED))
        assert tried[3:] == [0, 1, 2], tried


def _copies(shop: RunShop) -> Counter[str]:
    """How often the handler has had each message."""
    return Counter(message.id for message in shop.charged)
