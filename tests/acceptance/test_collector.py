"""`redrive collect`: what others dead-lettered comes into the store, once, whatever dies meanwhile."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from redrive import App, faults
from redrive.access import local
from redrive.actions import Actions
from redrive.clock import SystemClock
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from redrive.message import ErrorNote
from redrive.testing.letters import NOON
from support.collecting import (
    collected,
    collector,
    hurry,
    in_queue,
    letters,
    opened,
    ready,
    rejected,
)
from support.dead_letters import an_order, foreign
from support.desk import Desk
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redrive.message import Message
    from redrive.stores import DeadLetterStore
    from redrive.transports import Delivery, Transport

POINTS = [point for point in faults.POINTS if point.startswith("collector.")]
SOON = {"REDRIVE_BROKER__LEASE": "200ms"}
"""What a killed process held is free again soon."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    hurry(monkeypatch)
    yield
    faults.arm("")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def in_envelope() -> Message:
    """As S3's consumer leaves it."""
    order = an_order()
    assert order.envelope is not None
    note = ErrorNote("Connection refused", "500", "PDOException...")
    told = msgspec.structs.replace(order.envelope, error=note, retry_count=3)
    return foreign(msgspec.json.encode(told), queue="orders_dlq")


# What comes in


def test_what_rabbitmq_dead_lettered_is_a_letter_of_the_queue_that_rejected_it(desk: Desk) -> None:
    message = rejected(b"\x00\xff")
    desk.send("limbo", [message])

    assert collected(desk, "limbo") == {
        "queue": "limbo",
        "new": 1,
        "again": 0,
        "came_back": 0,
        "quarantined": 0,
        "refused": 0,
    }

    [letter] = letters(desk)
    assert (letter.status, letter.queue, letter.handler) == (Status.PENDING, "orders", "unknown")
    assert (letter.type, letter.attempts) == ("rabbitmq.rejected", 2)
    assert (letter.first_attempt_at, letter.last_attempt_at) == (NOON, NOON)
    assert (letter.message.body, letter.message.headers) == (b"\x00\xff", message.headers)
    assert [(line.what, line.by) for line in letter.history] == [("recorded", "collector")]
    assert desk.take("limbo") == []


def test_s3s_envelope_keeps_its_error_and_goes_back_as_if_it_had_never_failed(desk: Desk) -> None:
    desk.send("orders_dlq", [in_envelope()])
    collected(desk, "orders_dlq")

    [letter] = letters(desk)
    assert (letter.queue, letter.type, letter.text, letter.attempts) == ("orders", "500", "Connection refused", 3)
    desk.redrive("retry", letter.id, "--yes")
    [delivery] = desk.take("orders")
    assert (delivery.message.error, delivery.message.retry_count) == (None, 0)


def test_what_nobody_understands_is_quarantined_with_its_cause(desk: Desk) -> None:
    desk.send("orders_dlq", [foreign(b"?", queue="orders_dlq"), rejected()])

    ended = desk.redrive("collect", "orders_dlq", "--once")

    assert ended.code == 0
    assert "1 of orders_dlq could not be understood" in ended.err
    [unknown] = [letter for letter in letters(desk) if letter.status is Status.QUARANTINED]
    assert (unknown.queue, unknown.message.body) == ("orders", b"?")
    assert unknown.how is not None
    assert unknown.how.startswith("no dialect understands")


async def test_what_our_worker_put_into_the_dead_letter_queue_comes_in_with_its_whole_story(
    tmp_path: Path,
) -> None:
    app = App("shop")

    @app.handler("orders")
    def charge(order: dict[str, int]) -> None:
        raise TimeoutError(f"no customer {order['number']}")

    retry = {"attempts": 3, "delays": ["10ms"], "jitter": "none"}
    async with workshop(app, tmp_path, dead_letters={"sink": "queue"}, retry=retry) as shop:
        await shop.send("orders", {"number": 7})
        await until(lambda: in_queue(shop.transport, "orders_dlq"))
        await shop.stop()
        assert not await shop.letters()

        await collector(shop.transport, shop.store).run(once=True)

        [letter] = await shop.letters()
    assert (letter.queue, letter.type, letter.attempts) == ("orders", "TimeoutError", 3)
    assert letter.handler.endswith("charge")
    assert [failure.attempt for failure in letter.failures] == [1, 2, 3]
    assert letter.failures[-1].frames[-1].function.endswith("charge")


async def test_a_letter_that_the_store_has_by_another_way_is_known(tmp_path: Path) -> None:
    app = App("shop")

    @app.handler("orders")
    def charge(order: dict[str, int]) -> None:
        raise ValueError(f"no customer {order['number']}")

    async with workshop(app, tmp_path, dead_letters={"sink": "both"}) as shop:
        await shop.send("orders", *({"number": number} for number in range(5)))
        await until(lambda: ready(shop.transport, "orders_dlq", 5))
        await shop.stop()
        assert len(await shop.letters()) == 5

        collecting = collector(shop.transport, shop.store)
        await collecting.run(once=True)

        assert (collecting.collected["orders_dlq"].new, collecting.collected["orders_dlq"].again) == (0, 5)
        assert not await shop.transport.depths()
        assert [letter.deliveries for letter in await shop.letters()] == [1] * 5


async def test_a_redriven_letter_that_fails_again_elsewhere_comes_back_to_itself(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, transport):
        await transport.send(rejected(), queue="orders_dlq")
        await collector(transport, store).run(once=True)
        [letter] = await store.find(LetterQuery())
        desk = Actions(store=store, transport=transport, clock=SystemClock(), who=local("somebody"))
        await desk.retry([letter.id])
        async for delivery in transport.receive("orders", prefetch=1):
            died_again = rejected().headers + delivery.message.headers
            await transport.send(delivery.message.with_headers(died_again), queue="orders_dlq")
            await transport.ack(delivery)
            break

        second = collector(transport, store)
        await second.run(once=True)

        assert second.collected["orders_dlq"].came_back == 1
        [same] = await store.find(LetterQuery())
        assert (same.id, same.generation, same.status) == (letter.id, 2, Status.PENDING)


# Whoever dies meanwhile


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_every_message_is_one_letter(desk: Desk, point: str) -> None:
    sent = [rejected(b"%d" % number) for number in range(30)]
    desk.send("orders_dlq", sent)

    killed = desk.process("collect", "orders_dlq", "--once", faults=f"{point}=kill9:0.3", **SOON)
    assert killed.returncode == -signal.SIGKILL
    finish(desk)

    assert sorted(letter.message.body or b"" for letter in letters(desk)) == sorted(
        each.body or b"" for each in sent
    )


@pytest.mark.parametrize("point", ["store.before_commit", "store.after_commit"])
def test_killed_while_the_store_commits_every_message_is_one_letter(desk: Desk, point: str) -> None:
    desk.do(lambda store, _transport: store.signing_key())  # there is a store, with no letter in it
    sent = [rejected(b"%d" % number) for number in range(30)]
    desk.send("orders_dlq", sent)

    killed = desk.process("collect", "orders_dlq", "--once", faults=f"{point}=kill9", **SOON)
    assert killed.returncode == -signal.SIGKILL
    finish(desk)

    assert sorted(letter.message.body or b"" for letter in letters(desk)) == sorted(
        each.body or b"" for each in sent
    )


async def test_nothing_is_acknowledged_that_the_store_does_not_have(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, transport):
        for number in range(20):
            await transport.send(rejected(b"%d" % number), queue="orders_dlq")
        ack, missing = transport.ack, list[str]()

        async def look_and_ack(delivery: Delivery) -> None:
            kept = {letter.message.id for letter in await store.find(LetterQuery(limit=100))}
            missing.extend({delivery.message.id} - kept)
            await ack(delivery)

        transport.ack = look_and_ack  # type: ignore[method-assign]
        await collector(transport, store).run(once=True)

    assert missing == []


def test_recorded_and_killed_before_the_acknowledgement_it_is_known_the_next_time(desk: Desk) -> None:
    desk.send("orders_dlq", [rejected()])
    assert (
        desk.process("collect", "orders_dlq", "--once", faults="collector.before_ack=kill9", **SOON).returncode < 0
    )
    assert len(letters(desk)) == 1

    row = finish(desk)

    assert (row["new"], row["again"]) == (0, 1)
    [letter] = letters(desk)
    assert len(letter.failures) == 1


def finish(desk: Desk) -> dict[str, Any]:
    """Collects until nothing is left, not even in the hands of the dead."""

    async def nothing_left(_store: DeadLetterStore, transport: Transport) -> bool:
        return not await transport.depths()

    totals: dict[str, Any] = {"new": 0, "again": 0}
    while not desk.do(nothing_left):
        row = collected(desk, "orders_dlq")
        totals = {key: totals[key] + row[key] for key in totals}
    return totals
