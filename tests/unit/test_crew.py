"""Who handles deliveries: in which task, how many at once, and what of one message the next may meet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import msgspec

from redrive.crew import Crew
from redrive.testing.letters import a_message
from redrive.transports import Delivery

SEEN: ContextVar[int] = ContextVar("seen", default=0)


def a_delivery(attempt: int) -> Delivery:
    return Delivery(
        message=a_message(),
        queue="orders",
        identity=f"{attempt}",
        attempt=attempt,
        redelivered=False,
        first_attempt_at=None,
        trail=None,
        receipt=None,
    )


class Work:
    """A crew whose handler is given the number of the delivery, and what it left."""

    def __init__(self, at_once: int, handler: Callable[[int], Awaitable[object]], in_hand: int = 0) -> None:
        self.handler = handler
        self.tasks: dict[int, asyncio.Task[None] | None] = {}
        self.ended: list[int] = []
        self.forsaken: list[tuple[int, BaseException | None]] = []
        self.crew = Crew(at_once, in_hand, self._handle, self._left)

    async def _handle(self, delivery: Delivery) -> None:
        self.tasks[delivery.attempt] = asyncio.current_task()
        await self.handler(delivery.attempt)
        self.ended.append(delivery.attempt)

    def _left(self, delivery: Delivery, error: BaseException | None) -> None:
        self.forsaken.append((delivery.attempt, error))

    async def do(self, count: int) -> None:
        """Gives so many, as fast as they are taken, and waits until all of them are over."""
        for number in range(1, count + 1):
            while self.crew.full:
                await self.crew.something_ends()
            self.crew.give(a_delivery(attempt=number))
        while self.crew.busy:
            await self.crew.something_ends()


async def nothing(_: int) -> None:
    pass


async def test_handlers_that_wait_for_nothing_share_a_task() -> None:
    work = Work(5, nothing)
    await work.do(20)
    assert work.ended == list(range(1, 21))
    assert len(set(work.tasks.values())) < 10


async def test_a_handler_that_waits_has_a_task_that_is_nobody_elses_afterwards() -> None:
    async def waits(number: int) -> None:
        await asyncio.sleep(0)
        assert work.tasks[number] is asyncio.current_task()

    work = Work(3, waits)
    await work.do(12)
    assert sorted(work.ended) == list(range(1, 13))
    assert len(set(work.tasks.values())) == 12


async def test_while_one_waits_the_next_are_begun_and_never_more_than_may_be() -> None:
    running, most = 0, 0
    go_on = asyncio.Event()

    async def waits(_: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            go_on.set()
        await go_on.wait()
        await asyncio.sleep(0)
        running -= 1

    work = Work(3, waits)
    await work.do(10)
    assert (most, len(work.ended)) == (3, 10)


async def test_what_is_being_settled_has_no_place_among_the_handlers_but_is_still_in_hand() -> None:
    settled, handling, most = asyncio.Event(), 0, 0

    async def settles(_: int) -> None:
        nonlocal handling, most
        handling += 1
        most = max(most, handling)
        await asyncio.sleep(0)
        handling -= 1
        work.crew.settles()
        await settled.wait()

    work = Work(2, settles, in_hand=5)
    doing = asyncio.create_task(work.do(20))
    while len(work.crew.running) < 5:
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert (len(work.tasks), len(work.crew.settling), work.crew.full) == (5, 5, True)
    settled.set()
    await doing
    assert (most, sorted(work.ended)) == (2, list(range(1, 21)))
    assert not work.crew.settling


async def test_what_one_message_sets_in_its_context_no_other_one_sees() -> None:
    seen: list[int] = []

    async def sets(number: int) -> None:
        seen.append(SEEN.get())
        SEEN.set(number)
        if number % 2:
            await asyncio.sleep(0)

    await Work(4, sets).do(8)
    assert seen == [0] * 8


async def test_the_next_are_handled_when_one_ends_with_an_error_before_it_has_waited() -> None:
    async def exits(number: int) -> None:
        if number == 2:
            raise GeneratorExit

    work = Work(5, exits)
    await work.do(5)
    assert work.ended == [1, 3, 4, 5]
    [(forsaken, error)] = work.forsaken
    assert forsaken == 2
    assert isinstance(error, GeneratorExit)


async def test_one_that_is_cancelled_is_forsaken_and_the_others_are_not() -> None:
    hangs = asyncio.Event()

    async def waits(number: int) -> None:
        if number == 1:
            await hangs.wait()

    work = Work(2, waits)
    doing = asyncio.create_task(work.do(6))
    while len(work.ended) < 5:
        await asyncio.sleep(0)
    [task] = work.crew.running
    task.cancel()
    await doing
    assert work.forsaken == [(1, None)]
    assert sorted(work.ended) == [2, 3, 4, 5, 6]


async def test_what_nobody_has_begun_with_can_be_taken_back() -> None:
    work = Work(3, nothing)
    for number in (1, 2):
        work.crew.give(a_delivery(attempt=number))
    assert [each.attempt for each in work.crew.take_back()] == [1, 2]
    await asyncio.sleep(0)
    assert (work.ended, work.crew.busy) == ([], False)


def with_receipts(count: int) -> list[Delivery]:
    return [msgspec.structs.replace(a_delivery(number), receipt=object()) for number in range(1, count + 1)]


async def test_one_that_is_given_up_is_cancelled_and_the_others_go_on() -> None:
    going = asyncio.Event()

    async def wait(_: int) -> None:
        await going.wait()

    work, deliveries = Work(2, wait), with_receipts(2)
    for delivery in deliveries:
        work.crew.give(delivery)
    while len(work.tasks) < 2:
        await asyncio.sleep(0)

    assert work.crew.give_up(object()) is None
    assert work.crew.give_up(deliveries[0].receipt) is deliveries[0]
    going.set()
    while work.crew.busy:
        await work.crew.something_ends()

    assert (work.ended, work.forsaken) == ([2], [(1, None)])


async def test_one_that_is_given_up_before_it_began_never_begins() -> None:
    work, [first, second] = Work(2, nothing), with_receipts(2)
    for delivery in (first, second):
        work.crew.give(delivery)

    assert work.crew.give_up(second.receipt) is second
    while work.crew.busy:
        await work.crew.something_ends()

    assert (work.ended, work.forsaken) == ([1], [(2, None)])


async def test_one_whose_handler_has_ended_is_not_given_up() -> None:
    settling = asyncio.Event()

    async def settle(_: int) -> None:
        work.crew.settles()
        await settling.wait()

    work, [delivery] = Work(1, settle), with_receipts(1)
    work.crew.give(delivery)
    while not work.tasks:
        await asyncio.sleep(0)

    assert work.crew.give_up(delivery.receipt) is None
    settling.set()
    while work.crew.busy:
        await work.crew.something_ends()

    assert (work.ended, work.forsaken) == ([1], [])
