"""S0's and S2's TTL: a recorded discard that can be taken back, for queues that ask for it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from redrive import App
from redrive.access import local
from redrive.actions import Actions
from redrive.dead_letter import Status
from redrive.testing import ManualClock
from redrive.testing.letters import an_entry
from redrive.upkeep.clock_note import ClockNote
from redrive.upkeep.expiry import LOOK_EVERY, expire
from support.patience import until
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.stores import Store

HOUR, DAY = 3600.0, 86400.0


def shop_app() -> App:
    app = App("shop")

    @app.handler("orders")
    def charge(_order: dict[str, int]) -> None:
        raise ValueError("no customer")

    @app.handler("payments")
    def pay(_payment: dict[str, int]) -> None:
        raise ValueError("no customer")

    return app


def desk(shop: Workshop) -> Actions:
    return Actions(store=shop.store, transport=shop.transport, clock=shop.clock, who=local("ana"))


async def test_letters_older_than_their_queue_allows_are_discarded_with_a_line_of_history(tmp_path: Path) -> None:
    clock = ManualClock()
    queues = {"orders": {"dead_letters": {"expire_after": "24h"}}}  # S2's DeadLetterTtlHours
    async with workshop(shop_app(), tmp_path, clock=clock, queues_settings=queues) as shop:
        await ClockNote(cast("Store", shop.store), clock).check(keep=DAY, is_right=True)
        await shop.send("orders", {"number": 1})
        await shop.send("payments", {"number": 2})
        await until(lambda: _count(shop, Status.PENDING, 2))
        clock.advance(23 * HOUR)
        await shop.send("orders", {"number": 3})
        await until(lambda: _count(shop, Status.PENDING, 3))

        clock.advance(2 * HOUR)
        await until(lambda: _looked(shop, clock))

        [expired] = await shop.letters(status=Status.DISCARDED)
        assert (expired.queue, expired.how, expired.message.data) == ("orders", "expired", {"number": 1})
        line = expired.history[-1]
        assert (line.by, line.before, line.after) == ("expiry", "PENDING", "DISCARDED")
        assert line.reason == "older than 1d"
        assert expired.message.body  # nothing is deleted
        left = await shop.letters(status=Status.PENDING)
        assert {letter.message.data["number"] for letter in left} == {2, 3}


async def _looked(shop: Workshop, clock: ManualClock) -> bool:
    clock.advance(LOOK_EVERY)  # it may have been looking when the time came
    return await _count(shop, Status.DISCARDED, 1)


async def _count(shop: Workshop, status: Status, wanted: int) -> bool:
    return len(await shop.letters(status=status)) == wanted


async def test_an_expired_letter_that_a_person_restores_is_not_expired_again_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    async with workshop(shop_app(), tmp_path, clock=clock) as shop:
        await shop.send("orders", {"number": 1})
        [letter] = await until(shop.letters)
        clock.advance(2 * DAY)
        assert await expire(shop.store, "orders", older_than=DAY, now=clock.now()) == 1

        await desk(shop).restore([letter.id], "we need it after all")

        clock.advance(HOUR)
        assert await expire(shop.store, "orders", older_than=DAY, now=clock.now()) == 0
        clock.advance(DAY)
        assert await expire(shop.store, "orders", older_than=DAY, now=clock.now()) == 1


async def test_only_pending_letters_expire(tmp_path: Path) -> None:
    clock = ManualClock()
    async with workshop(shop_app(), tmp_path, clock=clock, start=False) as shop:
        ids = [(await shop.store.record(an_entry(at=clock.now())))[0] for _ in range(4)]
        await desk(shop).resolve([ids[0]], "done by hand")
        await desk(shop).quarantine([ids[1]], "strange")
        await shop.store.claim([ids[2]], owner="ana", lease=60)
        clock.advance(2 * DAY)

        assert await expire(shop.store, "orders", older_than=DAY, now=clock.now()) == 1

        statuses = {letter.id: letter.status for letter in await shop.letters()}
        assert [statuses[each] for each in ids] == [
            Status.RESOLVED,
            Status.QUARANTINED,
            Status.REDRIVING,
            Status.DISCARDED,
        ]


async def test_more_letters_than_a_page_holds_expire_in_one_go(tmp_path: Path) -> None:
    clock = ManualClock()
    async with workshop(shop_app(), tmp_path, clock=clock, start=False) as shop:
        old = clock.now() - timedelta(days=3)
        await asyncio.gather(*(shop.store.record(an_entry(at=old)) for _ in range(1203)))
        clock.advance(2 * DAY)

        assert await expire(shop.store, "orders", older_than=DAY, now=clock.now()) == 1203
        assert (await shop.store.statistics()).by_status["PENDING"] == 0
