"""S3's `queue:reprocess --queue=NAME_dlq`: its flow, its validations, and its defects as named tests."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from redrive import dead_letter_queue
from redrive.access import local
from redrive.actions import Actions, Reprocessed
from redrive.cli.reprocess import tell
from redrive.clock import SystemClock
from redrive.control import read_ticket, strip
from redrive.dead_letter import Status
from redrive.dead_letter_queue import IN_FLIGHT
from redrive.transports import Delivery, Names, QueueDepth
from redrive.transports.embedded import EmbeddedTransport
from support.dead_letters import an_order, dead, foreign
from support.desk import Desk, LaterClock, take_all
from support.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.message import Message
    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """With an empty store."""
    desk = Desk(tmp_path)
    desk.do(lambda store, _transport: store.signing_key())
    return desk


def failed(message: Message) -> Message:
    return message.with_incremented_retry().with_error("Connection refused", "500", "PDOException...")


def test_s3_every_message_goes_to_its_own_queue_with_error_and_retry_count_reset(desk: Desk) -> None:
    orders = [failed(an_order(number)) for number in range(3)]
    desk.send("orders_dlq", orders)

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert ended.code == 0
    assert ended.out == "Reprocessed 3 messages: 3 from the queue orders_dlq, 0 from the store\n"
    arrived = [delivery.message for delivery in desk.take("orders")]
    assert [message.id for message in arrived] == [order.id for order in orders]
    assert [message.body for message in arrived] == [order.body for order in orders]
    assert {(message.error, message.retry_count) for message in arrived} == {(None, 0)}
    assert desk.take("orders_dlq") == []


def test_s3_the_queue_is_required(desk: Desk) -> None:
    ended = desk.redrive("reprocess", "--yes")

    assert ended.code == 2
    assert "--queue" in ended.err


@pytest.mark.parametrize("name", ["orders", "orders_retry", "_dlq", "dlq", ""])
def test_s3_the_name_must_end_like_a_dead_letter_queue(desk: Desk, name: str) -> None:
    desk.send("orders", [an_order()])

    ended = desk.redrive("reprocess", "--queue", name, "--yes")

    assert ended.code == 2
    assert f"did you mean '{name}_dlq'?" in ended.err
    assert len(desk.take("orders")) == 1


def test_s3_an_empty_queue_says_so_kindly(desk: Desk) -> None:
    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert ended.code == 0
    assert ended.out == "Nothing to reprocess: orders_dlq is empty, and no letter of orders is pending.\n"
    assert ended.err == ""


def test_dead_letters_that_our_consumer_keeps_in_the_store_go_back_too(desk: Desk) -> None:
    pending = desk.record(*(dead(an_order(number)) for number in range(9)))
    [other] = desk.record(dead(queue="mail"))
    [kept_back] = desk.record(dead(quarantine="too large"))
    desk.send("orders_dlq", [failed(an_order(number)) for number in range(3)])

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert ended.code == 0
    assert ended.out == "Reprocessed 12 messages: 3 from the queue orders_dlq, 9 from the store\n"
    assert len(desk.take("orders")) == 12
    assert {desk.letter(each).status for each in pending} == {Status.REDRIVEN}
    assert desk.letter(other).status is Status.PENDING
    assert desk.letter(kept_back).status is Status.QUARANTINED


def test_s3_queue_to_queue_needs_no_store_and_makes_none(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    orders = [failed(an_order(number)) for number in range(3)]
    desk.send("orders_dlq", orders)

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert ended.code == 0
    assert ended.out == "Reprocessed 3 messages: 3 from the queue orders_dlq\n"
    [line] = ended.err.splitlines()
    assert line.endswith("only what lies in orders_dlq is reprocessed, no letter of a store.")
    assert [delivery.message.id for delivery in desk.take("orders")] == [order.id for order in orders]
    assert not (tmp_path / "redrive.db").exists()


def test_s3_an_empty_queue_without_a_store_says_so_kindly(tmp_path: Path) -> None:
    ended = Desk(tmp_path).redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert (ended.code, ended.out) == (0, "Nothing to reprocess: orders_dlq is empty.\n")


def test_a_store_that_cannot_be_reached_does_not_keep_the_queue_from_going_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, store_url="postgresql://nobody@127.0.0.1:1/nothing")
    desk.send("orders_dlq", [an_order()])

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert ended.code == 0
    assert len(ended.err.splitlines()) == 1
    assert len(desk.take("orders")) == 1


def test_a_damaged_store_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "redrive.db").write_bytes(b"not a database" * 100)
    desk.send("orders_dlq", [an_order()])

    assert desk.redrive("reprocess", "--queue", "orders_dlq", "--yes").code == 6
    assert len(desk.take("orders_dlq")) == 1


def test_the_store_can_be_left_alone_though_it_is_there(desk: Desk) -> None:
    [pending] = desk.record(dead(an_order()))
    desk.send("orders_dlq", [an_order()])

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--no-store", "--yes")

    assert ended.out == "Reprocessed 1 message: 1 from the queue orders_dlq\n"
    assert ended.err == "--no-store: only what lies in orders_dlq is reprocessed, no letter of a store.\n"
    assert desk.letter(pending).status is Status.PENDING


def test_letters_go_back_oldest_first(desk: Desk) -> None:
    orders = [an_order(number) for number in range(25)]
    desk.record(*map(dead, orders))

    desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert [delivery.message.id for delivery in desk.take("orders")] == [order.id for order in orders]


@pytest.mark.parametrize("queue", ["orders_dlq", "payments_dlq", ""])
def test_a_message_that_names_no_queue_of_its_own_goes_home(desk: Desk, queue: str) -> None:
    desk.send("orders_dlq", [foreign(b"\xff\x00", queue=queue)])

    desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert [delivery.message.body for delivery in desk.take("orders")] == [b"\xff\x00"]


def test_a_message_that_the_broker_dead_lettered_goes_back_to_the_queue_that_rejected_it(desk: Desk) -> None:
    death = {"queue": "orders.v2", "reason": "rejected", "count": 1}
    desk.send("orders_dlq", [foreign(b"x", queue="orders_dlq", headers=(("x-death", [death]),))])

    desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert [delivery.message.body for delivery in desk.take("orders.v2")] == [b"x"]


def test_a_message_of_another_queue_goes_back_to_that_one(desk: Desk) -> None:
    desk.send("orders_dlq", [an_order(queue="refunds")])

    desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert len(desk.take("refunds")) == 1


def test_headers_and_key_are_left_as_they_are(desk: Desk) -> None:
    message = an_order(headers=(("a", 1), ("a", b"\xff"), ("x-redrive-sig", "whatever")))
    desk.send("orders_dlq", [message])

    desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    [delivery] = desk.take("orders")
    assert delivery.message.headers == message.headers


async def test_sd10_the_command_ends_though_a_handler_throws_everything_straight_back(desk: Desk) -> None:
    """S3's loop pops until the queue is empty: with a handler that fails at once, it never is."""
    async with desk.opened() as (store, transport):
        for number in range(20):
            await transport.send(an_order(number), queue="orders_dlq")
        thrown = asyncio.create_task(throw_back(transport))
        actions = Actions(store=store, transport=transport, clock=SystemClock(), who=local("somebody"))

        done = await asyncio.wait_for(actions.reprocess("orders_dlq"), 30)

        assert (done.queue.sent, done.queue.came_back) == (20, 0)
        await emptied(transport, "orders")
        thrown.cancel()
        await asyncio.wait({thrown})
        assert len({delivery.message.id for delivery in await take_all(transport, "orders_dlq")}) == 20


async def throw_back(transport: Transport) -> None:
    """A consumer of S3's whose handler always fails."""
    async for delivery in transport.receive("orders", prefetch=1):
        await transport.send(delivery.message, queue="orders_dlq")
        await transport.ack(delivery)


async def emptied(transport: Transport, queue: str) -> None:
    """Each look takes a while, so this neither spins nor waits longer than it must."""
    while queue in await transport.depths():
        pass


async def test_sd10_a_letter_that_fails_again_at_once_is_not_sent_a_second_time(desk: Desk) -> None:
    async with desk.opened() as (store, transport):
        ids = {(await store.record(dead(an_order(number))))[0] for number in range(45)}
        failing = asyncio.create_task(record_again(store, transport))
        actions = Actions(store=store, transport=transport, clock=SystemClock(), who=local("somebody"))

        done = await asyncio.wait_for(actions.reprocess("orders_dlq"), 30)

        assert done.from_store == 45
        await emptied(transport, "orders")
        failing.cancel()
        await asyncio.wait({failing})
        letters = [await store.get(each) for each in ids]
        assert {(letter.status, letter.generation) for letter in letters if letter} == {(Status.PENDING, 2)}


async def record_again(store: DeadLetterStore, transport: Transport) -> None:
    """Our consumer with a handler that always fails."""
    key = await store.signing_key()
    async for delivery in transport.receive("orders", prefetch=1):
        ticket = read_ticket(delivery.message.headers, "orders", key)
        message = delivery.message.with_headers(strip(delivery.message.headers))
        await store.record(dead(message, ticket=ticket))
        await transport.ack(delivery)


class ThrowingBack(EmbeddedTransport):
    """A broker with a consumer of S3's on it that is quicker than ours, and whose handler always fails."""

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        to = "orders_dlq" if queue == "orders" else queue
        await super().send(message, queue=to, delay=delay, trail=trail)


async def test_sd10_a_message_that_came_back_since_the_command_began_is_left_where_it_is(desk: Desk) -> None:
    first, second = an_order(1), an_order(2)
    async with at_work(desk, ThrowingBack) as (actions, transport):
        for message in (first, second):
            await transport.send(message, queue="orders_dlq")
        selection = await actions.select_dead("orders_dlq")
        await take_one(transport, "orders_dlq")  # another process, meanwhile: so the command meets later ones

        done = await actions.reprocess(selection)

        assert (done.queue.sent, done.queue.came_back) == (1, 1)
        assert [each.message.id for each in await take_all(transport, "orders_dlq")] == [second.id]


def test_copies_that_lay_there_from_the_start_all_go_back_and_stop_nothing(desk: Desk) -> None:
    """A kill between send and remove leaves a copy, and the message that was sent may fail a second time."""
    orders = [an_order(number) for number in range(30)]
    desk.send("orders_dlq", [each for order in orders for each in (order, order)])

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert (ended.code, ended.err) == (0, "")
    assert [each.message.id for each in desk.take("orders")[::2]] == [order.id for order in orders]
    assert desk.take("orders_dlq") == []


class SlowToHandOut(EmbeddedTransport):
    """Hands out what it has leased only after somebody has looked and seen nothing ready."""

    def __init__(self, url: str, *, names: Names) -> None:
        super().__init__(url, names=names)
        self.looked, self.handed_out, self.answers = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
        async with aclosing(super().receive(queue, prefetch=prefetch)) as receiving:
            async for delivery in receiving:
                await self.looked.wait()
                self.handed_out.set()
                yield delivery

    async def depths(self, queues: Collection[str] = ()) -> Mapping[str, QueueDepth]:
        found = await super().depths(queues)
        if found["orders_dlq"].ready == 0:
            self.looked.set()
            await self.answers.wait()
        return found


async def test_what_our_own_fetch_has_leased_is_not_taken_for_gone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_queue, "_PATIENCE", 0.01)
    async with at_work(desk, SlowToHandOut) as (actions, transport):
        transport.answers.set()
        for number in range(3):
            await transport.send(an_order(number), queue="orders_dlq")

        done = await actions.reprocess("orders_dlq")

        assert (done.queue.sent, done.queue.not_met) == (3, 0)


async def test_a_delivery_that_comes_while_the_command_is_interrupted_is_sent_home_and_stays_in_no_hand(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_queue, "_PATIENCE", 0.01)
    async with at_work(desk, SlowToHandOut) as (actions, transport):
        await transport.send(an_order(), queue="orders_dlq")
        running = asyncio.create_task(actions.reprocess("orders_dlq"))
        await transport.handed_out.wait()
        running.cancel()
        await asyncio.wait({running})
        transport.answers.set()

        assert await EmbeddedTransport.depths(transport) == {"orders": QueueDepth(ready=1, delayed=0, leased=0)}


async def test_messages_that_were_counted_and_not_met_are_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dead_letter_queue, "_PATIENCE", 0.01)
    async with at_work(desk, EmbeddedTransport) as (actions, transport):
        for number in range(3):
            await transport.send(an_order(number), queue="orders_dlq")
        selection = await actions.select_dead("orders_dlq")
        await take_one(transport, "orders_dlq")

        done = await actions.reprocess(selection)

    assert (done.queue.sent, done.queue.not_met) == (2, 1)
    assert tell(done, selection) == 4
    assert "1 more were counted in orders_dlq and not met" in capsys.readouterr().err


@asynccontextmanager
async def at_work(desk: Desk, broker: Callable[..., Any]) -> AsyncIterator[tuple[Actions, Any]]:
    """The desk of somebody, on a broker of that kind."""
    store, transport = desk.store(), broker(f"embedded:///{desk.folder}/redrive-broker.db", names=Names())
    try:
        yield Actions(store=store, transport=transport, clock=SystemClock(), who=local("somebody")), transport
    finally:
        await transport.close()
        await store.close()


async def take_one(transport: Transport, queue: str) -> None:
    async with aclosing(transport.receive(queue, prefetch=1)) as receiving:
        await transport.ack(await anext(receiving))


def test_two_messages_that_share_an_id_but_not_a_body_both_go_back(desk: Desk) -> None:
    first = an_order(1)
    desk.send(
        "orders_dlq", [first, type(first)(id=first.id, queue="orders", body=b"other", sent_at=first.sent_at)]
    )

    assert desk.redrive("reprocess", "--queue", "orders_dlq", "--yes").code == 0

    assert len(desk.take("orders")) == 2


@pytest.mark.parametrize("point", ["reprocess.received", "reprocess.after_send"])
def test_a_process_killed_on_the_way_loses_nothing_and_doubles_at_most_what_was_in_flight(
    desk: Desk, point: str
) -> None:
    """S3's dispatch need not be durable when it deletes the job; our send is, before the copy is removed."""
    orders = [an_order(number) for number in range(5)]
    desk.send("orders_dlq", orders)

    killed = desk.process("reprocess", "--queue", "orders_dlq", "--yes", faults=f"{point}=kill9")
    assert killed.returncode == -signal.SIGKILL
    done = reprocess_when_leases_have_run_out(desk)

    assert done.queue.sent == len(orders)
    arrived = [delivery.message.id for delivery in desk.take("orders")]
    assert set(arrived) == {order.id for order in orders}
    doubled = len(arrived) - len(orders)
    assert 1 <= doubled <= len(orders) if point == "reprocess.after_send" else doubled == 0
    assert desk.take("orders_dlq") == []


def reprocess_when_leases_have_run_out(desk: Desk) -> Reprocessed:
    async def work(store: DeadLetterStore, _transport: Transport) -> Reprocessed:
        clock = LaterClock()
        later = desk.transport(clock)
        actions = Actions(store=store, transport=later, clock=clock, who=local("somebody"))
        done = await actions.reprocess("orders_dlq")
        await later.close()
        return done

    done: Reprocessed = desk.do(work)
    return done


def test_messages_in_the_hands_of_another_process_are_left_to_it(desk: Desk) -> None:
    desk.send("orders_dlq", [an_order(1), an_order(2)])

    async def hold_one(_store: DeadLetterStore, transport: Transport) -> None:
        receiving = transport.receive("orders_dlq", prefetch=1)
        held = await anext(receiving)
        ended = await asyncio.to_thread(desk.process, "reprocess", "--queue", "orders_dlq", "--yes")
        assert ended.stdout.startswith("Reprocessed 1 message: 1 from the queue")
        assert "1 of orders_dlq are in the hands of another process" in ended.stderr
        await transport.release(held)
        await receiving.aclose()

    desk.do(hold_one)
    assert len(desk.take("orders_dlq")) == 1


def test_letters_that_a_killed_command_left_unfinished_are_told(desk: Desk) -> None:
    ids = desk.record(dead(), dead())
    desk.process("retry", *ids, "--yes", faults="engine.taken=kill9")

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert ended.code == 0
    assert ended.out == "Reprocessed 0 messages: 0 from the queue orders_dlq, 0 from the store\n"
    assert ended.err == (
        f"2 begun by another process, for example letter {ids[0]}: "
        "it is being sent right now: wait for it, or try again in 85 s if that process died\n"
    )


def test_messages_that_the_broker_refuses_stay_in_the_dead_letter_queue(desk: Desk) -> None:
    desk.send("orders_dlq", [an_order(1), foreign(b"x", queue="bad\x07name")])

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert ended.code == 4
    assert ended.err == "1 were refused by the broker and left in orders_dlq.\n"
    assert [delivery.message.body for delivery in desk.take("orders_dlq")] == [b"x"]


def test_more_refused_messages_than_can_be_held_stop_the_command_and_are_told(desk: Desk) -> None:
    desk.send("orders_dlq", [*(foreign(b"x", queue="bad\x07name") for _ in range(IN_FLIGHT)), an_order(1)])

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert ended.code == 1
    assert ended.err.splitlines()[1] == "1 behind those were not tried: take the others out of orders_dlq first."
    assert len(desk.take("orders_dlq")) == IN_FLIGHT + 1


def test_a_dry_run_and_a_missing_yes_change_nothing(desk: Desk) -> None:
    desk.record(dead())
    desk.send("orders_dlq", [an_order()])

    dry = desk.redrive("reprocess", "--queue", "orders_dlq", "--dry-run")
    refused = desk.redrive("reprocess", "--queue", "orders_dlq")

    assert dry.out == (
        "Would reprocess 2 messages: 1 from the queue orders_dlq, 1 from the store. Nothing was changed.\n"
    )
    assert (dry.code, refused.code) == (0, 5)
    assert desk.take("orders") == []


def test_no_more_than_the_limit_go_back_those_of_the_queue_first(desk: Desk) -> None:
    first, second = desk.record(dead(), dead())
    desk.send("orders_dlq", [an_order(1), an_order(2)])

    ended = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes", "--limit", "3")

    assert ended.out == "Reprocessed 3 messages: 2 from the queue orders_dlq, 1 from the store\n"
    assert [desk.letter(each).status for each in (first, second)] == [Status.REDRIVEN, Status.PENDING]


def test_on_a_terminal_it_asks_and_takes_no_for_an_answer(desk: Desk) -> None:
    desk.send("orders_dlq", [an_order()])

    seen = on_terminal(desk.folder, "reprocess", "--queue", "orders_dlq", typed="n\n")

    assert seen.code == 5
    assert "Reprocess 1 message: 1 from the queue orders_dlq, 0 from the store? [y/N]" in " ".join(
        seen.text.split()
    )
    assert len(desk.take("orders_dlq")) == 1


def test_a_name_from_the_broker_settings_is_understood(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text('[broker]\ndead_letter_queue = "dlq.{queue}"\n')

    assert desk.redrive("reprocess", "--queue", "dlq.orders", "--yes").code == 0
    refused = desk.redrive("reprocess", "--queue", "orders_dlq", "--yes")

    assert (refused.code, "did you mean 'dlq.orders_dlq'?" in refused.err) == (2, True)
