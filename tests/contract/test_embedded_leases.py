"""What only the embedded broker promises: order, time, leases, and a file that fails for a moment."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest

from redrive import faults
from redrive.epoch import microseconds
from redrive.errors import LeaseLost, Unreachable
from redrive.testing import InstantClock, ManualClock
from redrive.transports import Names, QueueDepth
from redrive.transports.embedded_lease import Lease
from redrive.transports.embedded_table import MessageTable
from support.embedded_broker import LEASE, MEMORY, Closing, a_message, ask, opened, take


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker.db"


@pytest.fixture
async def first(path: Path, clock: ManualClock) -> AsyncIterator[Closing]:
    async with aclosing(opened(path, clock)) as transport:
        yield transport


@pytest.fixture
async def second(path: Path, clock: ManualClock) -> AsyncIterator[Closing]:
    async with aclosing(opened(path, clock)) as transport:
        yield transport


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.arm("")


# Order and time


async def test_fresh_messages_and_due_retries_come_in_the_order_they_were_due(
    first: Closing, clock: ManualClock
) -> None:
    await first.send(a_message())
    (retried,) = await take(first)
    await first.retry(retried, retried.message, delay=10, trail=b"")
    before, after = a_message(), a_message()
    await first.send(before)
    clock.advance(20)
    await first.send(after)
    taken = await take(first, 3)
    assert [delivery.message.id for delivery in taken] == [before.id, retried.message.id, after.id]


async def test_fresh_messages_and_due_ones_together_do_not_exceed_the_prefetch(
    first: Closing, clock: ManualClock
) -> None:
    for _ in range(3):
        await first.send(a_message(), delay=5)
        await first.send(a_message())
    clock.advance(5)
    async with aclosing(first.receive("orders", prefetch=2)) as deliveries:
        await anext(deliveries)
        assert (await first.depths())["orders"] == QueueDepth(ready=4, delayed=0, leased=2)


async def test_an_ack_shares_its_commit_with_the_fetch_of_the_next_message(
    first: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(first.send(a_message()) for _ in range(20)))
    commits, control = [], first._file._control

    def watched(table: MessageTable, statement: str) -> None:
        if statement == "COMMIT":
            commits.append(statement)
        control(table, statement)

    monkeypatch.setattr(first._file, "_control", watched)
    async with aclosing(first.receive("orders", prefetch=1)) as deliveries:
        for _ in range(20):
            await first.ack(await anext(deliveries))
    assert len(commits) == 21  # the first fetch stands alone, the last ack finds nothing to fetch


async def test_messages_sent_together_keep_the_order_they_were_handed_in(first: Closing) -> None:
    messages = [a_message() for _ in range(200)]
    await asyncio.gather(*(first.send(message) for message in messages))
    assert [delivery.message.id for delivery in await take(first, 200)] == [message.id for message in messages]


async def test_what_was_given_back_comes_first_again(first: Closing) -> None:
    messages = [a_message() for _ in range(5)]
    for message in messages:
        await first.send(message)
    for delivery in reversed(await take(first, 3)):
        await first.release(delivery)
    assert [delivery.message.id for delivery in await take(first, 5)] == [message.id for message in messages]


async def test_a_clock_set_back_hides_nothing_that_was_ready(first: Closing, clock: ManualClock) -> None:
    await first.send(a_message())
    clock.set_wall(clock.now() - timedelta(hours=1))
    await take(first)


async def test_the_first_attempt_was_made_when_its_message_was_fetched(first: Closing, clock: ManualClock) -> None:
    await first.send(a_message())
    fetched_at = clock.now()
    (delivery,) = await take(first)
    clock.advance(7)
    await first.retry(delivery, delivery.message, delay=0, trail=b"")
    assert (await take(first))[0].first_attempt_at == fetched_at


async def test_a_waiting_receiver_wakes_when_a_delay_ends(first: Closing, clock: ManualClock) -> None:
    async with aclosing(first.receive("orders", prefetch=1)) as deliveries:
        waiting = asyncio.create_task(anext(deliveries))
        await first.send(a_message(), delay=300)
        await first.depths()
        assert not waiting.done()
        clock.advance(300)
        async with asyncio.timeout(30):
            await waiting


async def test_on_an_instant_clock_nobody_waits_for_a_retry() -> None:
    transport = Closing(MEMORY, names=Names(), clock=InstantClock())
    await transport.send(a_message(), delay=3600)
    (delivery,) = await take(transport)
    await transport.retry(delivery, delivery.message, delay=7200, trail=b"")
    assert (await take(transport))[0].attempt == 2
    await transport.close()


# Leases


async def test_a_heartbeat_keeps_what_is_unsettled_until_it_is_closed(path: Path, clock: ManualClock) -> None:
    lease, beaten = 0.3, asyncio.Event()
    expected = microseconds(clock.now() + timedelta(seconds=10 + lease))
    transport = opened(path, clock, lease=lease)
    extend = transport._leases._extend

    async def watched(leases: list[Lease], until: int) -> set[int]:
        kept = await extend(leases, until)
        if until == expected:
            beaten.set()
        return kept

    transport._leases._extend = watched
    await transport.send(a_message())
    (delivery,) = await take(transport)
    clock.advance(10)
    async with asyncio.timeout(30):
        await beaten.wait()
    assert ask(path, "SELECT due_at FROM messages") == [(expected,)]
    await transport.ack(delivery)
    await transport.close()
    assert transport._leases._beating is not None
    assert transport._leases._beating.done()


def test_the_heart_beats_again_in_the_next_event_loop(path: Path, clock: ManualClock) -> None:
    transport = opened(path, clock)

    async def settle_one() -> None:
        await transport.send(a_message())
        (delivery,) = await take(transport)
        assert transport._leases._beating is not None
        assert not transport._leases._beating.done()
        await transport.ack(delivery)

    asyncio.run(settle_one())
    asyncio.run(settle_one())
    asyncio.run(transport.close())


async def test_a_heartbeat_that_comes_too_late_finds_its_lease_lost(
    first: Closing, second: Closing, clock: ManualClock
) -> None:
    await first.send(a_message())
    (delivery,) = await take(first)
    clock.advance(LEASE + 1)
    (taken,) = await take(second)
    await first._leases.renew()
    assert first._leases.held() == []
    with pytest.raises(LeaseLost):
        await first.ack(delivery)
    await second.ack(taken)


async def test_what_was_lost_before_it_was_handed_out_is_not_handed_out(
    first: Closing, second: Closing, clock: ManualClock
) -> None:
    for _ in range(3):
        await first.send(a_message())
    async with aclosing(first.receive("orders", prefetch=3)) as deliveries:
        kept = await anext(deliveries)
        clock.advance(LEASE + 1)
        taken = await take(second, 3)
        await first._leases.renew()
        fresh = a_message()
        await first.send(fresh)
        assert (await anext(deliveries)).message == fresh
    assert kept.identity in {delivery.identity for delivery in taken}


async def test_a_process_that_stood_still_does_not_take_its_own_message_again(
    first: Closing, clock: ManualClock
) -> None:
    await first.send(a_message())
    (held,) = await take(first)
    clock.advance(LEASE * 2)
    fresh = a_message()
    await first.send(fresh)
    assert (await take(first))[0].message == fresh
    await first.ack(held)


async def test_a_lease_that_ran_out_and_that_nobody_took_can_still_be_settled(
    first: Closing, clock: ManualClock
) -> None:
    await first.send(a_message())
    (delivery,) = await take(first)
    clock.advance(LEASE + 1)
    await first.ack(delivery)
    assert await first.depths() == {}


async def test_of_many_acks_at_once_only_the_lost_ones_are_refused(
    first: Closing, second: Closing, clock: ManualClock
) -> None:
    await asyncio.gather(*(first.send(a_message()) for _ in range(20)))
    taken = await take(first, 20)
    clock.advance(LEASE + 1)
    stolen = {delivery.identity for delivery in await take(second, 7)}
    outcomes = await asyncio.gather(*(first.ack(delivery) for delivery in taken), return_exceptions=True)
    refused = {
        delivery.identity
        for delivery, outcome in zip(taken, outcomes, strict=True)
        if isinstance(outcome, LeaseLost)
    }
    assert refused == stolen
    assert (await first.depths())["orders"].total == 7


# When the file fails for a moment


async def test_a_receiver_says_that_the_file_is_away_and_the_next_one_goes_on(first: Closing) -> None:
    message = a_message()
    await first.send(message)
    faults.arm("broker.before_commit=enospc")
    with pytest.raises(Unreachable, match="No space"):
        await take(first)
    faults.arm("")
    (delivery,) = await take(first)
    assert (delivery.message, delivery.redelivered) == (message, False)


async def test_an_ack_that_failed_can_be_repeated(first: Closing) -> None:
    await first.send(a_message())
    (delivery,) = await take(first)
    faults.arm("broker.before_commit=eio")
    with pytest.raises(Unreachable):
        await first.ack(delivery)
    faults.arm("")
    assert len(first._leases.held()) == 1
    await first.ack(delivery)
    assert await first.depths() == {}


async def test_what_could_not_be_given_back_is_no_longer_kept(first: Closing) -> None:
    await first.send(a_message())
    (delivery,) = await take(first)
    faults.arm("broker.before_commit=eio")
    with pytest.raises(Unreachable):
        await first.release(delivery)
    assert first._leases.held() == []


async def test_a_send_whose_caller_was_cancelled_is_all_or_nothing(first: Closing) -> None:
    sending = asyncio.create_task(first.send(a_message()))
    await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait({sending})
    await take(first)
