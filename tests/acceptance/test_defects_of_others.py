"""R1 to R8: defects of other tools that put messages back, each under its number, with a real worker; on both
stores where the store decides.

The numbers with a hash are those of ServiceControl's issues.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from redrive.clock import new_id
from redrive.dead_letter import Status
from redrive.message import Message
from support.dead_letters import an_order, dead
from support.patience import until
from support.run_shop import RunShop, all_is_well, no_such_customer
from support.shop_desk import ByteShop, GatedShop, all_is_handled, carried_out, done, letter_ids

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("postgres_store_url")
    return url


@pytest.fixture
def shop(tmp_path: Path, store_url: str | None) -> RunShop:
    """On either store."""
    return RunShop(tmp_path, store_url=store_url)


@pytest.fixture
def small_shop(tmp_path: Path) -> RunShop:
    """On files."""
    return RunShop(tmp_path)


@pytest.fixture
def byte_shop(tmp_path: Path, store_url: str | None) -> ByteShop:
    return ByteShop(tmp_path, store_url=store_url)


async def test_r1_a_letter_that_is_retried_by_a_batch_and_singly_is_processed_once(shop: RunShop) -> None:
    """#4797."""
    async with shop.with_dead_orders(30):
        shop.outcome = all_is_well
        for chosen in (("--queue", "orders"), *([each] for each in (await letter_ids(shop))[::10])):
            await done(shop, "retry", *chosen, "--rate", "60", "--detach", "--yes")

        await carried_out(shop, engines=2)

        await until(lambda: shop.count(Status.RESOLVED, at_least=30))
        await all_is_handled(shop)
        assert len({message.id for message in shop.charged}) == len(shop.charged) == 30
        runs = await shop.runs()
        assert [(run["status"], run["total"]) for run in runs] == [*[("DONE", 1)] * 3, ("DONE", 30)]
        assert sum(run["sent"] for run in runs) == 30


async def test_r2_what_a_retry_brought_through_is_not_retried_unless_somebody_restores_it(shop: RunShop) -> None:
    """#178. Nor by a run that was made before it came through."""
    async with shop.with_dead_orders(2):
        shop.outcome = all_is_well
        first, second = await letter_ids(shop)
        await done(shop, "retry", first, second, "--detach", "--yes")
        await done(shop, "retry", first, "--yes")
        await until(lambda: shop.count(Status.RESOLVED, at_least=1))

        again = await shop.redrive("retry", first, "--yes")
        await carried_out(shop)

        assert (again.returncode, "restore it first" in again.stderr) == (5, True)
        await until(lambda: shop.count(Status.RESOLVED, at_least=2))
        await all_is_handled(shop)
        assert len(shop.charged) == 2
        assert {(run["status"], run["sent"]) for run in await shop.runs()} == {("DONE", 1)}

        assert (await shop.redrive("restore", first, "--yes")).returncode == 2
        await done(shop, "restore", first, "--reason", "the bank lost it", "--yes")
        await done(shop, "retry", first, "--yes")
        await until(lambda: len(shop.charged) == 3)


async def test_r3_a_letter_that_cannot_be_sent_holds_up_neither_its_batch_nor_later_ones(shop: RunShop) -> None:
    """#566."""
    nowhere = "orders\x07"
    async with shop.with_dead_orders(3):
        shop.outcome = all_is_well
        entry = dead(an_order(99, queue=nowhere), queue=nowhere, age=timedelta(hours=1))
        bad, _ = await shop.opened.store.record(entry)

        first = await shop.redrive("retry", "--where", "age:<2d", "--yes")

        assert (first.returncode, first.stdout.splitlines()[0]) == (4, "Sent 3 letters back."), first.stderr
        assert f"letter {bad}: refused" in first.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=3))

        await shop.opened.store.record(dead(an_order(4)))
        second = await shop.redrive("retry", "--where", "age:<2d", "--yes")

        assert (second.returncode, second.stdout.splitlines()[0]) == (4, "Sent 1 letter back."), second.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=4))
        assert [(run["status"], run["refused"]) for run in await shop.runs()] == [("DONE", 1)] * 2


async def test_r4_an_id_that_is_given_twice_breaks_nothing_and_is_sent_once(small_shop: RunShop) -> None:
    """#1577."""
    shop = small_shop
    async with shop.with_dead_orders(2):
        shop.outcome = all_is_well
        first, second = await letter_ids(shop)

        told = await done(shop, "retry", first, second, first, second[:30], first.upper(), "--yes")

        assert told.splitlines()[0] == "Sent 2 letters back."
        await until(lambda: shop.count(Status.RESOLVED, at_least=2))
        await all_is_handled(shop)
        assert len(shop.charged) == 2
        assert (await shop.report())["total"] == 2


HOSTILE_IDS = ("orders/17", "a%2Fb", "a b?c=d&e#f", "../../etc/passwd", "späti=;\\", '"><b>')


async def test_r5_a_body_is_never_lost_because_the_id_of_its_message_needs_encoding(byte_shop: ByteShop) -> None:
    """#1596."""
    shop = byte_shop
    async with shop.with_dead_orders(1):
        for each in HOSTILE_IDS:
            sent_at, body = shop.opened.clock.now(), f"body of {each}".encode()
            await shop.opened.transport.send(Message(id=each, queue="orders", body=body, sent_at=sent_at))
        await until(lambda: shop.count(Status.PENDING, at_least=1 + len(HOSTILE_IDS)))
        shop.charged.clear()
        shop.outcome = all_is_well

        await done(shop, "retry", "--queue", "orders", "--yes")

        await until(lambda: shop.count(Status.RESOLVED, at_least=1 + len(HOSTILE_IDS)))
        came = {message.id: message.body for message in shop.charged}
        assert {each: came.get(each) for each in HOSTILE_IDS} == {
            each: f"body of {each}".encode() for each in HOSTILE_IDS
        }
        [strange] = [each.id for each in await shop.opened.letters() if each.message.id == HOSTILE_IDS[2]]
        assert await done(shop, "show", strange, "--payload") == f"body of {HOSTILE_IDS[2]}"


async def test_r6_an_empty_body_and_no_body_are_two_things_and_both_go_back(byte_shop: ByteShop) -> None:
    """#485."""
    shop = byte_shop
    async with shop.with_dead_orders(1):
        empty, missing = [(await shop.opened.send_foreign("orders", body)).id for body in (b"", None)]
        await until(lambda: shop.count(Status.PENDING, at_least=3))
        shop.charged.clear()
        shop.outcome = all_is_well

        await done(shop, "retry", "--queue", "orders", "--yes")

        await until(lambda: shop.count(Status.RESOLVED, at_least=3))
        came = {message.id: message.body for message in shop.charged}
        assert (came[empty], came[missing]) == (b"", None)


async def test_r7_retention_takes_nothing_that_waits_or_is_on_its_way(
    tmp_path: Path, store_url: str | None
) -> None:
    """#2958."""
    shop = GatedShop(tmp_path, store_url=store_url)
    async with shop.with_dead_orders(4):
        shop.gate.clear()
        shop.outcome = all_is_well
        await done(shop, "retry", "--queue", "orders", "--limit", "2", "--yes")
        over, *_ = [each.id for each in await shop.opened.letters(status=Status.PENDING)]
        await done(shop, "discard", over, "--reason", "a test order", "--yes")

        told = await done(shop, "retention", "run", "--keep", "1ms", "--yes")

        assert over not in await letter_ids(shop), told
        assert (await shop.count(Status.PENDING), await shop.count(Status.REDRIVEN)) == (1, 2)
        shop.gate.set()
        await until(lambda: shop.count(Status.RESOLVED, at_least=2))
        summary = "2 sent, 2 confirmed, 0 came back with the same group, 0 with a new one, 0 without word"
        assert (await shop.report())["summary"] == summary
        await done(shop, "retention", "run", "--keep", "1ms", "--yes")
        assert await shop.count(Status.RESOLVED) == 0
        assert (await shop.report())["summary"] == summary  # what was retried is known when the letters are gone


async def test_r8_a_second_edit_and_retry_is_sent_like_the_first(small_shop: RunShop) -> None:
    """#4841."""
    shop = small_shop
    async with shop.with_dead_orders(1):
        [letter_id] = await letter_ids(shop)
        await _edited_and_retried(shop, letter_id, "bob")
        await until(lambda: shop.count(Status.PENDING, at_least=1))
        assert shop.outcome is no_such_customer
        shop.outcome = all_is_well

        await _edited_and_retried(shop, letter_id, "carol")

        await until(lambda: shop.count(Status.RESOLVED, at_least=1))
        assert [each["customer"] for each in shop.payloads(shop.charged)] == ["bob", "carol"]
        [letter] = await shop.opened.letters()
        assert [revision.number for revision in letter.revisions] == [0, 1, 2]


async def _edited_and_retried(shop: RunShop, letter_id: str, customer: str) -> None:
    file = shop.desk.folder / f"{new_id()}.json"
    file.write_text(f'{{"order_id": 0, "customer": "{customer}"}}')
    await done(shop, "edit", letter_id, "--from", str(file), "--reason", "wrong name", "--retry", "--yes")
