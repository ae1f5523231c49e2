"""Queues with `ordered_by`: the messages of a key stay in their order, also when one of them is dead."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from redrive import Retry
from redrive.dead_letter import Actor, Status, Transition
from redrive.errors import PublishRefused, Unreachable
from redrive.run import RunStatus
from support.ordered_shop import OrderedShop
from support.patience import until

if TYPE_CHECKING:
    from pathlib import Path

    from redrive import Message
    from redrive.transports import Transport


@pytest.fixture(params=["sqlite and embedded", "postgresql and rabbitmq"])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "sqlite and embedded":
        return {}
    return {
        "store_url": request.getfixturevalue("postgres_store_url"),
        "broker_url": request.getfixturevalue("rabbitmq_url"),
    }


async def test_what_comes_behind_a_dead_message_of_its_key_is_parked_and_all_else_flows(
    tmp_path: Path, where: dict[str, Any]
) -> None:
    shop = OrderedShop(tmp_path, **where)
    shop.fails = lambda step: step == ("ann", 1)
    async with shop.at_work():
        await shop.send(("ann", 1), ("bob", 1), ("ann", 2), ("ann", 3), ("bob", 2))
        await until(lambda: _number(shop, 3))
        await shop.idle()

        assert sorted(shop.tried) == [("ann", 1), ("bob", 1), ("bob", 2)]
        assert shop.of("bob") == [1, 2]
        letters = await shop.letters(Status.PENDING)
        dead = letters["ann", 1]
        assert [letters["ann", each].blocked_by for each in (1, 2, 3)] == [None, dead.id, dead.id]
        assert letters["ann", 2].type == "redrive.ordering.ParkedBehind"
        assert letters["ann", 2].group_id == letters["ann", 3].group_id != dead.group_id


async def test_a_run_sends_them_in_order_and_releases_the_key(tmp_path: Path, where: dict[str, Any]) -> None:
    shop = OrderedShop(tmp_path, **where)
    shop.fails = lambda step: step[1] == 1
    async with shop.at_work():
        await shop.send(*((name, number) for number in (1, 2, 3, 4) for name in ("ann", "bob", "cid")))
        await until(lambda: _number(shop, 12))
        shop.fails = lambda _: False

        run = await shop.run()

        await until(lambda: _number(shop, 12, Status.RESOLVED))
        assert (run.status, run.progress.sent) == (RunStatus.DONE, 12)
        assert [shop.of(name) for name in ("ann", "bob", "cid")] == [[1, 2, 3, 4]] * 3
        await shop.send(("ann", 5))  # the key is free
        await until(lambda: shop.of("ann") == [1, 2, 3, 4, 5])


async def test_a_run_of_the_dead_one_alone_takes_along_what_is_parked_behind_it_also_meanwhile(
    tmp_path: Path,
) -> None:
    shop = OrderedShop(tmp_path)
    shop.fails = lambda step: step == ("ann", 1)
    async with shop.at_work():
        await shop.send(("ann", 1), ("ann", 2))
        await until(lambda: _number(shop, 2))
        shop.fails = lambda _: False
        dead = (await shop.letters())["ann", 1]
        run = await shop.begun(selection={"ids": (dead.id,)})
        await shop.send(("ann", 3))  # parked after the run was made
        await until(lambda: _number(shop, 3))

        ended = await shop.engine().carry_out(run.id)

        assert (ended.status, shop.of("ann")) == (RunStatus.DONE, [1, 2, 3])
        await until(lambda: _number(shop, 3, Status.RESOLVED))


async def test_one_that_comes_back_keeps_those_behind_it_and_the_run_says_so(
    tmp_path: Path, where: dict[str, Any]
) -> None:
    shop = OrderedShop(tmp_path, **where)
    shop.fails = lambda step: step == ("ann", 1)
    async with shop.at_work():
        await shop.send(("ann", 1), ("ann", 2), ("ann", 3))
        await until(lambda: _number(shop, 3))

        run = await shop.run(selection={})

        assert run.status is RunStatus.DONE
        assert shop.charged == []
        told = await shop.outcomes(run)
        assert told["ann", 1] == "came back"
        assert {told["ann", 2], told["ann", 3]} <= {"blocked", "came back"}
        letters = await shop.letters(Status.PENDING)
        assert [letters["ann", each].generation for each in (1, 2, 3)] == [2, 1, 1]
        assert letters["ann", 3].blocked_by == letters["ann", 1].id


async def test_a_letter_that_is_not_first_is_not_sent_and_the_outcome_tells_why(tmp_path: Path) -> None:
    shop = OrderedShop(tmp_path)
    shop.fails = lambda step: step == ("ann", 1)
    async with shop.at_work():
        await shop.send(("ann", 1), ("ann", 2))
        await until(lambda: _number(shop, 2))
        parked = (await shop.letters())["ann", 2]

        run = await shop.run(selection={"ids": (parked.id,)})

        assert (run.status, run.progress.sent, run.progress.passed_over) == (RunStatus.DONE, 0, 1)
        assert await shop.outcomes(run) == {("ann", 2): "blocked"}
        assert shop.tried == [("ann", 1)]


async def test_one_that_is_sent_out_of_turn_goes_back_behind_and_has_lost_nothing(tmp_path: Path) -> None:
    shop = OrderedShop(tmp_path)
    shop.fails = lambda step: step == ("ann", 1)
    async with shop.at_work():
        await shop.send(("ann", 1), ("ann", 2))
        await until(lambda: _number(shop, 2))
        parked = (await shop.letters())["ann", 2]

        await shop.workshop.redrive(parked)  # past the run's order

        await until(lambda: _number(shop, 2, Status.PENDING))
        await shop.idle()
        again = (await shop.letters())["ann", 2]
        assert (again.generation, again.status, again.group_id) == (1, Status.PENDING, parked.group_id)
        assert again.history[-1].reason == "not tried: an earlier letter of its key is open"
        assert shop.charged == []


async def test_a_quarantined_one_keeps_its_key_and_a_run_that_may_take_it_frees_it(tmp_path: Path) -> None:
    shop = OrderedShop(tmp_path)
    shop.fails = lambda step: step == ("ann", 1)
    async with shop.at_work():
        await shop.send(("ann", 1), ("ann", 2))
        await until(lambda: _number(shop, 2))
        dead = (await shop.letters())["ann", 1]
        await shop.store.change([dead.id], Transition.QUARANTINE, by=Actor("ann", "looks bad"))
        shop.fails = lambda _: False

        without = await shop.run()
        assert (without.progress.sent, await shop.outcomes(without)) == (0, {("ann", 2): "blocked"})

        await shop.run(quarantined=True, reason="looked at")
        await until(lambda: shop.of("ann") == [1, 2])


async def test_when_the_dead_one_is_discarded_a_run_sends_the_others(tmp_path: Path) -> None:
    shop = OrderedShop(tmp_path)
    shop.fails = lambda step: step == ("ann", 1)
    async with shop.at_work():
        await shop.send(("ann", 1), ("ann", 2), ("ann", 3))
        await until(lambda: _number(shop, 3))
        dead = (await shop.letters())["ann", 1]
        await shop.store.change([dead.id], Transition.DISCARD, by=Actor("ann", "no use"))

        assert (await shop.letters())["ann", 2].blocked_by is None
        await shop.run()

        await until(lambda: shop.of("ann") == [2, 3])


async def test_a_message_that_is_tried_again_later_keeps_its_place_and_no_other_key_waits(
    tmp_path: Path, where: dict[str, Any]
) -> None:
    shop = OrderedShop(tmp_path, retry=Retry(50, "50ms"), **where)
    shop.error = TimeoutError("slow")
    well = asyncio.Event()
    shop.fails = lambda step: step == ("ann", 1) and not well.is_set()
    async with shop.at_work(queue={"concurrency": 1}):
        await shop.send(("ann", 1), ("ann", 2), *(("bob", each) for each in range(20)), ("ann", 3))
        await until(lambda: shop.of("bob") == list(range(20)))
        await until(lambda: shop.tried.count(("ann", 1)) >= 2)
        assert shop.of("ann") == []
        well.set()

        await until(lambda: shop.of("ann") == [1, 2, 3])
        await shop.idle()
        assert await shop.letters() == {}


async def test_when_it_is_exhausted_its_attempts_are_told_and_the_next_ones_are_parked(tmp_path: Path) -> None:
    shop = OrderedShop(tmp_path, retry=Retry(3, "10ms"))
    shop.error = TimeoutError("slow")
    shop.fails = lambda step: step == ("ann", 1)
    async with shop.at_work():
        await shop.send(("ann", 1), ("ann", 2))
        await until(lambda: _number(shop, 2))

        letters = await shop.letters()
        assert [failure.attempt for failure in letters["ann", 1].failures] == [1, 2, 3]
        assert shop.tried == [("ann", 1)] * 3


async def test_a_stop_gives_back_what_waits_and_the_next_worker_keeps_the_order(tmp_path: Path) -> None:
    shop = OrderedShop(tmp_path, retry=Retry(5, "5m"))
    shop.error = TimeoutError("slow")
    shop.fails = lambda step: step == ("ann", 1)
    async with shop.at_work(worker={"grace": "1h"}):
        await shop.send(("ann", 1), ("ann", 2), ("ann", 3))
        await until(lambda: shop.tried == [("ann", 1)])

        shop.workshop.worker.stop()  # once: with all its grace
        assert shop.workshop.running is not None
        await shop.workshop.running
        shop.workshop.running = None
        assert (await shop.workshop.depth("orders")).ready == 3
    again = OrderedShop(tmp_path)
    async with again.at_work():
        await until(lambda: again.of("ann") == [1, 2, 3])


async def test_messages_without_a_key_are_in_no_order(tmp_path: Path) -> None:
    shop = OrderedShop(tmp_path)
    shop.fails = lambda step: step[1] == 1
    async with shop.at_work():
        for number in (1, 2):
            body = b'{"customer": "ann", "number": %d}' % number
            await shop.workshop.send_foreign("orders", body)
        await until(lambda: shop.of("ann") == [2])
        await until(lambda: _number(shop, 1))
        assert (await shop.letters())["ann", 1].lane is None


async def test_a_header_can_be_what_the_order_goes_by(tmp_path: Path) -> None:
    shop = OrderedShop(tmp_path)
    shop.fails = lambda step: step[1] == 1
    async with shop.at_work(queue={"ordered_by": "header:tenant"}):
        for number, tenant in ((1, "north"), (2, "south"), (3, "north")):
            body = b'{"customer": "ann", "number": %d}' % number
            await shop.workshop.send_foreign("orders", body, headers=(("tenant", tenant),))
        await until(lambda: _number(shop, 2))
        await shop.idle()
        assert shop.of("ann") == [2]


async def test_several_engines_keep_the_order_of_many_keys(tmp_path: Path, where: dict[str, Any]) -> None:
    shop = OrderedShop(tmp_path, **where)
    names = [f"customer {each}" for each in range(20)]
    shop.fails = lambda step: step[1] == 0
    async with shop.at_work(queue={"concurrency": 8}):
        await shop.send(*((name, number) for number in range(8) for name in names))
        await until(lambda: _number(shop, 160))
        shop.fails = lambda _: False
        run = await shop.begun()

        await asyncio.gather(*(shop.engine(f"engine {each}").carry_out(run.id) for each in range(3)))

        await until(lambda: _number(shop, 160, Status.RESOLVED))
        assert {name: shop.of(name) for name in names} == {name: list(range(8)) for name in names}


async def test_while_the_store_is_away_nothing_is_handled_and_then_all_of_it_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = OrderedShop(tmp_path)
    async with shop.at_work():
        there, asked = shop.store.ahead, asyncio.Event()

        async def away(*_: object, **__: object) -> None:
            asked.set()
            raise Unreachable("no store", remedy="wait")

        monkeypatch.setattr(shop.store, "ahead", away)
        await shop.send(("ann", 1), ("ann", 2), ("bob", 1))
        await asyncio.wait_for(asked.wait(), 30)
        await until(lambda: not shop.workshop.worker.ready)
        assert shop.tried == []

        monkeypatch.setattr(shop.store, "ahead", there)

        await until(lambda: (shop.of("ann"), shop.of("bob")) == ([1, 2], [1]))
        await until(lambda: shop.workshop.worker.ready)


async def test_a_confirmation_that_the_store_misses_is_made_again_or_the_key_would_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = OrderedShop(tmp_path)
    shop.fails = lambda _: True
    async with shop.at_work():
        await shop.send(("ann", 1), ("ann", 2))
        await until(lambda: _number(shop, 2))
        shop.fails = lambda _: False
        there, times = shop.store.confirm, []

        async def once_away(*given: Any, **how: Any) -> bool:
            times.append(given)
            if len(times) == 1:
                raise Unreachable("no store", remedy="wait")
            return await there(*given, **how)

        monkeypatch.setattr(shop.store, "confirm", once_away)

        await shop.run()

        await until(lambda: _number(shop, 2, Status.RESOLVED))
        assert shop.of("ann") == [1, 2]


class Refusing:
    """A broker that will not have the first order just now, once; all others at once."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.sent: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def send(self, message: Message, *, queue: str) -> None:
        number = json.loads(message.payload or b"")["number"]
        self.sent.append(number)
        if self.sent == [1]:
            await asyncio.sleep(0)  # the others could go meanwhile
            raise PublishRefused("not now", permanent=False)
        await self._transport.send(message, queue=queue)


async def test_what_is_claimed_together_is_not_sent_past_one_that_the_broker_will_not_have_now(
    tmp_path: Path,
) -> None:
    shop = OrderedShop(tmp_path)
    shop.fails = lambda _: True
    async with shop.at_work():
        await shop.send(("ann", 1), ("ann", 2), ("ann", 3))
        await until(lambda: _number(shop, 3))
        shop.fails = lambda _: False
        moody = Refusing(shop.workshop.transport)
        run = await shop.begun()

        ended = await shop.engine(transport=cast("Transport", moody)).carry_out(run.id)

        assert moody.sent == [1, 1, 2, 3]
        await until(lambda: _number(shop, 3, Status.RESOLVED))
        assert (ended.status, shop.of("ann")) == (RunStatus.DONE, [1, 2, 3])


async def _number(shop: OrderedShop, number: int, status: Status | None = None) -> bool:
    return len(await shop.letters(status)) == number
