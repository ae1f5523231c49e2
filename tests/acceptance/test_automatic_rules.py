"""Rules that retry by themselves: what heals is healed, what does not is left alone, and windows are kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime, time, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import pytest

from redrive import App, Message, Retry
from redrive.approvals import ApprovalRules
from redrive.automatic import AutomaticRuns
from redrive.automatic_wiring import serve_beside
from redrive.dead_letter import Actor, Status
from redrive.engine import RedriveEngine
from redrive.letter_query import LetterQuery
from redrive.rules import AutomaticRule, Window
from redrive.run import Canary, Run, RunChange, RunStatus
from redrive.run_policy import RunPolicy
from redrive.settings import Settings
from redrive.stores import sql_runs_recounting
from redrive.testing import ManualClock
from redrive.testing.letters import an_entry
from redrive.uptime import Uptime, uptime
from support.patience import until
from support.run_shop import RunShop, all_is_well
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
    from pathlib import Path

    from redrive.stores import RunStore
    from support.workshop import Workshop

LOOK = 0.05


class Shop:
    """Orders from 100 on can never be charged, those from 10 on not while the bank is away, and the others not
    before their third time.
    """

    def __init__(self) -> None:
        self.app = App("shop", retry=Retry(1, "5s"))
        self.app.handler("orders", name="charge")(self.charge)
        self.tried: Counter[int] = Counter()

    async def charge(self, message: Message) -> None:
        number = int(message.payload or b"0")
        self.tried[number] += 1
        if number >= 100:
            raise ValueError("no such customer")
        if number >= 10 or self.tried[number] < 3:
            raise TimeoutError("the bank does not answer")


def runs_of(shop: Workshop) -> RunStore:
    return cast("RunStore", shop.store)


def an_engine(shop: Workshop) -> RedriveEngine:
    return RedriveEngine(store=runs_of(shop), transport=shop.transport, clock=shop.clock, owner="engine")


def automatic(shop: Workshop, *rules: AutomaticRule, **given: Any) -> AutomaticRuns:
    return AutomaticRuns(
        rules, store=runs_of(shop), transport=shop.transport, clock=shop.clock, every=LOOK, **given
    )


@asynccontextmanager
async def beside(*serving: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in serving]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def dead(shop: Workshop, *numbers: int) -> None:
    for number in numbers:
        await shop.send_foreign("orders", b"%d" % number)
    await until(lambda: is_counted(shop, Status.PENDING, len(numbers)))


async def is_counted(shop: Workshop, status: Status, number: int) -> bool:
    return (await shop.store.count(LetterQuery(status=status))).number == number


async def test_what_heals_is_healed_and_what_does_not_is_left_at_its_limit(tmp_path: Path) -> None:
    shop = Shop()
    rule = AutomaticRule(name="technical", when="kind:transient queue:orders", wait=0.0, at_most=2)
    async with workshop(shop.app, tmp_path) as opened:
        await dead(opened, 1, 2, 3, 10, 11, 100)
        both = [automatic(opened, rule), automatic(opened, rule)]
        async with beside(an_engine(opened).serve(), *(each.serve() for each in both)):
            await until(lambda: is_counted(opened, Status.RESOLVED, 3))
            await until(lambda: all_have_ended(opened))

        await both[0].look()
        runs = await runs_of(opened).runs()
        assert all(run.status is RunStatus.DONE for run in runs)
        assert {(run.plan.rule, run.requested_by) for run in runs} == {("technical", "rule technical")}
        assert shop.tried == {1: 3, 2: 3, 3: 3, 10: 3, 11: 3, 100: 1}
        left = await opened.letters(status=Status.PENDING)
        assert sorted((letter.generation, letter.kind) for letter in left) == [
            (1, "permanent"),
            (3, "transient"),
            (3, "transient"),
        ]


async def all_have_ended(shop: Workshop) -> bool:
    """The stubborn ones were tried three times, and nothing runs any more."""
    stubborn = await shop.store.find(LetterQuery(status=Status.PENDING))
    third = sum(letter.generation == 3 for letter in stubborn)
    return third == 2 and not await runs_of(shop).runs(active=True)


async def test_a_canary_stops_the_run_and_the_rest_of_its_letters_waits(tmp_path: Path) -> None:
    shop = Shop()
    rule = AutomaticRule(name="careful", when="kind:transient", wait=3600.0, canary=Canary(steps=(2,)))
    clock = Shifted()
    async with workshop(shop.app, tmp_path, clock=clock) as opened:
        await dead(opened, *range(10, 20))
        clock.shift += timedelta(hours=2)
        making = automatic(opened, rule)
        async with beside(an_engine(opened).serve()):
            await making.look()
            await until(lambda: has_status(opened, RunStatus.STOPPED))
        await making.look()

        [run] = await runs_of(opened).runs()
        assert (run.progress.sent, run.why) == (2, "canary: 2 of 2 came back, 20% are allowed")
        clock.shift += timedelta(hours=1, seconds=1)
        await making.look()
        again, _ = await runs_of(opened).runs()
        assert (again.status, again.total) == (RunStatus.RUNNING, 10)


async def test_a_canary_is_judged_by_what_is_so_and_not_by_a_count_that_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_runs_recounting, "LONG", -1.0)  # every count is one that took long,
    monkeypatch.setattr(sql_runs_recounting, "_TIMES", 1e9)  # and stands while the run goes on
    shop = Shop()
    rule = AutomaticRule(name="careful", when="kind:transient", wait=0.0, canary=Canary(steps=(2,)))
    async with workshop(shop.app, tmp_path) as opened:
        await dead(opened, *range(10, 14))
        await automatic(opened, rule).look()
        assert await has_status(opened, RunStatus.RUNNING)  # counted while nothing was taken
        async with beside(an_engine(opened).serve()):
            await until(lambda: has_ended(opened))

        [run] = await runs_of(opened).runs()
        assert (run.status, run.progress.sent) == (RunStatus.STOPPED, 2)


async def has_ended(shop: Workshop) -> bool:
    return not await runs_of(shop).runs(active=True)


class Shifted:
    """The machine's clock, with the wall clock set forward."""

    def __init__(self) -> None:
        self.shift = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.shift

    def monotonic(self) -> float:
        return monotonic()

    def uptime(self) -> Uptime:
        return uptime()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def has_status(shop: Workshop, status: RunStatus) -> Run | None:
    return next((run for run in await runs_of(shop).runs() if run.status is status), None)


async def test_a_rule_asks_for_approval_only_where_the_settings_say_so(tmp_path: Path) -> None:
    shop = Shop()
    rule = AutomaticRule(name="technical", when="kind:transient", wait=0.0)
    async with workshop(shop.app, tmp_path) as opened:
        await dead(opened, 10)
        asking = RunPolicy(approval=ApprovalRules(more_than=0, rules=True))
        await automatic(opened, rule, policy=asking).look()
        [waiting] = await runs_of(opened).runs()
        assert waiting.status is RunStatus.AWAITING_APPROVAL
        await runs_of(opened).change_run(waiting.id, RunChange.CANCEL, by=Actor("ann", "no"))

        other = AutomaticRule(name="other", when="kind:transient", wait=0.0)
        await automatic(opened, other, policy=RunPolicy(approval=ApprovalRules(more_than=0))).look()

        made, _ = await runs_of(opened).runs()
        assert (made.plan.rule, made.status) == ("other", RunStatus.RUNNING)


EVENING = datetime(2026, 3, 1, 18, tzinfo=UTC)
BEFORE_CLOSING = datetime(2026, 3, 2, 4, 59, 50, tzinfo=UTC)
CLOSES = datetime(2026, 3, 2, 5, tzinfo=UTC)
OPENS = datetime(2026, 3, 3, 2, tzinfo=UTC)


async def test_a_window_that_closes_pauses_the_run_and_the_next_one_goes_on_with_it(tmp_path: Path) -> None:
    rule = AutomaticRule(name="night", when="queue:orders", rate=1.0, window=Window(opens=time(2), closes=time(5)))
    clock = ManualClock(EVENING)
    async with workshop(Shop().app, tmp_path, clock=clock, start=False) as opened:
        store, engine = runs_of(opened), an_engine(opened)
        await store.record_together([an_entry(at=EVENING) for _ in range(30)])

        async def some_are_sent() -> bool:
            return (await opened.store.count(LetterQuery(status=Status.REDRIVEN))).number > 0

        async def nothing_is_carried_out() -> bool:
            return all(each.done() for each in engine._executions.values())

        async with beside(engine.serve(), automatic(opened, rule).serve()):
            clock.set_wall(BEFORE_CLOSING)
            await passing(clock, some_are_sent, wall=BEFORE_CLOSING)
            run = await passing(clock, lambda: has_status(opened, RunStatus.PAUSED), wall=CLOSES)
            [_, paused] = await store.run_history(run.id)
            assert (paused.by, paused.reason) == ("rule night", "outside of its window 02:00-05:00 UTC")
            assert paused.at < CLOSES + timedelta(seconds=5)
            await passing(clock, nothing_is_carried_out, wall=CLOSES)
            clock.set_wall(OPENS - timedelta(seconds=20))
            await passing(clock, lambda: is_counted(opened, Status.REDRIVEN, 30))

        sent = [each.sent_at for each in await store.outcomes(run.id) if each.sent_at]
        before_closing = [at for at in sent if at <= CLOSES]
        assert 0 < len(before_closing) < 30
        assert all(at >= OPENS for at in sent if at > CLOSES)
        assert [line.by for line in await store.run_history(run.id)][:3] == ["rule night"] * 3


async def passing(
    clock: ManualClock, condition: Callable[[], Awaitable[Any]], *, wall: datetime | None = None
) -> Any:
    """What the condition gives as soon as that is true; between two looks a quarter of a second passes, however
    long it takes. `wall`: what the wall clock shows meanwhile.
    """
    while not (found := await condition()):
        clock.advance(0.25)
        if wall is not None:
            clock.set_wall(wall)
        await asyncio.sleep(0.005)
    return found


async def test_the_settings_start_both_and_silence_resolves_what_nobody_confirms(tmp_path: Path) -> None:
    values = {
        "rules": {"all": {"when": "queue:orders", "wait": "0s"}},
        "dead_letters": {"assume_after": "1ms"},
    }
    async with workshop(Shop().app, tmp_path, start=False) as opened:
        store = runs_of(opened)
        letter_id, _ = await store.record(an_entry(at=opened.clock.now()))
        settings = Settings.model_validate(values)

        def started(by: Settings) -> Coroutine[Any, Any, None]:
            transport, clock = opened.transport, opened.clock
            return serve_beside(by, store=store, transport=transport, clock=clock, policy=RunPolicy())

        async with beside(an_engine(opened).serve(), started(settings)):
            await until(lambda: is_counted(opened, Status.REDRIVEN, 1))
        async with beside(started(settings)):
            await until(lambda: is_counted(opened, Status.RESOLVED, 1))

        letter = await store.get(letter_id)
        assert letter is not None
        assert letter.how == "assumed"
        await asyncio.wait_for(started(Settings()), 30)  # there is nothing to serve


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_f17_two_schedulers_in_two_engines_make_one_run_of_a_rule(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    url = None if store == "sqlite" else request.getfixturevalue("postgres_store_url")
    shop = RunShop(tmp_path, store_url=url)
    with (tmp_path / "redrive.toml").open("a") as settings:
        settings.write('[rules.technical]\nwhen = "queue:orders type:ValueError"\nwait = "0s"\nrate = 50\n')
    async with shop.with_dead_orders(40):
        shop.outcome = all_is_well
        engines = [await shop.started("engine"), await shop.started("engine")]
        await until(lambda: shop.count(Status.RESOLVED, at_least=40))
        assert [await engine.stop() for engine in engines] == [0, 0]

        [told] = await shop.runs()
        report = await shop.report(told["id"])
        assert (report["rule"], report["requested_by"], report["total"]) == ("technical", "rule technical", 40)
        assert len({message.id for message in shop.charged}) == len(shop.charged) == 40
