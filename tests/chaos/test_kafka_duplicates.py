"""F8 on Kafka: records come twice, come out of their turn, and come to two consumers at once. However often one
comes, there is one letter for its cluster, topic, partition and offset (G3), and with an inbox one effect (G4).
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from chaos.lab.kafka import Kafka
from redrive import App, Permanent, Retry, SqliteInbox, Transient
from redrive.dead_letter import Actor, Status, Transition
from redrive.message import Message
from redrive.transports import Delivery
from redrive.transports.kafka.poller import Poller
from redrive.transports.kafka.topics import TopicPlan
from redrive.transports.kafka.transport import KafkaTransport
from support.kafka_server import KafkaServer
from support.patience import until
from support.workshop import Workshop, workshop

PARTITIONS, COUNT = 2, 12
SHORT = 0.1
FINE, BROKEN, MOODY = "fine", "broken", "moody"
PATIENCE = 30.0


class Watched(KafkaTransport):
    """Notes what it hands out."""

    def __init__(self, *given: Any, came: list[Delivery], **how: Any) -> None:
        super().__init__(*given, **how)
        self._came = came

    def _delivery(self, *given: Any) -> Delivery:
        self._came.append(super()._delivery(*given))
        return self._came[-1]


class Shop:
    """One consumer of the group, as a process of its own would be. Its effect is a row beside its inbox's mark.

    `fine` is charged, `broken` never is, `moody` has one retry and then is not charged either.
    """

    def __init__(self, folder: Path, topics: Kafka, name: str = "shop", *, grace: float = 5.0) -> None:
        self.folder, self.topics, self.grace = folder, topics, grace
        self.own_folder = folder / name
        self.own_folder.mkdir(exist_ok=True)
        self.came: list[Delivery] = []
        self.begun: list[str] = []
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.inbox = SqliteInbox(folder / "effects.db", prepare=_prepare)
        self.app = App("shop", retry=Retry(2, ["100ms"]))
        self.app.handler(topics.name, name="charge", inbox=self.inbox)(self._charge)

    async def _charge(self, message: Message, connection: sqlite3.Connection) -> None:
        self.begun.append(message.id)
        await self.may_go.wait()
        connection.execute("INSERT INTO effects VALUES (?)", (message.id,))
        how = _how(message)
        if how == BROKEN:
            raise Permanent("no such customer")
        if how == MOODY:
            raise Transient("not now")

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Workshop]:
        opening = partial(
            Watched,
            came=self.came,
            group=self.topics.name,
            plan=TopicPlan(partitions=PARTITIONS),
            revoke_grace=self.grace,
            client=self.topics.client,
        )
        async with workshop(
            self.app,
            self.own_folder,
            broker_url=f"kafka://{self.topics.server}",
            store_url=f"sqlite:///{self.folder}/letters.db",
            opening=opening,
        ) as opened:
            yield opened
            self.may_go.set()

    @property
    def identities(self) -> Counter[str]:
        return Counter(each.identity for each in self.came)

    @property
    def fine(self) -> list[str]:
        """Messages that came here and are to have had their effect, each once."""
        return sorted({each.message.id for each in self.came if _how(each.message) == FINE})

    @property
    def broken(self) -> list[str]:
        """The identities of their letters, each once."""
        return sorted({f"{each.identity}/charge" for each in self.came if _how(each.message) != FINE})

    @property
    def effects(self) -> list[str]:
        with closing(sqlite3.connect(self.folder / "effects.db")) as database:
            return sorted(name for (name,) in database.execute("SELECT message_id FROM effects"))


def _how(message: Message) -> str:
    return str(json.loads(message.body or b"")["how"])


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS effects (message_id)")


@pytest.fixture
async def shop(tmp_path: Path, topics: Kafka, kafka: KafkaServer) -> AsyncIterator[Callable[..., Shop]]:
    kafka.make_topic(topics.name, partitions=PARTITIONS)
    made: list[Shop] = []

    def opened(name: str = "shop", **how: Any) -> Shop:
        made.append(Shop(tmp_path, topics, name, **how))
        return made[-1]

    yield opened
    for each in made:
        await each.inbox.close()


def _produce(topics: Kafka, *hows: str) -> None:
    """As a program does that knows nothing of us: a record is told from others by its place alone."""
    producer = Producer({"bootstrap.servers": topics.server})
    for number, how in enumerate(hows):
        value = json.dumps({"how": how}).encode()
        producer.produce(topics.name, value, key=b"ann", partition=number % PARTITIONS)
    assert producer.flush(PATIENCE) == 0


def _set_back(topics: Kafka, *more: str) -> None:
    """The group has done nothing of these topics, as far as the broker knows. Nobody of it may be at work."""
    places = [TopicPartition(name, each, 0) for name in (topics.name, *more) for each in range(PARTITIONS)]
    admin = AdminClient({"bootstrap.servers": topics.server})
    wanted = ConsumerGroupTopicPartitions(topics.name, places)
    told = admin.alter_consumer_group_offsets([wanted])[topics.name].result(PATIENCE)
    assert not [each for each in told.topic_partitions if each.error is not None]


async def _nothing_left(topics: Kafka) -> bool:
    return not await asyncio.to_thread(topics.left)


def _busy(opened: Workshop) -> bool:
    return any(each.busy for each in opened.worker.consumers)


async def _done(shop: Shop, count: int) -> None:
    await until(lambda: len(shop.came) >= count)
    await until(lambda: _nothing_left(shop.topics))


async def test_records_of_a_group_that_is_set_back_make_no_second_letter_and_no_second_effect(
    shop: Callable[..., Shop], topics: Kafka
) -> None:
    _produce(topics, *[FINE, FINE, BROKEN] * (COUNT // 3))
    at_first, again = shop(), shop("again")
    async with at_first.at_work():
        await _done(at_first, COUNT)
    _set_back(topics)

    async with again.at_work() as opened:
        await _done(again, COUNT)
        letters = await opened.letters()

    assert again.identities == at_first.identities == Counter(dict.fromkeys(at_first.identities, 1))
    assert sorted(each.identity for each in letters) == at_first.broken
    assert [each.deliveries for each in letters] == [2] * len(letters)
    assert again.effects == at_first.fine


async def test_records_whose_commit_never_arrived_make_no_second_letter_and_no_second_effect(
    shop: Callable[..., Shop], topics: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    _produce(topics, *[FINE, FINE, BROKEN] * (COUNT // 3))
    at_first, again = shop(), shop("again")
    with monkeypatch.context() as mute:
        for name in ("_commit", "_commit_before_leaving", "_commit_at_last"):
            mute.setattr(Poller, name, lambda *_: None)
        async with at_first.at_work() as opened:
            await until(lambda: len(at_first.came) == COUNT and not _busy(opened))
    assert len(await asyncio.to_thread(topics.left)) == COUNT

    async with again.at_work() as opened:
        await _done(again, COUNT)
        letters = await opened.letters()

    assert again.identities == at_first.identities
    assert sorted(each.identity for each in letters) == again.broken
    assert again.effects == at_first.fine


async def test_a_record_that_comes_again_after_later_ones_of_its_key_changes_no_letter_that_is_settled(
    shop: Callable[..., Shop], topics: Kafka
) -> None:
    _produce(topics, *[BROKEN] * PARTITIONS, *[FINE] * COUNT)
    at_first, again = shop(), shop("again")
    async with at_first.at_work() as opened:
        await _done(at_first, COUNT + PARTITIONS)
        letters = await opened.letters()
        await opened.store.change([each.id for each in letters], Transition.RESOLVE, by=Actor("ann", "by hand"))
    _set_back(topics)

    async with again.at_work() as opened:
        await _done(again, COUNT + PARTITIONS)
        settled = await opened.letters()

    assert sorted(each.identity for each in settled) == again.broken == at_first.broken
    assert {each.status for each in settled} == {Status.RESOLVED}
    assert again.effects == at_first.fine


async def test_a_retry_that_is_written_twice_makes_one_letter_named_after_its_first_record(
    shop: Callable[..., Shop], topics: Kafka
) -> None:
    _produce(topics, *[MOODY, FINE] * (COUNT // 2))
    at_first, again = shop(), shop("again")
    async with at_first.at_work():
        await _done(at_first, COUNT + COUNT // 2)
    _set_back(topics, f"{topics.name}_retry_100ms")

    async with again.at_work() as opened:
        await _done(again, 2 * COUNT)  # each retry of before, and one more of each
        letters = await opened.letters()

    assert sorted(each.identity for each in letters) == at_first.broken
    assert {each.attempts for each in letters} == {2}
    assert {each.deliveries for each in letters} == {3}
    assert again.effects == at_first.fine


@pytest.mark.parametrize("how", [FINE, BROKEN])
async def test_a_record_that_two_consumers_have_at_once_makes_one_letter_or_has_one_effect(
    how: str, shop: Callable[..., Shop], topics: Kafka
) -> None:
    _produce(topics, *[how] * PARTITIONS)
    slow, quick = shop("slow", grace=SHORT), shop("quick")
    slow.may_go.clear()
    async with slow.at_work() as opened:
        await until(lambda: len(slow.came) == PARTITIONS and slow.begun)
        async with quick.at_work():
            await until(lambda: quick.came)  # its partition was taken away, and its handler still runs
            assert slow.effects == []
            slow.may_go.set()
            await until(lambda: _nothing_left(topics))
            await until(lambda: not _busy(opened))
            letters = await opened.letters()

    shared = slow.identities.keys() & quick.identities.keys()
    assert shared
    assert sorted(each.identity for each in letters) == slow.broken
    assert [each.deliveries for each in letters if each.identity.removesuffix("/charge") in shared] == (
        [2] * len(shared) if how == BROKEN else []
    )
    assert quick.effects == slow.fine
