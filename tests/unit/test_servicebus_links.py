"""What a link of Service Bus holds: renewed together and in time, settled once, never silently let go."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from azure.servicebus.exceptions import MessageLockLostError

from redrive.errors import LeaseLost, Unreachable
from redrive.testing.clock import ManualClock
from redrive.transports import LostLeases
from redrive.transports.servicebus.links import Link, Receipt
from redrive.transports.servicebus.locks import Lock
from redrive.transports.servicebus.patience import Patience
from redrive.transports.servicebus.sessions import SessionLink

MANY = 40
LOCK = 60.0


class FakeReceiver:
    """Of the SDK's. `failing`: what a renewal or a completion raises."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.calls: list[str] = []
        self.failing: list[BaseException] = []
        self.at_once = self.most_at_once = 0
        self.may_complete = asyncio.Event()
        self.may_complete.set()

    async def __aenter__(self) -> None: ...

    async def receive_messages(self, *, max_message_count: int, max_wait_time: float) -> list[Any]:
        self.calls.append(f"receive {max_wait_time:g}")
        until = self.clock.now() + timedelta(seconds=LOCK)
        fact = {"locked_until_utc": until, "enqueued_time_utc": self.clock.now(), "sequence_number": 1}
        return [SimpleNamespace(**fact) for _ in range(max_message_count)]

    async def renew_message_lock(self, message: Any) -> None:
        self.calls.append("renew")
        await self._answer()
        message.locked_until_utc += timedelta(seconds=LOCK)

    async def complete_message(self, _: Any) -> None:
        self.calls.append("complete")
        await self.may_complete.wait()
        await self._answer()

    async def close(self) -> None:
        self.calls.append("close")

    async def _answer(self) -> None:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.failing:
            raise self.failing.pop()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest_asyncio.fixture
async def receiver(clock: ManualClock) -> FakeReceiver:
    return FakeReceiver(clock)


def linked(receiver: Any, clock: ManualClock, **patience: float) -> Link:
    return Link("orders", receiver, lambda: None, LostLeases(), patience=Patience(**patience), clock=clock)


async def settle_down() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_late_locks_are_renewed_together_and_before_more_is_fetched(
    receiver: FakeReceiver, clock: ManualClock
) -> None:
    link = linked(receiver, clock)
    await link.fetch(MANY, 0.1)
    clock.advance(LOCK / 3)
    await link.fetch(1, 0.1)
    assert receiver.calls == ["receive 0.1", *["renew"] * MANY, "receive 0.1"]
    assert receiver.most_at_once == MANY


async def test_what_is_not_late_is_not_renewed(receiver: FakeReceiver, clock: ManualClock) -> None:
    link = linked(receiver, clock)
    await link.fetch(1, 0.1)
    clock.advance(LOCK / 3 - 1)
    await link.fetch(1, 0.1)
    assert receiver.calls == ["receive 0.1", "receive 0.1"]


async def test_a_renewal_that_fails_in_an_unforeseen_way_is_not_the_last(
    receiver: FakeReceiver, clock: ManualClock
) -> None:
    link = linked(receiver, clock)
    await link.open()
    await link.fetch(1, 0.1)
    receiver.failing = [RuntimeError("unforeseen")]
    for _ in range(2):
        await settle_down()
        clock.advance(LOCK / 3)
    await settle_down()
    assert receiver.calls.count("renew") == 2
    await link.close()


async def test_a_settlement_that_fails_in_an_unforeseen_way_can_be_asked_for_again(
    receiver: FakeReceiver, clock: ManualClock
) -> None:
    link = linked(receiver, clock)
    [receipt] = await link.fetch(1, 0.1)
    receiver.failing = [RuntimeError("unforeseen")]
    receipt.claim()
    with pytest.raises(Unreachable):
        await link.complete(receipt)
    receipt.claim()
    await link.complete(receipt)
    assert not link.held


async def test_a_lock_that_is_lost_is_told_and_let_go_of(receiver: FakeReceiver, clock: ManualClock) -> None:
    link = linked(receiver, clock)
    [receipt] = await link.fetch(1, 0.1)
    receiver.failing = [MessageLockLostError()]
    receipt.claim()
    with pytest.raises(LeaseLost):
        await link.complete(receipt)
    assert not link.held


async def test_what_nobody_waits_for_any_more_is_settled_and_forgotten(
    receiver: FakeReceiver, clock: ManualClock
) -> None:
    link = linked(receiver, clock)
    [receipt] = await link.fetch(1, 0.1)
    receiver.may_complete.clear()
    receipt.claim()
    asked = asyncio.create_task(link.complete(receipt))
    await settle_down()
    asked.cancel()
    await settle_down()
    assert link.held == {receipt}
    receiver.may_complete.set()
    await settle_down()
    assert not link.held


async def test_a_settlement_without_an_answer_is_given_up_and_ends_the_link(
    receiver: FakeReceiver, clock: ManualClock
) -> None:
    link = linked(receiver, clock, answer=0.01)
    [receipt] = await link.fetch(1, 0.1)
    receiver.may_complete.clear()
    receipt.claim()
    with pytest.raises(Unreachable):
        await link.complete(receipt)
    assert link.broken is not None


def lock(clock: ManualClock, *, length: float, ahead: float = 0.0, waited: float = 0.0) -> Lock:
    """Of a message that waited so long in its queue, by a broker whose clock is ahead of ours."""
    there = clock.now() + timedelta(seconds=ahead)
    return Lock(clock, there + timedelta(seconds=length), there - timedelta(seconds=waited))


@pytest.mark.parametrize(
    ("how", "after"),
    [
        ({"length": 30}, 10),
        ({"length": 300}, 20),
        ({"length": 30, "ahead": 120}, 10),
        ({"length": 60, "ahead": 120, "waited": 3600}, 20),
        ({"length": 30, "ahead": -3600}, 5 / 3),
    ],
)
def test_a_lock_is_late_when_a_third_of_it_is_over_whatever_the_own_clock_says(
    clock: ManualClock, how: dict[str, float], after: float
) -> None:
    held = lock(clock, **how)
    clock.advance(after - 0.1)
    clock.set_wall(datetime(1999, 1, 1, tzinfo=UTC))
    assert not held.is_late()
    clock.advance(0.2)
    assert held.is_late()
    held.renewed()
    assert not held.is_late()


def test_a_message_whose_moments_are_no_dates_has_a_lock_all_the_same(clock: ManualClock) -> None:
    class Odd:
        @property
        def locked_until_utc(self) -> datetime:
            raise OverflowError

        enqueued_time_utc = locked_until_utc

    odd: Any = Odd()
    of: Any = SimpleNamespace(clock=clock)
    assert not Receipt(of, odd).lock.is_late()


MESSAGE: Any = SimpleNamespace(
    locked_until_utc=datetime(2030, 1, 1, tzinfo=UTC),
    enqueued_time_utc=datetime(2030, 1, 1, tzinfo=UTC),
    sequence_number=1,
)
NOBODY: Any = None


def told_of(link: Link) -> list[object]:
    told: list[object] = []
    link.lost.listen(told.append)
    return told


def held(link: Link, count: int) -> list[Receipt]:
    receipts = [Receipt(link, MESSAGE) for _ in range(count)]
    link.held.update(receipts)
    return receipts


def test_whoever_handles_a_message_is_told_once_that_its_lock_is_over_and_who_settles_it_is_not() -> None:
    link = Link("orders", NOBODY, lambda: None, LostLeases())
    told, [handled, settled] = told_of(link), held(link, 2)
    settled.claim()

    for each in (handled, handled, settled):
        each.lose()

    assert told == [handled]


def test_whoever_handles_messages_of_a_session_is_told_of_all_when_its_lock_is_over() -> None:
    link = SessionLink("orders", NOBODY, lambda: None, LostLeases())
    told, receipts = told_of(link), held(link, 2)

    link.lose()

    assert set(told) == set(receipts)
