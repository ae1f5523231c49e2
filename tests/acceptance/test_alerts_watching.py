"""Alerts by themselves on real stores, with a real outbox and a receiver of HTTP: floods, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from redrive import App
from redrive.alerts.channels import open_channel
from redrive.alerts.dispatch import Dispatcher, Line
from redrive.alerts.incident import IncidentChange, IncidentStatus
from redrive.alerts.observed import ProcessReport, ProcessRole
from redrive.alerts.outbox import Outbox
from redrive.alerts.rule import DEFAULTS, RuleKind
from redrive.alerts.texts import Texts
from redrive.clock import SystemClock
from redrive.dead_letter import Actor, Entry, Status, Transition
from redrive.failure import FailureKind
from redrive.letter_query import LetterQuery
from redrive.outgoing import Outgoing
from redrive.privacy.maskers import Maskers
from redrive.statistics import HandlerTally
from redrive.stores import Store, open_store
from redrive.stores.upgrade import upgrade
from redrive.testing.clock import ManualClock
from redrive.testing.letters import NOON, a_failure, an_entry
from redrive.watching import Watch
from support.alert_receivers import Receiver, black_hole
from support.alerts import SECRET
from support.dead_letters import an_order
from support.listener import listening
from support.patience import until
from support.workshop import workshop

ANN = Actor("ann")
GROUPS = [DEFAULTS[RuleKind.NEW_GROUP], DEFAULTS[RuleKind.CRITICAL]]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    found = (
        f"sqlite:///{tmp_path}/store.db"
        if request.param == "sqlite"
        else cast("str", request.getfixturevalue("postgres_store_url"))
    )
    upgrade(found)
    return found


class House:
    """One server's part: a store, an outbox, a courier to the receiver."""

    def __init__(self, store: Store, dispatcher: Dispatcher, watch: Watch) -> None:
        self.store = store
        self.dispatcher = dispatcher
        self.watch = watch


@asynccontextmanager
async def a_server(
    url: str, folder: Path, receiver: Receiver, clock: ManualClock, *, holder: str = "one", **given: Any
) -> AsyncIterator[House]:
    store, outbox = open_store(url, clock=clock), Outbox(folder / f"{holder}.db")
    outgoing = Outgoing(allowed=(f"localhost:{receiver.port}",))
    channel = open_channel(f"http://localhost:{receiver.port}/", secret=SECRET, texts=Texts(), outgoing=outgoing)
    dispatcher = Dispatcher({"ops": Line(channel)}, outbox, clock=clock)
    working = asyncio.create_task(dispatcher.run())
    watch = Watch(
        given.pop("rules", GROUPS),
        store=store,
        tell=dispatcher.hand_over,
        masks=Maskers(),
        clock=clock,
        holder=holder,
        every=15.0,
    )
    try:
        yield House(store, dispatcher, watch)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await outbox.close()
        await store.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON + timedelta(minutes=1))


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


async def record(store: Store, *entries: Entry) -> None:
    for start in range(0, len(entries), 500):
        await store.record_together(entries[start : start + 500])


def told(receiver: Receiver) -> list[tuple[str, str]]:
    return [(each.json["state"], each.json["rule"]) for each in receiver.told]


async def test_ten_thousand_letters_of_one_cause_are_one_alert_by_the_usual_rules(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    rules = list(DEFAULTS.values())
    async with listening(receiver), a_server(url, tmp_path, receiver, clock, rules=rules) as house:
        entries = [an_entry(group="flood", message=an_order(), at=clock.now()) for _ in range(10_000)]
        for quarter in range(4):  # it goes on while rules are looked at
            await record(house.store, *entries[quarter * 2500 : (quarter + 1) * 2500])
            await house.watch.look()
            clock.advance(15)
        await until(lambda: receiver.told)
        for _ in range(2):  # so many are pending all through the window of `pending`
            clock.advance(300)
            await house.watch.look()
        (incident,) = await house.store.incidents()
        assert incident.counts == {"letters": 10_000}

        while found := await house.store.find(LetterQuery(status=Status.PENDING, limit=500)):
            await house.store.change([letter.id for letter in found], Transition.DISCARD, by=ANN)
        await house.watch.look()
        await until(lambda: len(receiver.told) == 3)

    # Told when it was new, once more when it was worse than that, and when it was over.
    assert told(receiver) == [("raised", "new_group"), ("raised", "new_group"), ("resolved", "new_group")]
    assert [each.json["severity"] for each in receiver.told] == ["warning", "error", "error"]
    assert len({each.json["dedup_key"] for each in receiver.told}) == 1
    assert b"order_id" not in b"".join(each.body for each in receiver.told)


async def test_three_hundred_causes_at_once_are_eleven_messages(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    async with listening(receiver), a_server(url, tmp_path, receiver, clock) as house:
        await record(house.store, *(an_entry(group=f"cause {number}") for number in range(300)))
        for _ in range(2):
            await house.watch.look()
            clock.advance(15)
        await until(lambda: len(receiver.told) >= 11)
        await house.watch.look()

        assert len(receiver.told) == 11
        found = [each.json for each in receiver.told if each.json["dedup_key"].endswith("(many)")]
        assert [each["counts"] for each in found] == [{"failures": 290, "letters": 290}]


async def test_a_restart_in_the_middle_repeats_nothing_and_loses_nothing(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    critical = (a_failure(kind=FailureKind.CRITICAL),)
    async with listening(receiver):
        async with a_server(url, tmp_path, receiver, clock) as house:
            letter_id, _ = await house.store.record(an_entry(failures=critical))
            await house.watch.look()
            await until(lambda: len(receiver.told) == 1)
        clock.advance(3600 * 5)  # the lease of the one before is over, and so are cooldowns
        async with a_server(url, tmp_path, receiver, clock, holder="two") as house:
            for _ in range(3):
                await house.watch.look()
            await record(house.store, an_entry(group="another", at=clock.now()))
            await house.watch.look()
            await until(lambda: len(receiver.told) == 2)
            await house.store.change([letter_id], Transition.RESOLVE, by=ANN)
            await house.watch.look()
            await until(lambda: len(receiver.told) == 3)

    assert sorted(told(receiver)) == [("raised", "critical"), ("raised", "new_group"), ("resolved", "critical")]
    ids = [each.headers["webhook-id"] for each in receiver.told]
    assert len(set(ids)) == len(ids)


async def test_of_two_servers_one_looks_and_the_other_takes_over_when_it_is_gone(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    async with (
        listening(receiver),
        a_server(url, tmp_path, receiver, clock) as one,
        a_server(url, tmp_path, receiver, clock, holder="two") as two,
    ):
        await record(one.store, an_entry())
        looked = [await each.watch.look() for each in (one, two, one, two)]
        assert [each is None for each in looked] == [False, True, False, True]

        clock.advance(61)
        assert await two.watch.look() == []
        assert await one.watch.look() is None
        await until(lambda: receiver.told)
    assert told(receiver) == [("raised", "new_group")]


async def test_what_a_person_resolved_is_told_by_whoever_looks_next(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    async with listening(receiver), a_server(url, tmp_path, receiver, clock) as house:
        await record(house.store, an_entry())
        await house.watch.look()
        await until(lambda: receiver.told)
        (incident,) = await house.store.incidents()
        await house.store.change_incident(incident.id, IncidentChange.RESOLVE, by=ANN)
        await house.watch.look()
        await until(lambda: len(receiver.told) == 2)
        await house.watch.look()

        assert told(receiver)[-1] == ("resolved", "new_group")
        (over,) = await house.store.incidents()
        assert (over.status, over.held, over.message) == (IncidentStatus.RESOLVED, True, None)


async def test_an_outbox_that_cannot_be_written_loses_nothing(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    async with listening(receiver), a_server(url, tmp_path, receiver, clock) as house:
        (tmp_path / "one.db").mkdir()
        await record(house.store, an_entry())
        await house.watch.look()
        (incident,) = await house.store.incidents()
        assert incident.message is not None

        (tmp_path / "one.db").rmdir()
        clock.advance(15)
        assert await house.watch.look() is None  # it leaves it to others for a while
        clock.advance(60)
        await house.watch.look()
        await until(lambda: receiver.told)
        (incident,) = await house.store.incidents()
        assert incident.message is None
    assert told(receiver) == [("raised", "new_group")]


async def test_no_name_that_others_have_given_stops_alerts(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    names = ["\ud800", "\ud801", "a\x00b", "x" * 5000, "line\nbreak", "</script>", "\u202e"]
    each_queue = replace(DEFAULTS[RuleKind.RATE], each_queue=True, threshold=0)
    # Told to some alone, the critical failures do not tell what the rate tells all.
    critical = replace(DEFAULTS[RuleKind.CRITICAL], channels=("ops",))
    rules = [each_queue, DEFAULTS[RuleKind.FAILURE_RATE], critical]
    async with listening(receiver), a_server(url, tmp_path, receiver, clock, rules=rules) as house:
        await house.watch.look()
        for number, name in enumerate(names):
            failed = a_failure(kind=FailureKind.CRITICAL, at=clock.now(), text=f"{name} failed", handler=name)
            entry = an_entry(queue=name, handler=name, group=str(number), failures=(failed,), at=clock.now())
            await record(house.store, entry)
            await house.store.tally([HandlerTally(name, name, 5, 50)])
        clock.advance(15)
        await house.watch.look()
        await until(lambda: len(receiver.told) == 3 * len(names))
        assert {each.queue for each in await house.store.incidents(limit=100)} == {"", *names}
        clock.advance(15)
        await house.watch.look()
    assert len({each.json["dedup_key"] for each in receiver.told}) == 3 * len(names)


async def test_a_server_that_cannot_hand_over_leaves_it_to_one_that_can(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    async with (
        listening(receiver),
        a_server(url, tmp_path, receiver, clock) as one,
        a_server(url, tmp_path, receiver, clock, holder="two") as two,
    ):
        (tmp_path / "one.db").mkdir()
        await record(one.store, an_entry())
        await one.watch.look()
        await two.watch.look()
        await until(lambda: receiver.told)
        assert await one.watch.look() is None
    assert told(receiver) == [("raised", "new_group")]


async def test_a_server_that_was_suspended_tells_nothing_behind_the_one_that_took_over(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    async with (
        listening(receiver),
        a_server(url, tmp_path, receiver, clock) as one,
        a_server(url, tmp_path, receiver, clock, holder="two") as two,
    ):
        (letter_id, _), *_ = await one.store.record_together([an_entry()])
        hold = one.store.hold_duty

        async def suspended(*given: Any, **more: Any) -> bool:
            clock.advance(120)
            await two.watch.look()
            await two.store.change([letter_id], Transition.RESOLVE, by=ANN)
            await two.watch.look()
            return await hold(*given, **more)

        setattr(one.store, "hold_duty", suspended)  # noqa: B010  mypy knows that it is a method
        await one.watch.look()
        setattr(one.store, "hold_duty", hold)  # noqa: B010  as above
        await until(lambda: len(receiver.told) == 2)
    assert [each.json["state"] for each in receiver.told] == ["raised", "resolved"]


async def test_after_an_absence_of_the_store_nobody_is_missed_who_had_no_time_to_report(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    rules = [DEFAULTS[RuleKind.WORKER_DOWN]]
    report = ProcessReport(id="p1", role=ProcessRole.WORKER, host="h1", pid=1, queues=("orders",))
    async with listening(receiver), a_server(url, tmp_path, receiver, clock, rules=rules) as house:
        await house.store.report(report)
        for _ in range(6):
            assert await house.watch.look() == []
            clock.advance(15)
        clock.advance(300)  # nobody could look, and nobody could report
        assert await house.watch.look() == []
        await house.store.report(report)
        for _ in range(8):
            clock.advance(15)
            assert await house.watch.look() == []
        clock.advance(15)  # since then it has been silent for longer than the window
        found = await house.watch.look()
        assert [each.key for each in found or ()] == ["worker_down/orders"]


async def test_a_worker_goes_on_recording_while_a_channel_hangs(tmp_path: Path) -> None:
    """F32, from the handler that fails to the receiver that does not answer, all of it real."""
    app = App("shop")

    @app.handler("orders")
    def charge(order: dict[str, int]) -> None:
        raise ValueError(f"no customer {order}")

    async with black_hole() as (port, connected), workshop(app, tmp_path) as shop:
        store, outbox = cast("Store", shop.worker.store), Outbox(tmp_path / "alerts.db")
        outgoing = Outgoing(allowed=(f"localhost:{port}",))
        channel = open_channel(f"http://localhost:{port}/", secret=SECRET, texts=Texts(), outgoing=outgoing)
        dispatcher = Dispatcher({"ops": Line(channel)}, outbox, clock=SystemClock())
        given: dict[str, Any] = {"masks": Maskers(), "clock": SystemClock(), "holder": "one", "every": 15.0}
        watch = Watch(GROUPS, store=store, tell=dispatcher.hand_over, **given)
        working = asyncio.create_task(dispatcher.run())

        async def recorded(number: int) -> bool:
            return len(await shop.letters()) == number

        await shop.send("orders", {"number": 1})
        await until(lambda: recorded(1))
        await watch.look()
        await until(lambda: connected)
        await shop.send("orders", *({"number": number} for number in range(5)))
        await until(lambda: recorded(6))
        await watch.look()
        assert (await outbox.figures())["ops"].delivered == 0
        assert shop.worker.ready

        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await outbox.close()


async def test_what_comes_back_minutes_after_a_person_settled_it_is_told_at_once_by_its_right_name(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    rules = [DEFAULTS[kind] for kind in (RuleKind.NEW_GROUP, RuleKind.RETURNING_GROUP)]
    async with listening(receiver), a_server(url, tmp_path, receiver, clock, rules=rules) as house:

        async def fails(minutes: float) -> list[str]:
            clock.set_wall(NOON + timedelta(minutes=minutes))
            failure = a_failure(at=clock.now())
            letter_id, _ = await house.store.record(an_entry(failures=(failure,), at=clock.now()))
            found = await house.watch.look() or []
            clock.advance(60)
            await house.store.change([letter_id], Transition.RESOLVE, by=ANN)
            await house.watch.look()
            return sorted(each.rule for each in found if each.last_message and each.is_firing)

        assert await fails(5) == ["new_group"]
        assert await fails(22) == ["returning_group"]
        assert await fails(90) == ["returning_group"]


async def test_a_new_failure_that_stays_is_not_told_again_as_one_that_is_back(
    url: str, tmp_path: Path, receiver: Receiver, clock: ManualClock
) -> None:
    clock.set_wall(NOON + timedelta(minutes=10))
    rules = [DEFAULTS[RuleKind.NEW_GROUP], DEFAULTS[RuleKind.RETURNING_GROUP]]
    async with listening(receiver), a_server(url, tmp_path, receiver, clock, rules=rules) as house:
        await record(house.store, an_entry(at=clock.now()))
        for _ in range(30):
            await house.watch.look()
            clock.advance(300)
        assert [each.rule for each in await house.store.incidents()] == ["new_group"]
