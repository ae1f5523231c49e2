"""F5, F7, F8, F25 on SQS, as ElasticMQ plays it: the connection is cut inside a request and before its answer, a
delete is lost, two consumers have one message, and a lease runs out while its handler runs. Nobody takes an
unknown outcome for a success, and whatever comes again makes no second letter (G3) and no second effect (G4).
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chaos.lab.proxy import Proxy
from redrive import App, Permanent, Retry, SqliteInbox
from redrive.clock import SystemClock, new_id
from redrive.errors import LeaseLost, Unreachable
from redrive.message import Message
from redrive.transports import Delivery
from redrive.transports.sqs.transport import SqsTransport
from support.elasticmq_server import ElasticMq
from support.patience import until
from support.plain_sqs import PlainSqs
from support.workshop import Workshop, workshop

FINE, BROKEN = "fine", "broken"
STEPS = 5
DELETING, RENEWING = b"DeleteMessageBatch", b"ChangeMessageVisibilityBatch"
SENT = b"MD5OfMessageBody"
EVERY_TIME = 10**6


@pytest.fixture
def proxy(elasticmq: ElasticMq) -> Iterator[Proxy]:
    with Proxy(elasticmq.endpoint) as opened:
        yield opened


@pytest.fixture
def theirs(elasticmq: ElasticMq) -> PlainSqs:
    """Another client, beside the broken network."""
    return PlainSqs(elasticmq.endpoint)


@pytest.fixture
def queue(elasticmq: ElasticMq, theirs: PlainSqs) -> str:
    name = elasticmq.queue_name()
    theirs.make(name)
    return name


@asynccontextmanager
async def opened(endpoint: str, **options: Any) -> AsyncIterator[SqsTransport]:
    transport = SqsTransport(ElasticMq.url, endpoint=endpoint, wait=1, **options)
    try:
        yield transport
    finally:
        await transport.close()


def a_message(queue: str) -> Message:
    return Message(id=new_id(), queue=queue, body=b'{"number": 7}' * 10, sent_at=SystemClock().now())


async def received(transport: SqsTransport, queue: str, number: int) -> list[Delivery]:
    """So many deliveries, all acknowledged."""
    found: list[Delivery] = []
    async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        while len(found) < number:
            found.append(await anext(deliveries))
            await transport.ack(found[-1])
    return found


# F5


async def test_a_send_cut_at_any_byte_is_never_taken_for_sent_and_is_there_when_it_is_sent_again(
    proxy: Proxy, elasticmq: ElasticMq, theirs: PlainSqs, queue: str
) -> None:
    async with opened(proxy.url) as transport, opened(elasticmq.endpoint) as watch:
        await transport.send(a_message(queue))
        before = proxy.heard
        await transport.send(a_message(queue))
        size = proxy.heard - before
        await received(watch, queue, 2)
        for number in (*range(1, size, size // STEPS), size - 1):
            message = a_message(queue)
            proxy.cut_after(number)
            with pytest.raises(Unreachable):
                await transport.send(message)
            await transport.send(message)
            assert theirs.visible(queue) == 1
            [found] = await received(watch, queue, 1)
            assert found.message.id == message.id, number


async def test_a_send_whose_answer_never_arrives_is_no_success_and_the_message_is_there_once(
    proxy: Proxy, elasticmq: ElasticMq, theirs: PlainSqs, queue: str
) -> None:
    """The client would send it again by itself, and say nothing."""
    async with opened(proxy.url) as transport, opened(elasticmq.endpoint) as watch:
        message = a_message(queue)
        proxy.cut_answers(SENT)
        with pytest.raises(Unreachable):
            await transport.send(message)

        assert theirs.visible(queue) == 1
        await transport.send(message)
        assert {each.message.id for each in await received(watch, queue, 2)} == {message.id}


async def test_a_retry_whose_answer_never_arrives_leaves_copies_of_one_identity(
    proxy: Proxy, elasticmq: ElasticMq, queue: str
) -> None:
    async with opened(elasticmq.endpoint) as watch:
        async with opened(proxy.url, visibility=1) as transport:
            await transport.send(a_message(queue))
            async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
                first = await anext(deliveries)
                proxy.cut_answers(SENT)
                with pytest.raises(Unreachable):
                    await transport.retry(first, first.message, delay=0, trail=b"once")
                await transport.release(first)

        found = await received(watch, queue, 2)
        assert {each.identity for each in found} == {first.identity}
        assert sorted(each.attempt for each in found) == [1, 2]


# F7


async def test_a_delete_whose_answer_never_arrives_is_asked_for_again_and_done(
    proxy: Proxy, theirs: PlainSqs, queue: str
) -> None:
    """The second time SQS says yes. ElasticMQ says that there is no such message."""
    async with opened(proxy.url) as transport:
        await transport.send(a_message(queue))
        proxy.cut_answers(b'"Successful":[{"Id":"0"}]')
        with suppress(LeaseLost):
            await received(transport, queue, 1)

    assert proxy.cuts == 1
    assert (theirs.visible(queue), theirs.hidden(queue)) == (0, 0)


class Watched(SqsTransport):
    """Notes what it hands out."""

    def __init__(self, *given: Any, came: list[Delivery], **how: Any) -> None:
        super().__init__(*given, **how)
        self._came = came

    def _delivery(self, *given: Any) -> Delivery:
        self._came.append(super()._delivery(*given))
        return self._came[-1]


class Shop:
    """One consumer, as a process of its own would be. Its effect is a row beside its inbox's mark."""

    def __init__(self, folder: Path, queue: str, endpoint: str, name: str) -> None:
        self.folder, self.endpoint = folder, endpoint
        self.own_folder = folder / name
        self.own_folder.mkdir()
        self.came: list[Delivery] = []
        self.begun: list[str] = []
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.inbox = SqliteInbox(folder / "effects.db", prepare=_prepare)
        self.app = App("shop", retry=Retry(1))
        self.app.handler(queue, name="charge", inbox=self.inbox)(self._charge)

    async def _charge(self, body: dict[str, str], message: Message, connection: sqlite3.Connection) -> None:
        self.begun.append(message.id)
        await self.may_go.wait()
        connection.execute("INSERT INTO effects VALUES (?)", (message.id,))
        if body["how"] == BROKEN:
            raise Permanent("no such customer")

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Workshop]:
        opening = partial(Watched, came=self.came, endpoint=self.endpoint, wait=1, visibility=1)
        async with workshop(
            self.app,
            self.own_folder,
            broker_url=ElasticMq.url,
            store_url=f"sqlite:///{self.folder}/letters.db",
            opening=opening,
        ) as at_work:
            yield at_work
            self.may_go.set()

    @property
    def effects(self) -> int:
        with closing(sqlite3.connect(self.folder / "effects.db")) as database:
            [(count,)] = database.execute("SELECT count(*) FROM effects")
            return int(count)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS effects (message_id)")


@pytest.fixture
async def shop(tmp_path: Path, queue: str, elasticmq: ElasticMq) -> AsyncIterator[Callable[..., Shop]]:
    made: list[Shop] = []

    def open_shop(name: str = "shop", endpoint: str = "") -> Shop:
        made.append(Shop(tmp_path, queue, endpoint or elasticmq.endpoint, name))
        return made[-1]

    yield open_shop
    for each in made:
        await each.inbox.close()


def _is_empty(theirs: PlainSqs, queue: str) -> bool:
    return theirs.visible(queue) == theirs.hidden(queue) == 0


async def _settled(theirs: PlainSqs, queue: str, how: str, shops: list[Shop], opened: Workshop) -> None:
    """All that came is deleted, and made one letter or had one effect."""
    await until(lambda: asyncio.to_thread(_is_empty, theirs, queue))
    await until(lambda: not any(each.busy for each in opened.worker.consumers))
    letters = await opened.letters()
    assert len(letters) == (how == BROKEN)
    assert {each.effects for each in shops} == {int(how == FINE)}


@pytest.mark.parametrize("how", [FINE, BROKEN])
async def test_a_delete_that_sqs_never_heard_of_makes_no_second_letter_and_no_second_effect(
    how: str, shop: Callable[..., Shop], proxy: Proxy, theirs: PlainSqs, queue: str
) -> None:
    consumer = shop(endpoint=proxy.url)
    proxy.cut_questions(DELETING, EVERY_TIME)
    async with consumer.at_work() as opened:
        theirs.send(queue, f'{{"how": "{how}"}}')
        await until(lambda: len(consumer.came) > 1)
        proxy.cut_questions(b"")
        await _settled(theirs, queue, how, [consumer], opened)


# F8, F25


@pytest.mark.parametrize("how", [FINE, BROKEN])
async def test_a_message_whose_visibility_ends_during_the_handler_goes_to_another_and_counts_once(
    how: str, shop: Callable[..., Shop], proxy: Proxy, theirs: PlainSqs, queue: str
) -> None:
    slow, quick = shop("slow", proxy.url), shop("quick")
    proxy.cut_questions(RENEWING, EVERY_TIME)
    slow.may_go.clear()
    async with slow.at_work() as opened:
        theirs.send(queue, f'{{"how": "{how}"}}')
        await until(lambda: slow.begun)
        async with quick.at_work() as other:
            await until(lambda: quick.came)  # which has it, while the first one's handler still runs
            slow.may_go.set()
            await until(lambda: not any(each.busy for each in opened.worker.consumers))
            await _settled(theirs, queue, how, [slow, quick], other)

    assert proxy.cuts > 0


async def test_a_lease_that_ran_out_is_not_acknowledged_whatever_sqs_would_answer(
    proxy: Proxy, theirs: PlainSqs, queue: str
) -> None:
    async with opened(proxy.url, visibility=1) as transport:
        await transport.send(a_message(queue))
        async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
            delivery = await anext(deliveries)
            proxy.cut_questions(RENEWING, EVERY_TIME)
            await until(lambda: not transport._leases.is_ours(delivery.receipt))
            with pytest.raises(LeaseLost):
                await transport.ack(delivery)

    assert theirs.visible(queue) == 1
