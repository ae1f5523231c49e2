"""G10 on Kafka: the records of a key stay in their order behind one that fails, and those of other keys flow past
them, also where they share a partition.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from redrive import Retry
from redrive.dead_letter import Status
from redrive.run import RunStatus
from redrive.transports.kafka.lags import Lags
from redrive.transports.kafka.topics import TopicPlan
from redrive.transports.kafka.transport import KafkaTransport
from support.ordered_shop import OrderedShop
from support.patience import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.kafka_server import KafkaServer

CUSTOMERS = ("ann", "bob", "cid", "dee")


@pytest.fixture
def shop(tmp_path: Path, kafka: KafkaServer) -> Callable[..., OrderedShop]:
    name = kafka.topic_name()

    def opened(*, partitions: int, **how: Any) -> OrderedShop:
        opening = partial(KafkaTransport, group=name, plan=TopicPlan(partitions=partitions))
        return OrderedShop(tmp_path, queue=name, broker_url=kafka.url, opening=opening, **how)

    return opened


async def test_while_one_is_tried_again_its_key_waits_and_other_keys_of_its_partition_flow(
    shop: Callable[..., OrderedShop], kafka: KafkaServer
) -> None:
    orders = shop(partitions=1, retry=Retry(1000, ["20ms"]))
    orders.error = ConnectionError("not yet")
    orders.fails = lambda step: step == ("ann", 1)
    async with orders.at_work():
        await orders.send(("ann", 1), ("bob", 1), ("ann", 2), ("bob", 2), ("ann", 3), ("cid", 1))
        await until(lambda: len(orders.charged) == 3)
        await until(lambda: orders.tried.count(("ann", 1)) > 3)

        assert (orders.of("bob"), orders.of("cid")) == ([1, 2], [1])
        assert ("ann", 2) not in orders.tried
        assert [name for name in kafka.topics() if name.startswith(orders.queue)] == [orders.queue]
        assert await _waits(orders, kafka) == 6  # nothing is done for good behind the first
        orders.fails = lambda _: False

        await until(lambda: orders.of("ann") == [1, 2, 3])
        await until(lambda: _is_done(orders, kafka))
        assert await orders.letters() == {}


@pytest.mark.parametrize("partitions", [1, 3])
async def test_what_comes_behind_a_dead_record_of_its_key_is_parked_and_a_run_sends_all_in_order(
    partitions: int, shop: Callable[..., OrderedShop], kafka: KafkaServer
) -> None:
    orders = shop(partitions=partitions)
    orders.fails = lambda step: step in {("ann", 1), ("bob", 2)}
    async with orders.at_work():
        await orders.send(*((name, number) for number in (1, 2, 3, 4) for name in CUSTOMERS))
        await until(lambda: _number(orders, 7))
        await until(lambda: len(orders.charged) == 9)

        letters = await orders.letters(Status.PENDING)
        ann, bob = letters["ann", 1], letters["bob", 2]
        assert [letters["ann", each].blocked_by for each in (1, 2, 3, 4)] == [None, ann.id, ann.id, ann.id]
        assert [letters["bob", each].blocked_by for each in (2, 3, 4)] == [None, bob.id, bob.id]
        assert (orders.of("bob"), orders.of("cid"), orders.of("dee")) == ([1], [1, 2, 3, 4], [1, 2, 3, 4])
        await until(lambda: _is_done(orders, kafka))
        orders.fails = lambda _: False

        run = await orders.run()

        await until(lambda: _number(orders, 7, Status.RESOLVED))
        assert (run.status, run.progress.sent) == (RunStatus.DONE, 7)
        assert [orders.of(name) for name in CUSTOMERS] == [[1, 2, 3, 4]] * len(CUSTOMERS)
        await orders.send(("ann", 5))  # the key is free
        await until(lambda: orders.of("ann") == [1, 2, 3, 4, 5])


async def test_records_that_are_given_back_come_again_in_their_order(shop: Callable[..., OrderedShop]) -> None:
    orders = shop(partitions=1)
    async with orders.at_work(start=False):
        await orders.send(*(("ann", number) for number in range(1, 7)))
        transport = orders.workshop.transport
        receiving = transport.receive(orders.queue, prefetch=10)
        held = [await anext(receiving) for _ in range(4)]
        for each in (held[1], held[0], held[2], held[3]):
            await transport.release(each)
        again = [await anext(receiving) for _ in range(6)]
        await receiving.aclose()

    assert [each.receipt.record.offset for each in again] == [0, 1, 2, 3, 4, 5]


async def _number(orders: OrderedShop, number: int, status: Status | None = None) -> bool:
    return len(await orders.letters(status)) == number


async def _waits(orders: OrderedShop, kafka: KafkaServer) -> int:
    """Records of the queue that are behind no commit of the group."""
    lags = await Lags(kafka.admin(), within=10).of(orders.queue, {orders.queue: 1}, {})
    return sum(lags.values())


async def _is_done(orders: OrderedShop, kafka: KafkaServer) -> bool:
    return await _waits(orders, kafka) == 0
