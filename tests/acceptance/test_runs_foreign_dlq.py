"""A consumer that is not ours rejects what a run has sent, into a dead-letter queue of its own: collected there,
it is the same letter, one generation older, and the run's report tells it as come back.
"""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from redrive.access import local
from redrive.actions import Actions
from redrive.availability import Availability
from redrive.clock import SystemClock
from redrive.collector import Collector
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from redrive.run import RunPlan, RunStatus
from redrive.stores import open_store
from redrive.transports import Names, open_transport
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from redrive.dead_letter import DeadLetter
    from redrive.run import Run

SPRING = {
    "x-exception-stacktrace": "java.lang.IllegalStateException: no customer\n\tat shop.Orders(Orders.java:7)",
    "x-exception-message": "no customer",
    "x-original-exchange": "",
    "x-original-routingKey": "orders",
}
MASSTRANSIT = {
    "MT-Reason": "fault",
    "MT-Fault-ExceptionType": "System.InvalidOperationException",
    "MT-Fault-Message": "no customer",
    "MT-Fault-InputAddress": "rabbitmq://localhost/orders",
}
CELERY = {
    "lang": "py",
    "task": "shop.charge",
    "id": "b1c4",
    "retries": 3,
    "argsrepr": "(1,)",
    "origin": "gen7@host",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/redrive.db"
    url: str = request.getfixturevalue("postgres_store_url")
    return url


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    """Another service, with an exchange and names of its own for what is dead."""
    with PlainClient(rabbitmq_url) as client:
        client.declare_exchange("graveyard", "topic")
        client.declare("lost and found")
        client.bind("graveyard", "lost and found", "#")
        for queue in ("orders", "repair"):
            client.declare(queue, dead_letter_exchange="graveyard", dead_letter_routing_key=f"{queue}.rejected")
        client.publish("orders", b'{"order": 1}', message_id="m-1", headers={"tenant": "a"})
        yield client


class Office:
    """Store, broker and desk, for one test."""

    def __init__(self, store: Any, transport: Any) -> None:
        self.store = store
        self._transport = transport
        self.desk = Actions(store=store, transport=transport, clock=SystemClock(), who=local("ann"))

    async def collect(self, *queues: str) -> list[DeadLetter]:
        """Every letter that there is then, with its whole story."""
        clock = SystemClock()
        collector = Collector(
            queues or ("lost and found",),
            transport=self._transport,
            store=self.store,
            availability=Availability(clock=clock, random=random.random),
            clock=clock,
        )
        await collector.run(once=True)
        return [await self.desk.letter(each.id) for each in await self.store.find(LetterQuery())]

    async def sent(self, **plan: Any) -> Run:
        """The pending letters, by a run."""
        planned = await self.desk.plan_run(RunPlan(selection=LetterQuery(), **plan))
        run = await self.desk.carry_out((await self.desk.create_run(planned)).id)
        assert (run.status, run.progress.sent) == (RunStatus.DONE, 1)
        return run

    async def came_back(self, run: Run) -> int:
        return (await self.desk.run(run.id)).progress.came_back


@asynccontextmanager
async def opened(store_url: str, rabbitmq_url: str) -> AsyncIterator[Office]:
    store, transport = open_store(store_url), open_transport(rabbitmq_url, names=Names())
    try:
        yield Office(store, transport)
    finally:
        await transport.close()
        await store.close()


async def test_rejected_into_a_dead_letter_queue_of_another_name(
    store_url: str, rabbitmq_url: str, other: PlainClient
) -> None:
    await other.reject("orders")
    async with opened(store_url, rabbitmq_url) as office:
        [letter] = await office.collect()
        assert (letter.queue, letter.generation) == ("orders", 1)
        run = await office.sent()

        await other.reject("orders")
        [same] = await office.collect()

        assert (same.id, same.generation, same.status) == (letter.id, 2, Status.PENDING)
        assert dict(same.message.headers)["tenant"] == "a"
        assert not any(name.startswith("x-redrive-") for name, _ in same.message.headers)
        assert await office.came_back(run) == 1


async def test_rejected_by_the_consumer_of_another_queue_that_the_run_sent_to(
    store_url: str, rabbitmq_url: str, other: PlainClient
) -> None:
    await other.reject("orders")
    async with opened(store_url, rabbitmq_url) as office:
        [letter] = await office.collect()
        run = await office.sent(target="repair")

        await other.reject("repair")
        [same] = await office.collect()

        assert (same.id, same.generation, same.queue) == (letter.id, 2, "orders")
        assert await office.came_back(run) == 1


@pytest.mark.parametrize("added", [SPRING, MASSTRANSIT, CELERY], ids=["spring", "masstransit", "celery"])
async def test_published_into_it_by_a_framework_with_headers_of_its_own(
    store_url: str, rabbitmq_url: str, other: PlainClient, added: dict[str, Any]
) -> None:
    """Frameworks acknowledge the message and publish a copy with what they know: the broker writes no x-death."""
    await other.reject("orders")
    other.declare("orders_dlq")
    async with opened(store_url, rabbitmq_url) as office:
        [letter] = await office.collect()
        run = await office.sent()

        got = await other.next("orders")
        headers = {**got.headers, **added}
        other.publish("orders_dlq", got.body, message_id="m-1", headers=headers, correlation_id="theirs")
        [same] = await office.collect("orders_dlq")

        assert (same.id, same.generation) == (letter.id, 2)
        assert await office.came_back(run) == 1


@pytest.mark.parametrize("added", [SPRING, MASSTRANSIT, CELERY], ids=["spring", "masstransit", "celery"])
async def test_rejected_with_headers_that_a_framework_wrote_before(
    store_url: str, rabbitmq_url: str, other: PlainClient, added: dict[str, Any]
) -> None:
    await other.reject("orders")
    async with opened(store_url, rabbitmq_url) as office:
        [letter] = await office.collect()
        run = await office.sent()

        got = await other.next("orders")
        other.publish("orders", got.body, message_id="m-1", headers={**got.headers, **added})
        await other.reject("orders")
        [same] = await office.collect()

        assert (same.id, same.generation, same.status) == (letter.id, 2, Status.PENDING)
        assert await office.came_back(run) == 1


async def test_where_nobody_tells_which_queue_it_failed_in_its_ticket_proves_nothing(
    store_url: str, rabbitmq_url: str, other: PlainClient
) -> None:
    """A ticket is signed for one queue. Neither x-death nor the queue's name says that it was this one."""
    await other.reject("orders")
    async with opened(store_url, rabbitmq_url) as office:
        [letter] = await office.collect()
        run = await office.sent()

        got = await other.next("orders")
        other.publish("lost and found", got.body, message_id="m-1", headers={**got.headers, **SPRING})
        letters = await office.collect()

        [new] = [each for each in letters if each.id != letter.id]
        assert new.status is Status.QUARANTINED
        assert (await office.desk.letter(letter.id)).status is Status.REDRIVEN
        assert await office.came_back(run) == 0


async def test_rejected_twice_on_its_way_through_their_retries(
    store_url: str, rabbitmq_url: str, other: PlainClient
) -> None:
    """Their consumer has delayed retries by a queue with a TTL, and in the end puts it aside."""
    other.declare("orders.later", dead_letter_exchange="", dead_letter_routing_key="orders", message_ttl=1)
    await other.reject("orders")
    async with opened(store_url, rabbitmq_url) as office:
        [letter] = await office.collect()
        await office.sent()

        got = await other.next("orders")
        other.publish("orders.later", got.body, message_id="m-1", headers={**got.headers, "x-retry": 1})
        await other.reject("orders")
        [same] = await office.collect()

        assert (same.id, same.generation) == (letter.id, 2)


async def test_the_same_copy_twice_is_one_return(store_url: str, rabbitmq_url: str, other: PlainClient) -> None:
    await other.reject("orders")
    async with opened(store_url, rabbitmq_url) as office:
        [letter] = await office.collect()
        run = await office.sent()
        got = await other.next("orders")
        for _ in range(2):
            other.publish("orders", got.body, message_id="m-1", headers=got.headers)
            await other.reject("orders")

        [same] = await office.collect()

        assert (same.id, same.generation) == (letter.id, 2)
        assert await office.came_back(run) == 1


async def test_a_ticket_on_another_message_joins_nothing(
    store_url: str, rabbitmq_url: str, other: PlainClient
) -> None:
    await other.reject("orders")
    async with opened(store_url, rabbitmq_url) as office:
        [letter] = await office.collect()
        run = await office.sent()
        got = await other.next("orders")
        other.publish("orders", b'{"order": 2}', message_id="m-2", headers=got.headers)
        await other.reject("orders")

        letters = await office.collect()

        assert len(letters) == 2
        assert (await office.desk.letter(letter.id)).status is Status.REDRIVEN
        assert await office.came_back(run) == 0
