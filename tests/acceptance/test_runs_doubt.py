"""`redrive runs settle`: letters of a cancelled run whose engine was killed while it sent them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from sqlalchemy import update

from redrive.access import local
from redrive.actions import Actions
from redrive.control import read_ticket
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from redrive.run import RunChange
from redrive.stores.schema import claims
from redrive.testing.clock import ManualClock
from redrive.testing.store_case import ANN
from redrive.testing.store_runs import a_plan, running, take
from support.dead_letters import an_order, dead
from support.desk import Desk
from support.patience import until
from support.serving import serving

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.stores import RunStore
    from redrive.transports import Transport


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_store_url")
    return Desk(tmp_path, store_url=url)


def sent_and_killed(desk: Desk) -> list[str]:
    """Letters that an engine has sent before it was killed."""
    ids = desk.record(*(dead(an_order(number)) for number in range(3)))
    killed = desk.process("retry", "--queue", "orders", "--yes", faults="engine.sent=kill9")
    assert killed.returncode == -9, killed.stderr
    return ids


def cancelled(desk: Desk, *, leases_over: bool = True) -> str:
    """The id of the one run there is."""

    async def work(store: Any, _transport: Transport) -> str:
        [run] = await store.runs()
        if leases_over:  # as a minute and a half later
            over = datetime.now(UTC) - timedelta(seconds=1)
            await store._write(lambda connection: connection.execute(update(claims).values(lease_until=over)))
        return str((await store.change_run(run.id, RunChange.CANCEL, by=ANN)).id)

    run_id: str = desk.do(work)
    return run_id


def shown(desk: Desk, run: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(desk.redrive("runs", "show", run, "--output", "json").out)
    return told


def tickets(desk: Desk) -> list[str]:
    """The redrive ids of all that arrived."""

    async def key(store: RunStore, _transport: Transport) -> bytes:
        return await store.signing_key()

    secret = desk.do(cast("Any", key))
    found = [read_ticket(each.message.headers, "orders", secret) for each in desk.take("orders")]
    return [each.redrive_id for each in found if each is not None]


def test_a_run_tells_what_is_in_doubt_and_what_to_do(desk: Desk) -> None:
    sent_and_killed(desk)
    run = cancelled(desk)

    page = desk.redrive("runs", "show", run).out

    assert "3 letters are in doubt: sent or not, nobody knows" in page
    assert f"redrive runs settle {run} --send-again" in page
    assert shown(desk, run)["in_doubt"] == 3
    assert [each["in_doubt"] for each in json.loads(desk.redrive("runs", "list", "--output", "json").out)] == [3]


def test_sent_again_they_have_the_same_redrive_ids(desk: Desk) -> None:
    ids = sent_and_killed(desk)
    run = cancelled(desk)

    ended = desk.redrive("runs", "settle", run, "--send-again", "--yes")

    assert (ended.code, ended.out) == (0, "Sent 3 letters back.\n"), ended.err
    arrived = tickets(desk)
    assert (len(arrived), len(set(arrived))) == (6, 3)
    assert {desk.letter(each).status for each in ids} == {Status.REDRIVEN}
    told = shown(desk, run)
    assert (told["in_doubt"], told["sent"], told["in_hand"]) == (0, 3, 0)


def test_whoever_knows_that_they_were_sent_says_so_with_a_reason(desk: Desk) -> None:
    ids = sent_and_killed(desk)
    run = cancelled(desk)

    without = desk.redrive("runs", "settle", run, "--sent", "--yes")
    ended = desk.redrive("runs", "settle", run, "--sent", "--reason", "seen in the queue", "--yes", "--as", "ann")

    assert without.code == 2
    assert (ended.code, ended.out) == (0, "Took 3 letters as sent.\n"), ended.err
    assert len(desk.take("orders")) == 3
    letter = desk.letter(ids[0])
    assert letter.status is Status.REDRIVEN
    assert (letter.history[-1].what, letter.history[-1].reason) == ("sent", "seen in the queue")
    assert letter.history[-1].by.split()[0] == "ann"


def test_while_an_engine_may_be_at_it_nothing_is_in_doubt(desk: Desk) -> None:
    sent_and_killed(desk)
    run = cancelled(desk, leases_over=False)

    ended = desk.redrive("runs", "settle", run, "--send-again", "--yes")

    assert (ended.code, ended.out) == (3, f"No letter of run {run} is in doubt.\n")
    assert len(desk.take("orders")) == 3


@pytest.mark.parametrize("said", [(), ("--sent", "--send-again")])
def test_one_of_the_two_has_to_be_said(desk: Desk, said: tuple[str, ...]) -> None:
    assert desk.redrive("runs", "settle", "0" * 36, *said, "--yes").code == 2


async def test_interrupted_before_their_turn_they_stay_in_doubt_and_are_no_new_letters(desk: Desk) -> None:
    """Given back as unsent they would be sent once more, under another id."""
    store: Any = desk.store()
    transport, clock = desk.transport(), ManualClock()
    await store.record_together([dead(an_order(number)) for number in range(3)])
    run_id = await running(store, a_plan())
    await store.let_go((await take(store, run_id)).claims)
    run = await store.change_run(run_id, RunChange.CANCEL, by=ANN)
    actions = Actions(store=store, transport=transport, clock=clock, who=local("ann"))

    sending = asyncio.create_task(actions.send_again(run, rate=0.5))
    await until(lambda: clock.sleeping)
    await until(lambda: store.find(LetterQuery(status=Status.REDRIVEN)))
    sending.cancel()
    await asyncio.wait({sending})

    statuses = sorted(letter.status for letter in await store.find(LetterQuery()))
    assert statuses == [Status.REDRIVEN, Status.REDRIVING, Status.REDRIVING]
    await transport.close()
    await store.close()


async def test_some_at_a_time_are_as_many_as_were_asked_for_and_nobody_waits_behind_the_last(desk: Desk) -> None:
    store: Any = desk.store()
    transport = desk.transport()
    await store.record_together([dead(an_order(number)) for number in range(5)])
    run_id = await running(store, a_plan())
    await store.let_go((await take(store, run_id)).claims)
    run = await store.change_run(run_id, RunChange.CANCEL, by=ANN)
    actions = Actions(store=store, transport=transport, clock=ManualClock(), who=local("ann"))

    sent = await actions.send_again(run, rate=0.01, at_most=1)  # a clock that stands still: it waits for nothing
    more = await actions.send_again(run, at_most=2)
    taken = [await actions.take_as_sent(run, "seen", at_most=each) for each in (1, 2, 2)]

    assert (len(sent), len(more), taken) == (1, 2, [1, 1, 0])
    await transport.close()
    await store.close()


async def test_named_letters_that_somebody_had_in_hand_stay_too(desk: Desk) -> None:
    store: Any = desk.store()
    transport, clock = desk.transport(), ManualClock()
    ids = [letter for letter, _ in await store.record_together([dead(an_order(each)) for each in range(2)])]
    await store.claim(ids, owner="a process that died", lease=0.0)
    actions = Actions(store=store, transport=transport, clock=clock, who=local("ann"))

    sending = asyncio.create_task(actions.retry(ids, rate=0.5, begun=True))
    await until(lambda: clock.sleeping)
    await until(lambda: store.find(LetterQuery(status=Status.REDRIVEN)))
    sending.cancel()
    await asyncio.wait({sending})

    statuses = sorted(letter.status for letter in await store.find(LetterQuery()))
    assert statuses == [Status.REDRIVEN, Status.REDRIVING]
    await transport.close()
    await store.close()


@pytest.mark.parametrize(
    ("options", "said", "arriving"),
    [
        (("--send-again",), "Sent 3 letters back.\n", 6),
        (("--send-again", "--rate", "1000"), "Sent 3 letters back.\n", 6),
        (("--sent", "--reason", "seen in the queue"), "Took 3 letters as sent.\n", 3),
    ],
    ids=["again", "at a rate", "sent"],
)
def test_through_a_server_it_is_the_same(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str, arriving: int
) -> None:
    ids = sent_and_killed(desk)
    run = cancelled(desk)
    monkeypatch.setattr("redrive.remote.runs.SETTLED_AT_ONCE", 2)  # so that it takes more than one question
    command = ("runs", "settle", run, *options, "--yes")
    with serving(desk, "--no-engine") as served:
        monkeypatch.setenv("REDRIVE_TOKEN", served.token)
        without = desk.redrive("--server", served.url, "runs", "settle", run, "--sent", "--yes")
        ended = desk.redrive("--server", served.url, *command)
        again = desk.redrive("--server", served.url, *command)

    assert without.code == 2
    assert (ended.code, ended.out) == (0, said), ended.err
    assert (again.code, again.out) == (3, f"No letter of run {run} is in doubt.\n")
    assert len(desk.take("orders")) == arriving
    letter = desk.letter(ids[0])
    assert letter.status is Status.REDRIVEN
    assert letter.history[-1].by.startswith("token:")
