"""`redrive reprocess` where a store is there: its letters are a run like any other, and what halts that keeps back
what lies in the broker's queue.
"""

from __future__ import annotations

import asyncio
import json
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from redrive.access import local
from redrive.actions import Actions
from redrive.clock import SystemClock
from redrive.dead_letter import Status, Transition
from redrive.errors import Unreachable
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.run import RunChange, RunStatus, Settled
from redrive.run_policy import RunPolicy
from redrive.testing.clock import ManualClock
from redrive.testing.store_case import ENGINE
from redrive.testing.store_runs import take
from redrive.transports import Names
from redrive.transports.embedded import EmbeddedTransport
from support.dead_letters import an_order, dead, foreign
from support.desk import Desk, take_all
from support.patience import until
from support.run_shop import RunShop, all_is_well

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.stores import DeadLetterStore

REPROCESS = ("reprocess", "--queue", "orders_dlq", "--yes")


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("postgres_store_url")
    return url


@pytest.fixture
def desk(tmp_path: Path, store_url: str | None) -> Desk:
    return Desk(tmp_path, store_url=store_url)


def settings(desk: Desk, text: str) -> None:
    with (desk.folder / "redrive.toml").open("a") as file:
        file.write(text)


def orders(desk: Desk, number: int) -> list[str]:
    return desk.record(*(dead(an_order(each)) for each in range(number)))


def runs(desk: Desk) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(desk.redrive("runs", "list", "--output", "json").out)
    return listed


def test_the_pending_letters_are_a_run_that_can_be_looked_at_afterwards(desk: Desk) -> None:
    ids = orders(desk, 4)
    desk.record(dead(queue="mail"))
    desk.send("orders_dlq", [an_order(9)])

    ended = desk.redrive(*REPROCESS, account="ann")

    assert ended.code == 0, ended.err
    assert ended.out == "Reprocessed 5 messages: 1 from the queue orders_dlq, 4 from the store\n"
    [run] = runs(desk)
    assert (run["status"], run["sent"], run["selection"], run["at_most"]) == ("DONE", 4, "queue:orders", 4)
    assert (run["requested_by"].split()[0], run["reason"]) == ("ann", "reprocess orders_dlq")
    assert f"`redrive runs show {run['id']}` tells what becomes of its letters" in ended.err
    told = json.loads(desk.redrive("runs", "show", run["id"], "--letters", "--output", "json").out)
    assert sorted(each["letter_id"] for each in told) == sorted(ids)
    assert len(desk.take("orders")) == 5


def test_without_pending_letters_there_is_no_run(desk: Desk) -> None:
    desk.record(dead(queue="mail"))
    desk.send("orders_dlq", [an_order()])

    ended = desk.redrive(*REPROCESS)

    assert (ended.code, ended.err) == (0, "")
    assert runs(desk) == []


def test_a_limit_counts_the_queue_first_and_bounds_the_run(desk: Desk) -> None:
    orders(desk, 4)
    desk.send("orders_dlq", [an_order(number) for number in range(2)])

    ended = desk.redrive(*REPROCESS, "--limit", "3")

    assert ended.out == "Reprocessed 3 messages: 2 from the queue orders_dlq, 1 from the store\n"
    assert [run["total"] for run in runs(desk)] == [1]


def test_what_needs_an_approval_waits_for_it_and_so_does_the_queue(desk: Desk) -> None:
    settings(desk, "[approval]\nmore_than = 2\n")
    ids = orders(desk, 3)
    desk.send("orders_dlq", [an_order(9)])

    ended = desk.redrive(*REPROCESS, account="ann")

    [run] = runs(desk)
    assert (ended.code, ended.out) == (5, "")
    assert f"redrive runs approve {run['id']}" in ended.err
    assert "What lies in orders_dlq waits with it" in ended.err
    assert desk.take("orders") == []
    assert {desk.letter(each).status for each in ids} == {Status.PENDING}

    assert desk.redrive("runs", "approve", run["id"], "--as", "bob", "--yes").code == 0
    assert desk.redrive("runs", "resume", run["id"]).out == "Sent 3 letters back.\n"
    assert desk.redrive(*REPROCESS).out == (
        "Reprocessed 1 message: 1 from the queue orders_dlq, 0 from the store\n"
    )
    assert len(desk.take("orders")) == 4


def test_a_letter_that_the_broker_refuses_is_told_and_does_not_keep_back_the_rest(desk: Desk) -> None:
    [refused] = desk.record(dead(foreign(b"x", queue="bad\x07name"), queue="bad\x07name"))

    ended = desk.redrive("reprocess", "--queue", "bad\x07name_dlq", "--yes")

    assert ended.code == 1
    assert ended.out.startswith("Reprocessed 0 messages")
    assert f"letter {refused}: refused" in ended.err
    assert desk.letter(refused).status is Status.PENDING


async def test_one_pace_for_letters_and_queue_within_the_ceiling(desk: Desk) -> None:
    store: Any = desk.store()
    transport, clock = desk.transport(), ManualClock()
    await store.record_together([dead(an_order(number)) for number in range(2)])
    for number in range(2):
        await transport.send(an_order(number), queue="orders_dlq")
    policy = RunPolicy(ceilings={"orders": 0.5})
    actions = Actions(store=store, transport=transport, clock=clock, who=local("somebody"), policy=policy)
    selection = await actions.select_dead("orders_dlq")

    run = await actions.begin_reprocessing(selection, rate=10)
    assert run is not None
    assert (run.plan.rate, run.plan.ceilings) == (0.5, {"orders": 0.5})
    sent = [Settled(claim, Transition.SENT) for claim in (await take(store, run.id)).claims]
    await store.settle_together(sent, by=ENGINE)
    run = await store.change_run(run.id, RunChange.FINISH, by=ENGINE)
    ending = asyncio.create_task(actions.end_reprocessing(selection, run, rate=10))

    async def arrived(number: int) -> bool:
        depth = (await transport.depths(("orders",))).get("orders")
        return (0 if depth is None else depth.ready) == number

    for number in range(2):  # none at once: the run's last letter has just gone
        await until(lambda: clock.sleeping)
        await until(partial(arrived, number))
        clock.advance(2)
    assert (await ending).queue.sent == 2
    await transport.close()
    await store.close()


class Failing(EmbeddedTransport):
    """Has no answer for whatever goes to `orders`."""

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        if queue == "orders":
            raise Unreachable("the broker is away")
        await super().send(message, queue=queue, delay=delay, trail=trail)


async def test_a_run_that_its_brakes_pause_keeps_back_the_queue(desk: Desk) -> None:
    store: Any = desk.store()
    transport = Failing(f"embedded:///{desk.folder}/redrive-broker.db", names=Names())
    await store.record_together([dead(an_order(number)) for number in range(6)])
    await transport.send(an_order(9), queue="orders_dlq")
    actions = Actions(store=store, transport=transport, clock=SystemClock(), who=local("somebody"))

    done = await actions.reprocess("orders_dlq")

    assert done.run is not None
    assert (done.halted, done.run.status, done.total) == (True, RunStatus.PAUSED, 0)
    assert len(await take_all(transport, "orders_dlq")) == 1
    await transport.close()
    await store.close()


async def test_letters_that_die_while_it_works_are_left_to_the_next_command(desk: Desk) -> None:
    store: Any = desk.store()
    transport = desk.transport()
    await store.record_together([dead(an_order(number)) for number in range(3)])
    actions = Actions(store=store, transport=transport, clock=SystemClock(), who=local("somebody"))
    selection = await actions.select_dead("orders_dlq")
    await store.record(dead(an_order(7)))

    done = await actions.reprocess(selection)

    assert done.from_store == 3
    assert (await store.count(LetterQuery(status=Status.PENDING))).number == 1
    await transport.close()
    await store.close()


async def test_ctrl_c_pauses_the_run_and_nothing_of_the_queue_is_sent(
    tmp_path: Path, store_url: str | None
) -> None:
    shop = RunShop(tmp_path, store_url=store_url)
    async with shop.with_dead_orders(60):
        shop.outcome = all_is_well
        await shop.opened.transport.send(an_order(99), queue="orders_dlq")
        running = await shop.started(*REPROCESS, "--rate", "20")
        await until(lambda: shop.sent(at_least=1))

        running.send_signal(signal.SIGINT)
        _, err = await running.communicate()

        assert running.returncode == 130, err
        assert "1 in orders_dlq were not tried" in err
        [run] = await shop.runs()
        assert run["status"] == "PAUSED"
        assert (await shop.redrive("runs", "resume", run["id"])).returncode == 0
        await until(lambda: shop.count(Status.RESOLVED, at_least=60))
        assert (await shop.redrive(*REPROCESS)).stdout.startswith("Reprocessed 1 message: 1 from the queue")


async def test_engines_take_their_share_of_it(tmp_path: Path, store_url: str | None) -> None:
    shop = RunShop(tmp_path, store_url=store_url)
    async with shop.with_dead_orders(80):
        shop.outcome = all_is_well
        engine = await shop.started("engine")

        ended = await shop.redrive(*REPROCESS, "--rate", "200")

        assert ended.returncode == 0, ended.stderr
        assert ended.stdout == "Reprocessed 80 messages: 0 from the queue orders_dlq, 80 from the store\n"
        await until(lambda: shop.count(Status.RESOLVED, at_least=80))
        assert await engine.stop() == 0
        assert len({message.id for message in shop.charged}) == len(shop.charged) == 80


def test_letters_whose_process_died_are_finished(desk: Desk) -> None:
    ids = orders(desk, 2)

    async def left(store: DeadLetterStore, _transport: object) -> None:
        await store.claim(ids, owner="a process that died", lease=0.0)

    desk.do(left)
    [pending] = orders(desk, 1)

    ended = desk.redrive(*REPROCESS)

    assert (ended.code, ended.out) == (
        0,
        "Reprocessed 3 messages: 0 from the queue orders_dlq, 3 from the store\n",
    )
    assert {desk.letter(each).status for each in (*ids, pending)} == {Status.REDRIVEN}
    assert [run["total"] for run in runs(desk)] == [1]
