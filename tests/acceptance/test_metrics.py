"""Metrics of a worker at work and of a server: what they say is what happened, also after a restart."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from redrive import App, Retry
from redrive.dead_letter import Actor, Transition
from redrive.errors import Permanent, Unreachable
from redrive.letter_query import LetterQuery
from redrive.metrics_wiring import of_worker
from redrive.settings import Settings
from redrive.telemetry.exposition import OTHER, Exposition
from redrive.telemetry.store_metrics import MOST_QUEUES, store_metrics
from redrive.telemetry.worker_metrics import worker_metrics
from redrive.testing.letters import NOON, an_entry
from support.api_house import open_house
from support.patience import until
from support.scraped import get, samples, value
from support.workshop import workshop

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from redrive.worker import Worker


SESAME = "sesame"


def shop() -> App:
    app = App("shop")

    @app.handler("orders", name="charge", retry=Retry(2, "10ms"))
    def charge(order: int) -> None:
        if order >= 100:
            raise Permanent("no customer")
        if order >= 10:
            raise TimeoutError("away")

    return app


def told(worker: Worker) -> str:
    return Exposition(lambda: worker_metrics(worker)).text().decode()


async def test_a_worker_tells_what_its_handlers_did(tmp_path: Path) -> None:
    async with workshop(shop(), tmp_path) as opened:
        await opened.send("orders", 1, 2, 3, 10, 100)
        await until(opened.empty)
        text = told(opened.worker)

    of = {"handler": "charge", "queue": "orders"}
    outcomes = {
        outcome: value(text, "redrive_handler_attempts_total", outcome=outcome, **of)
        for outcome in ("succeeded", "failed", "dropped")
    }
    assert outcomes == {"succeeded": 3, "failed": 3, "dropped": 0}
    assert value(text, "redrive_handler_seconds_count", **of) == 6
    assert value(text, "redrive_retries_total", **of) == 1
    for kind in ("permanent", "transient"):
        assert value(text, "redrive_dead_lettered_total", kind=kind, sink="store", **of) == 1
    assert value(text, "redrive_time_to_dead_letter_seconds_count", type="int", queue="orders") == 2
    assert value(text, "redrive_consumer_ready", queue="orders") == 1
    assert value(text, "redrive_store_away") == value(text, "redrive_spool_bytes") == 0


async def test_an_open_breaker_and_messages_in_hand_are_told(tmp_path: Path) -> None:
    app, go = App("shop"), asyncio.Event()

    @app.handler("orders", retry=Retry(1))
    async def charge(order: int) -> None:
        if order:
            raise TimeoutError("away")
        await go.wait()

    settings = {"breaker_failures": 2, "breaker_pause": "10m"}
    async with workshop(app, tmp_path, worker=settings) as opened:
        await opened.send("orders", 0)
        await until(lambda: value(told(opened.worker), "redrive_messages_in_hand", queue="orders") == 1)
        await opened.send("orders", 1, 2)
        await until(lambda: value(told(opened.worker), "redrive_breaker_open", queue="orders") == 1)
        text = told(opened.worker)
        assert value(text, "redrive_breaker_opened_total", queue="orders") == 1
        assert value(text, "redrive_consumer_ready", queue="orders") == 0
        go.set()


async def test_letters_in_the_spool_are_told_while_the_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_entry: object) -> None:
        raise Unreachable("the store is away", remedy="bring it back")

    async with workshop(shop(), tmp_path) as opened:
        monkeypatch.setattr(opened.store, "record", away)
        await opened.send("orders", 100)
        await until(opened.empty)
        text = told(opened.worker)
        assert (value(text, "redrive_store_away"), value(text, "redrive_spool_segments")) == (1, 1)
        assert value(text, "redrive_spool_bytes") > 0
        of = {"handler": "charge", "queue": "orders", "kind": "permanent", "sink": "spool"}
        assert value(text, "redrive_dead_lettered_total", **of) == 1


async def test_they_are_told_where_the_settings_say_and_nothing_of_a_message_is_in_them(tmp_path: Path) -> None:
    app, secret = App("shop"), "4111111111111111"

    @app.handler("orders", retry=Retry(1))
    def charge(order: str) -> None:
        raise ValueError(order)

    settings = Settings.model_validate({"metrics": {"listen": "127.0.0.1:0", "token": "sesame"}})
    async with workshop(app, tmp_path) as opened:
        await opened.send("orders", secret)
        await until(opened.empty)
        async with of_worker(opened.worker, settings) as port:
            assert port is not None
            assert (await get(port)).status == 401
            answer = await get(port, "/metrics", "Authorization: Bearer sesame")
            assert (await get(port, "/readyz")).status == 200
            busy = Settings.model_validate({"metrics": {"listen": f"127.0.0.1:{port}"}})
            async with of_worker(opened.worker, busy) as another:
                assert another is None  # it works all the same
        assert (answer.status, secret in answer.body) == (200, False)
        assert value(answer.body, "redrive_consumer_ready", queue="orders") == 1


async def test_the_server_tells_what_the_store_holds_and_all_that_ever_happened_in_it(tmp_path: Path) -> None:
    ann = Actor("ann", "known")
    async with open_house(tmp_path) as house:
        first, second = [await house.letter() for _ in range(2)]
        await house.letter("mails")
        await house.store.change([first], Transition.RESOLVE, by=ann)
        await house.store.purge([first], by=ann)
        before = await house.client.get("/metrics")
    async with open_house(tmp_path) as house:  # as good as a restart
        await house.store.change([second], Transition.DISCARD, by=ann)
        answer = await house.client.get("/metrics")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.text
    assert value(text, "redrive_store_up") == 1
    assert value(text, "redrive_dead_letters", status="PENDING") == 1
    assert value(text, "redrive_dead_letters", status="DISCARDED") == 1
    assert value(text, "redrive_queue_dead_letters", queue="orders") == 0
    assert value(text, "redrive_queue_dead_letters", queue="mails") == 1
    assert value(text, "redrive_oldest_dead_letter_age_seconds") >= 0
    assert value(text, "redrive_dead_letters_received_total", queue="orders") == 2
    moved = {"queue": "orders", "before": "PENDING"}
    assert value(text, "redrive_letter_transitions_total", after="RESOLVED", **moved) == 1
    assert value(text, "redrive_letter_transitions_total", after="DISCARDED", **moved) == 1
    assert value(text, "redrive_resolution_seconds_count", queue="orders") == 1
    assert value(text, "redrive_resolution_seconds_bucket", queue="orders", le="60") == 1
    _nothing_went_back(before.text, text)


def _nothing_went_back(earlier: str, later: str) -> None:
    now = samples(later)
    for key, number in samples(earlier).items():
        if key[0].startswith("redrive_") and key[0].endswith(("_total", "_count", "_sum", "_bucket")):
            assert now[key] >= number, key


async def test_the_servers_metrics_may_need_a_token(tmp_path: Path) -> None:
    async with open_house(tmp_path, metrics_token=SESAME) as house:
        for wrong in ({}, {"authorization": "Bearer other"}, {"authorization": "Basic sesame"}):
            assert (await house.client.get("/metrics", headers=wrong)).status_code == 401
        right = {"authorization": "Bearer sesame"}
        assert (await house.client.get("/metrics", headers=right)).status_code == 200


async def test_queues_without_end_are_told_together_and_always_the_same_ones_by_name(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        names = [f"q{number}" for number in range(MOST_QUEUES + 5)]
        await house.store.record_together([an_entry(queue=name) for name in names])
        earlier = _rendered(await house.store.numbers())
        for _ in range(3):
            await house.store.record_together([an_entry(queue=name) for name in names[-2:]])
        await house.store.close()
    async with open_house(tmp_path) as house:
        assert (await house.store.count(LetterQuery())).number == MOST_QUEUES + 11
        later = _rendered(await house.store.numbers())

    assert value(earlier, "redrive_dead_letters_received_total", queue=OTHER) == 5
    assert value(later, "redrive_dead_letters_received_total", queue=OTHER) == 11
    assert value(later, "redrive_queue_dead_letters", queue=OTHER) == 11
    assert len([key for key in samples(later) if key[0] == "redrive_queue_dead_letters"]) == MOST_QUEUES + 1


def _rendered(numbers: object) -> str:
    return Exposition(lambda: store_metrics(numbers, now=NOON)).text().decode()  # type: ignore[arg-type]  # StoreNumbers
