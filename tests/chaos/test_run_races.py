"""F18: a run is paused, resumed, cancelled and approved by several people while two engines carry it out.
F19: what a handler says about a letter of a run comes before the engine has marked it as sent.

Engines have a store and a broker's connection of their own each, the handler is a real worker's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from redrive.clock import SystemClock
from redrive.control import REDRIVE_ID
from redrive.dead_letter import Actor, Status
from redrive.engine import RedriveEngine
from redrive.errors import TransitionRefused
from redrive.headers import header
from redrive.letter_query import LetterQuery
from redrive.run import ENDED, WINDOW, Approval, Brakes, Run, RunChange, RunPlan, RunStatus, Waiting
from redrive.stores import RunStore, open_store
from redrive.transports import Names, open_transport
from support.patience import until
from support.run_shop import all_is_well, no_such_customer
from support.shop_desk import GatedShop

PLAN = RunPlan(selection=LetterQuery(), rate=400.0, brakes=Brakes(came_back=None))
ANN, BOB, CAROL = (Actor(name, "so") for name in ("ann", "bob", "carol"))
SLOWLY = replace(PLAN, rate=10.0)
"""No more is taken than is sent within 20 seconds: the run is in the middle of its letters for all of a test."""
AT_EASE = replace(PLAN, rate=40.0)
"""Sent within some seconds, so that several things can happen meanwhile."""
LETTERS = 240


class Stage:
    """A shop with dead orders, and engines for its runs."""

    def __init__(self, shop: GatedShop, closing: AsyncExitStack) -> None:
        self.shop = shop
        self._closing = closing
        self._serving: list[asyncio.Task[None]] = []

    @property
    def store(self) -> RunStore:
        return self.shop.opened.store  # type: ignore[return-value]  # every store remembers runs

    async def engine(self, *, lease: float = 60.0, slow: bool = False) -> SlowToMark:
        """Serves from now on, until the test ends."""
        clock, broker = SystemClock(), f"embedded:///{self.shop.desk.folder}/redrive-broker.db"
        store = SlowToMark(open_store(self.shop.desk.store_url, clock=clock))
        self._closing.push_async_callback(store.close)
        if slow:
            store.may_mark.clear()
        transport = open_transport(broker, names=Names(), clock=clock)
        self._closing.push_async_callback(transport.close)
        made: Any = store
        owner = f"engine {len(self._serving)}"
        engine = RedriveEngine(store=made, transport=transport, clock=clock, owner=owner, lease=lease)
        self._serving.append(serving := asyncio.create_task(engine.serve()))
        self._closing.push_async_callback(_ended, serving)
        self._closing.callback(store.may_mark.set)  # of a test that failed
        return store

    async def run(self, run_id: str) -> Run:
        found = await self.store.run(run_id)
        assert found is not None
        return found

    async def sent(self, run_id: str, at_least: int) -> bool:
        return (await self.run(run_id)).progress.sent >= at_least

    async def in_status(self, run_id: str, status: RunStatus) -> bool:
        return (await self.run(run_id)).status is status

    async def nothing_in_hand(self, run_id: str) -> bool:
        return (await self.run(run_id)).progress.in_hand == 0

    async def all_handled(self, run_id: str) -> bool:
        """Whether the handler has had everything that the run has sent."""
        return len(self.shop.charged) >= (await self.run(run_id)).progress.sent

    async def statuses(self) -> dict[str, int]:
        counted = await self.store.statistics()
        return {status: number for status, number in counted.by_status.items() if number}

    def redrive_ids(self) -> Counter[Any]:
        """How many copies of each redrive the handler has had."""
        return Counter(header(message.headers, REDRIVE_ID) for message in self.shop.charged)


class SlowToMark:
    """A store, whose marks may be made to wait."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.may_mark = asyncio.Event()
        self.may_mark.set()
        self.marking = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def settle_together(self, *given: Any, **named: Any) -> int:
        self.marking += 1
        await self.may_mark.wait()
        try:
            changed: int = await self._store.settle_together(*given, **named)
        finally:
            self.marking -= 1
        return changed


async def _ended(serving: asyncio.Task[None]) -> None:
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> GatedShop:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_store_url")
    return GatedShop(tmp_path, store_url=url)


@pytest.fixture
async def stage(shop: GatedShop) -> AsyncIterator[Callable[[int], Any]]:
    async with AsyncExitStack() as closing:

        async def opened(letters: int) -> Stage:
            await closing.enter_async_context(shop.with_dead_orders(letters))
            return Stage(shop, await closing.enter_async_context(AsyncExitStack()))

        yield opened


def adds_up(run: Run) -> bool:
    told = run.progress
    outcomes = told.confirmed + told.came_back + told.by_hand + told.without_word
    return told.taken == told.in_hand + told.sent + told.refused + told.released and told.sent == outcomes


async def asks_in_vain(store: RunStore, run_id: str) -> bool:
    """Whether an engine that asks for letters at this very moment gets none."""
    taken = await store.take(run_id, owner="a third engine", at_most=1, lease=60.0)
    return not taken.claims and taken.waiting is Waiting.NOT_RUNNING


async def history_of(store: RunStore, run_id: str) -> list[str]:
    """What happened to it. Each line begins where the one before it ended."""
    lines = await store.run_history(run_id)
    assert [line.before for line in lines[1:]] == [line.after for line in lines[:-1]]
    return [line.what for line in lines]


async def test_f18_after_a_cancel_is_acknowledged_nothing_more_is_taken_and_the_rest_is_given_back(
    stage: Callable[[int], Any],
) -> None:
    on: Stage = await stage(LETTERS)
    on.shop.outcome = all_is_well
    run = await on.store.create_run(SLOWLY, by=ANN)
    for _ in range(2):
        await on.engine()
    await until(lambda: on.sent(run.id, at_least=1))

    acknowledged = await on.store.change_run(run.id, RunChange.CANCEL, by=BOB)
    assert await asks_in_vain(on.store, run.id)

    await until(lambda: on.nothing_in_hand(run.id))
    await until(lambda: on.all_handled(run.id))
    ended = await on.run(run.id)
    assert ended.status is RunStatus.CANCELLED
    assert ended.progress.taken == acknowledged.progress.taken < LETTERS
    assert ended.progress.sent - acknowledged.progress.sent <= acknowledged.progress.in_hand <= 2 * WINDOW
    assert adds_up(acknowledged)
    assert adds_up(ended)
    await until(lambda: on.shop.count(Status.RESOLVED, at_least=ended.progress.sent))
    unsent = LETTERS - ended.progress.sent
    assert await on.statuses() == {"RESOLVED": ended.progress.sent, "PENDING": unsent}
    assert set(on.redrive_ids().values()) == {1}
    assert await history_of(on.store, run.id) == ["requested", "cancelled"]


async def test_f18_a_run_that_is_paused_and_resumed_again_and_again_sends_each_letter_once(
    stage: Callable[[int], Any],
) -> None:
    on: Stage = await stage(LETTERS)
    on.shop.outcome = all_is_well
    run = await on.store.create_run(AT_EASE, by=ANN)
    for _ in range(2):
        await on.engine()
    for sent in (1, 11, 21):
        await until(lambda least=sent: on.sent(run.id, at_least=least))  # type: ignore[misc]  # a number
        paused = await on.store.change_run(run.id, RunChange.PAUSE, by=BOB)
        assert adds_up(paused)
        await on.store.change_run(run.id, RunChange.RESUME, by=ANN)

    await until(lambda: on.in_status(run.id, RunStatus.DONE))
    await until(lambda: on.shop.count(Status.RESOLVED, at_least=LETTERS))

    ended = await on.run(run.id)
    assert (ended.progress.sent, ended.progress.confirmed, ended.remaining) == (LETTERS, LETTERS, 0)
    assert adds_up(ended)
    assert len(on.redrive_ids()) == LETTERS
    assert set(on.redrive_ids().values()) == {1}
    assert await history_of(on.store, run.id) == ["requested", *(["paused", "resumed"] * 3), "finished"]


async def test_f18_nothing_is_taken_while_a_run_is_paused(stage: Callable[[int], Any]) -> None:
    on: Stage = await stage(LETTERS)
    on.shop.outcome = all_is_well
    run = await on.store.create_run(SLOWLY, by=ANN)
    for _ in range(2):
        await on.engine()
    await until(lambda: on.sent(run.id, at_least=1))

    paused = await on.store.change_run(run.id, RunChange.PAUSE, by=BOB)
    assert await asks_in_vain(on.store, run.id)
    later = await on.store.create_run(replace(PLAN, selection=LetterQuery(ids=())), by=ANN)
    await until(lambda: on.in_status(later.id, RunStatus.DONE))  # so long the engines have gone on

    assert (await on.run(run.id)).progress.taken == paused.progress.taken
    assert not (await on.run(run.id)).exhausted
    cancelled = await on.store.change_run(run.id, RunChange.CANCEL, by=BOB)
    await until(lambda: on.nothing_in_hand(run.id))
    assert (await on.run(run.id)).progress.taken == cancelled.progress.taken == paused.progress.taken


async def test_f18_of_two_who_approve_at_once_one_does_and_the_run_goes_once(stage: Callable[[int], Any]) -> None:
    on: Stage = await stage(40)
    on.shop.outcome = all_is_well
    others = [await on.engine() for _ in range(2)]
    ends = SystemClock().now().replace(year=2100)
    approval = Approval(digest=PLAN.digest(40), expires_at=ends, why="many")
    run = await on.store.create_run(PLAN, by=ANN, approval=approval)

    said = await asyncio.gather(
        *(
            store.change_run(run.id, RunChange.APPROVE, by=by)
            for store, by in zip((*others, *others), (BOB, CAROL, CAROL, BOB), strict=True)
        ),
        return_exceptions=True,
    )

    refused = [each for each in said if isinstance(each, TransitionRefused)]
    assert len(refused) == 3, said
    await until(lambda: on.in_status(run.id, RunStatus.DONE))
    await until(lambda: on.shop.count(Status.RESOLVED, at_least=40))
    assert await history_of(on.store, run.id) == ["requested", "approved", "finished"]
    assert list(on.redrive_ids().values()) == [1] * 40


async def test_f18_people_who_change_a_run_all_at_once_leave_one_story_that_adds_up(
    stage: Callable[[int], Any],
) -> None:
    on: Stage = await stage(LETTERS)
    on.shop.outcome = lambda number: None if number % 3 else no_such_customer(number)
    run = await on.store.create_run(AT_EASE, by=ANN)
    others = [await on.engine() for _ in range(2)]
    await until(lambda: on.sent(run.id, at_least=1))
    changes = [RunChange.PAUSE, RunChange.RESUME] * 6 + [RunChange.CANCEL] * 2

    said = await asyncio.gather(
        *(others[place % 2].change_run(run.id, change, by=BOB) for place, change in enumerate(changes)),
        return_exceptions=True,
    )

    done = [each for each in said if not isinstance(each, BaseException)]
    assert all(isinstance(each, Run | TransitionRefused) for each in said), said
    assert all(map(adds_up, done))
    assert (await on.run(run.id)).status in ENDED
    story = await history_of(on.store, run.id)
    assert len(story) == 1 + len(done)
    assert story[-1] == "cancelled"
    await until(lambda: on.nothing_in_hand(run.id))
    await until(lambda: on.all_handled(run.id))
    await until(lambda: _every_word_is_said(on, run.id))
    ended = await on.run(run.id)
    assert adds_up(ended)
    assert await on.statuses() == {
        "RESOLVED": ended.progress.confirmed,
        "PENDING": LETTERS - ended.progress.confirmed,
    }


async def _every_word_is_said(on: Stage, run_id: str) -> bool:
    return (await on.run(run_id)).progress.without_word == 0


# F19.


async def test_f19_confirmations_before_the_mark_resolve_and_the_mark_changes_nothing(
    stage: Callable[[int], Any],
) -> None:
    on: Stage = await stage(12)
    on.shop.outcome = all_is_well
    engine = await on.engine(slow=True)
    run = await on.store.create_run(replace(PLAN, rate=None), by=ANN)
    await until(lambda: on.shop.count(Status.RESOLVED, at_least=12))
    before = await on.run(run.id)

    await until(lambda: engine.marking)
    engine.may_mark.set()

    await until(lambda: on.in_status(run.id, RunStatus.DONE))
    assert (before.progress.confirmed, before.progress.in_hand) == (12, 0)
    assert (await on.run(run.id)).progress == before.progress
    assert await on.statuses() == {"RESOLVED": 12}


async def test_f19_letters_that_come_back_before_the_mark_are_pending_and_the_mark_changes_nothing(
    stage: Callable[[int], Any],
) -> None:
    on: Stage = await stage(12)
    engine = await on.engine(slow=True)
    run = await on.store.create_run(replace(PLAN, rate=None), by=ANN)
    await until(lambda: on.shop.count(Status.PENDING, at_least=12) if len(on.shop.charged) == 12 else False)
    before = await on.run(run.id)

    await until(lambda: engine.marking)
    engine.may_mark.set()

    await until(lambda: on.in_status(run.id, RunStatus.DONE))
    assert (before.progress.came_back_same, before.progress.in_hand) == (12, 0)
    assert (await on.run(run.id)).progress == before.progress
    generations = [letter.generation for letter in await on.shop.opened.letters(status=Status.PENDING)]
    assert generations == [2] * 12


@pytest.mark.parametrize("first_copy_is_well", [True, False])
async def test_f19_of_two_copies_one_confirmed_and_one_back_before_both_marks_the_letter_waits_for_a_person(
    stage: Callable[[int], Any],
    first_copy_is_well: bool,  # noqa: FBT001  pytest names it
) -> None:
    on: Stage = await stage(4)
    seen: Counter[int] = Counter()

    def one_of_two(number: int) -> Exception | None:
        seen[number] += 1
        return None if (seen[number] == 1) is first_copy_is_well else no_such_customer(number)

    on.shop.outcome = one_of_two
    slow = await on.engine(slow=True, lease=0.2)
    on.shop.gate.clear()  # nobody handles the first copies before there are second ones
    run = await on.store.create_run(replace(PLAN, rate=None), by=ANN)
    await until(lambda: slow.marking)
    other = await on.engine(slow=True)
    await until(lambda: other.marking)

    on.shop.gate.set()
    await until(lambda: len(on.shop.charged) >= 8)
    await until(on.shop.opened.empty)
    before = await on.run(run.id)
    slow.may_mark.set()
    other.may_mark.set()

    await until(lambda: on.in_status(run.id, RunStatus.DONE))
    ended = await on.run(run.id)
    assert (ended.progress.came_back, ended.progress.in_hand) == (4, 0)
    assert ended.progress == before.progress
    assert len(on.redrive_ids()) == 4
    assert min(on.redrive_ids().values()) >= 2
    assert [letter.generation for letter in await on.shop.opened.letters()] == [2] * 4
    assert await on.statuses() == {"PENDING": 4}
