"""Messages that go home at once, without a task for each: what the broker says of one is told of that one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from redrive.clock import SystemClock
from redrive.dead_letter_queue import DeadLetterQueue, Drained
from redrive.engine import RedriveEngine
from redrive.errors import Unreachable
from redrive.letter_query import LetterQuery
from redrive.pace import Pace
from redrive.run import Run, RunStatus
from redrive.stores.sqlite import SqliteStore
from redrive.testing.store_runs import recorded, running
from redrive.transports.rabbitmq.methods import ConnectionLost
from redrive.transports.rabbitmq.publisher import Publisher
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.opened_rabbitmq import message, opened
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        yield client


@pytest.fixture
def only_at_once(monkeypatch: pytest.MonkeyPatch) -> Any:
    async def send(*_: object, **__: object) -> None:
        raise AssertionError("it was not sent at once")

    return lambda: monkeypatch.setattr(RabbitTransport, "send", send)


async def drained(transport: RabbitTransport, number: int) -> Drained:
    return await DeadLetterQueue("orders_dlq", transport=transport).drain(number, pace=Pace(None, SystemClock()))


async def test_all_of_a_dead_letter_queue_go_home(
    rabbitmq_url: str, other: PlainClient, only_at_once: Any
) -> None:
    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        for _ in range(300):
            await transport.send(message(), queue="orders_dlq")
        only_at_once()
        assert await drained(transport, 300) == Drained(sent=300)
    assert (other.count("orders"), other.count("orders_dlq")) == (301, 0)


async def test_what_its_queue_does_not_take_stays_in_the_dead_letter_queue(
    rabbitmq_url: str, other: PlainClient, only_at_once: Any
) -> None:
    other.declare("orders", max_length=3, overflow="reject-publish")
    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        for _ in range(5):
            await transport.send(message(), queue="orders_dlq")
        only_at_once()
        assert await drained(transport, 5) == Drained(sent=2, refused=3)
    assert (other.count("orders"), other.count("orders_dlq")) == (3, 3)


async def test_what_nobody_confirmed_is_an_error_and_is_not_removed(
    rabbitmq_url: str, other: PlainClient, only_at_once: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(publisher: Publisher, *_: object, **__: object) -> None:
        publisher.closed(ConnectionLost("cut"))

    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        for _ in range(5):
            await transport.send(message(), queue="orders_dlq")
        only_at_once()
        monkeypatch.setattr(Publisher, "confirmed", cut)
        with pytest.raises(Unreachable, match="may or may not"):
            await drained(transport, 5)
    assert other.count("orders_dlq") == 5


async def carried_out(
    transport: RabbitTransport, folder: Path, letters: int, **given: Any
) -> tuple[Run, Counter[str]]:
    """A run over so many letters, and their statuses when it has ended or paused."""
    store = SqliteStore(f"sqlite:///{folder}/letters.db")
    ids = await recorded(store, letters, **given)
    engine = RedriveEngine(store=store, transport=transport, clock=SystemClock(), owner="engine")
    run = await engine.carry_out(await running(store))
    found = await store.find(LetterQuery(ids=tuple(ids), limit=letters))
    await store.close()
    return run, Counter(str(letter.status) for letter in found)


async def test_all_letters_of_a_run_go_back(
    rabbitmq_url: str, other: PlainClient, only_at_once: Any, tmp_path: Path
) -> None:
    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        only_at_once()
        run, statuses = await carried_out(transport, tmp_path, 300)
    assert (run.status, run.progress.sent, statuses) == (RunStatus.DONE, 300, {"REDRIVEN": 300})
    assert other.count("orders") == 301


async def test_letters_that_their_queue_does_not_take_now_are_not_marked_and_pull_the_brake(
    rabbitmq_url: str, other: PlainClient, only_at_once: Any, tmp_path: Path
) -> None:
    other.declare("orders", max_length=3, overflow="reject-publish")
    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        only_at_once()
        run, statuses = await carried_out(transport, tmp_path, 20)
    assert (run.status, run.progress.sent) == (RunStatus.PAUSED, 2)
    assert "publish errors in a row" in run.why
    assert statuses == {"REDRIVEN": 2, "REDRIVING": 18}
    assert other.count("orders") == 3


async def test_what_was_cut_off_is_not_marked(
    rabbitmq_url: str, only_at_once: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(publisher: Publisher, *_: object, **__: object) -> None:
        publisher.closed(ConnectionLost("cut"))

    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        only_at_once()
        monkeypatch.setattr(Publisher, "confirmed", cut)
        run, statuses = await carried_out(transport, tmp_path, 20)
    assert (run.status, run.progress.sent, statuses) == (RunStatus.PAUSED, 0, {"REDRIVING": 20})
