"""What a preview says about real letters and a real broker, and how a person reads it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from redrive.cli.output import json_text
from redrive.cli.preview_page import page, preview_record, print_preview
from redrive.letter_query import LetterQuery
from redrive.preview import Level
from redrive.previewing import preview
from redrive.run import Brakes, RunPlan
from redrive.search import parse
from redrive.stores.sqlite import SqliteStore
from redrive.testing.clock import ManualClock
from redrive.testing.letters import NOON, a_failure, a_message, an_entry
from redrive.testing.store_case import returned, sent
from redrive.transports import Names, open_transport
from redrive.transports.inspection import open_inspector
from support.opened_rabbitmq import message, opened
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from redrive.preview import Preview
    from redrive.transports import Transport
    from support.rabbitmq_server import RabbitServer

NOW = NOON + timedelta(days=3)
ORDERS = RunPlan(selection=LetterQuery(where=parse("queue:orders", now=NOW)))


def never(_queue: str) -> float | None:
    return None


def levels(told: Preview) -> dict[str, Level]:
    return {check.name: check.level for check in told.checks}


def text(told: Preview) -> str:
    return "\n".join(line for _, line in page(told, NOW))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    opened_store = SqliteStore(f"sqlite:///{tmp_path}/letters.db", clock=clock)
    yield opened_store
    await opened_store.close()


@pytest.fixture
def broker(tmp_path: Path) -> str:
    return f"embedded:///{tmp_path}/broker.db"


@pytest.fixture
async def transport(broker: str, clock: ManualClock) -> AsyncIterator[Transport]:
    embedded = open_transport(broker, names=Names(), clock=clock)
    yield embedded
    await embedded.close()


async def test_a_harmless_run_is_ok_and_its_digest_is_that_of_its_count(
    store: SqliteStore, transport: Transport, clock: ManualClock
) -> None:
    for _ in range(3):
        await store.record(an_entry())

    told = await preview(ORDERS, store=store, transport=transport, clock=clock, expire_after=never)

    assert told.worst is Level.OK
    assert (told.count, told.by_queue, told.by_target) == (3, {"orders": 3}, {"orders": 3})
    assert told.digest == ORDERS.digest(3)


async def test_an_empty_queue_of_the_embedded_broker_is_no_missing_one(
    store: SqliteStore, broker: str, transport: Transport, clock: ManualClock
) -> None:
    await store.record(an_entry())
    given: dict[str, Any] = {"store": store, "transport": transport, "clock": clock, "expire_after": never}
    inspector = open_inspector(broker, transport)

    empty = await preview(ORDERS, **given, inspector=inspector)
    for _ in range(3):
        await transport.send(a_message())
    full = await preview(
        RunPlan(selection=ORDERS.selection, brakes=Brakes(backlog=2)), **given, inspector=inspector
    )
    unseen = await preview(RunPlan(selection=ORDERS.selection, brakes=Brakes(backlog=2)), **given)

    assert (levels(empty)["target"], levels(empty)["backlog"]) == (Level.OK, Level.OK)
    assert (levels(full)["target"], levels(full)["backlog"]) == (Level.OK, Level.WARN)
    assert levels(unseen)["backlog"] is Level.WARN


async def test_all_that_speaks_against_a_run_is_on_the_page(
    store: SqliteStore, transport: Transport, clock: ManualClock
) -> None:
    tired, _ = await store.record(an_entry(message=a_message(key=b"k")))
    for _ in range(2):
        await store.record(returned(await sent(store, tired)))
    await store.record(an_entry(quarantine="three processes died of it"))

    told = await preview(
        ORDERS, store=store, transport=transport, clock=clock, expire_after={"orders": 86400.0}.get
    )

    warned = {name for name, level in levels(told).items() if level is Level.WARN}
    assert warned == {"earlier redrives", "generations", "expiry", "quarantined", "order"}
    assert "1 letter, the oldest 3d old, the newest 3d old" in text(told)
    assert "last time 0 % came through (2 came back)" in text(told)
    assert text(told).index("warn") < text(told).index("ok  ")


async def test_an_expiry_that_is_not_reached_is_ok(
    store: SqliteStore, transport: Transport, clock: ManualClock
) -> None:
    await store.record(an_entry())

    for days, level in ((2, Level.WARN), (4, Level.OK)):
        after = {"orders": days * 86400.0}.get
        told = await preview(ORDERS, store=store, transport=transport, clock=clock, expire_after=after)
        assert levels(told)["expiry"] is level


async def test_nothing_to_send_stops(store: SqliteStore, transport: Transport, clock: ManualClock) -> None:
    told = await preview(ORDERS, store=store, transport=transport, clock=clock, expire_after=never)

    assert told.worst is Level.STOP
    assert "stop  letters" in text(told)


async def test_a_page_and_its_json_are_harmless_and_have_no_body(
    store: SqliteStore, transport: Transport, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = a_failure(text="\x1b[2Jgone")
    hidden = a_message(body=b'"a secret"', queue="orders")
    await store.record(an_entry(failures=(failure,), message=hidden))
    plan = RunPlan(selection=LetterQuery(), target="else\x1bwhere")

    told = await preview(plan, store=store, transport=transport, clock=clock, expire_after=never)
    print_preview(told, datetime.now(UTC))
    shown = capsys.readouterr().out
    record = json.loads(json_text(preview_record(told)))

    assert "orders -> else" in shown
    assert "\x1b" not in shown + json_text(preview_record(told))
    assert "a secret" not in shown + json.dumps(record)
    assert (record["count"], record["worst"], len(record["sample"])) == (1, "ok", 1)
    assert record["checks"][0] == {"name": "letters", "level": "ok", "text": "1 letter will be sent"}


async def test_rabbitmq_tells_whether_a_target_exists_is_consumed_and_is_full(
    store: SqliteStore, rabbitmq: RabbitServer, rabbitmq_url: str, clock: ManualClock
) -> None:
    letter_id, _ = await store.record(an_entry())
    plan = RunPlan(selection=LetterQuery(ids=(letter_id,)), brakes=Brakes(backlog=1))
    async with opened(rabbitmq_url) as transport:
        looking = open_inspector(rabbitmq_url, transport, management_url=rabbitmq.management_url)

        async def look() -> dict[str, Level]:
            given: dict[str, Any] = {"store": store, "transport": transport, "clock": clock, "expire_after": never}
            return levels(await preview(plan, **given, inspector=looking))

        missing = await look()
        with PlainClient(rabbitmq_url) as other:
            other.declare("orders")
            unused = await look()
            for _ in range(2):
                await transport.send(message())
            full = await look()
            other.channel.queue_purge("orders")
            other.channel.basic_consume("orders", lambda *_: None)
            used = await look()
        await looking.close()

    assert missing["target"] is Level.STOP
    assert (unused["target"], unused["consumers"], unused["backlog"]) == (Level.OK, Level.WARN, Level.OK)
    assert (full["target"], full["backlog"]) == (Level.OK, Level.WARN)
    assert (used["target"], used["consumers"], used["backlog"]) == (Level.OK, Level.OK, Level.OK)


async def test_a_broker_that_is_away_leaves_the_rest_of_the_page(store: SqliteStore, clock: ManualClock) -> None:
    await store.record(an_entry())
    async with opened("amqp://guest:guest@127.0.0.1:1/") as transport:
        told = await preview(ORDERS, store=store, transport=transport, clock=clock, expire_after=never)

    assert (told.count, levels(told)["target"]) == (1, Level.WARN)
