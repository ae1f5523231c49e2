"""F5, F7: the connection is cut inside a publication, before its confirm arrives, and before an acknowledgement
does. Nobody takes an unknown outcome for a success, and whatever comes again is the same message.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, closing, suppress
from dataclasses import replace
from functools import partial

import pytest

from chaos.lab.killing import problems_at_rest
from chaos.lab.proxy import ACKED, Proxy
from chaos.lab.rabbit import Looking, Rabbit
from chaos.lab.scenarios import EFFECT, FAIL, HEAL, SUCCEED, Redriving, Scenario
from chaos.lab.supervisor import Child, Experiment
from redrive.clock import SystemClock, new_id
from redrive.errors import LeaseLost, Unreachable
from redrive.message import Message
from redrive.transports import Delivery
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.patience import until

STEP = 17
CUTS = 4


@pytest.fixture
def proxy(rabbitmq_url: str) -> Iterator[Proxy]:
    with Proxy(rabbitmq_url) as opened:
        yield opened


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[RabbitTransport]:
    transport = RabbitTransport(url)
    try:
        yield transport
    finally:
        await transport.close()


def a_message(queue: str = "orders") -> Message:
    return Message(id=new_id(), queue=queue, body=b'{"number": 7}' * 10, sent_at=SystemClock().now())


async def received(transport: RabbitTransport, number: int, queue: str = "orders") -> list[Delivery]:
    """So many deliveries, all acknowledged."""
    found: list[Delivery] = []
    async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        while len(found) < number:
            found.append(await anext(deliveries))
            await transport.ack(found[-1])
    return found


async def ready(transport: RabbitTransport, queue: str = "orders") -> int:
    depth = (await transport.depths([queue])).get(queue)
    return 0 if depth is None else depth.ready


async def holds(transport: RabbitTransport, number: int) -> bool:
    return await ready(transport) == number


async def test_a_publication_cut_at_any_byte_is_never_taken_for_sent_and_is_there_when_it_is_sent_again(
    proxy: Proxy, rabbitmq_url: str
) -> None:
    async with opened(proxy.url) as transport, opened(rabbitmq_url) as watch:
        await transport.send(a_message())
        before = proxy.heard
        await transport.send(a_message())
        size = proxy.heard - before
        await received(watch, 2)
        for number in (*range(1, size, STEP), size - 1, size):
            message, other = a_message(), a_message()
            await transport.send(other)  # it is connected again
            proxy.cut_after(number)
            with pytest.raises(Unreachable):
                await transport.send(message)
            if number == size:  # the broker has it all, and nobody was told
                await until(lambda: holds(watch, 2))
            await transport.send(message)
            found = [each.message.id for each in await received(watch, 3 if number == size else 2)]
            assert found == [other.id, *[message.id] * (len(found) - 1)], number
        assert await ready(watch) == 0


async def test_a_retry_cut_at_any_byte_and_its_ack_too_leaves_copies_of_one_identity(
    proxy: Proxy, rabbitmq_url: str
) -> None:
    messages: dict[str, Message] = {}
    identities: dict[str, str] = {}
    finished, number = 0, 1
    async with opened(proxy.url) as transport, opened(rabbitmq_url) as watch:
        while finished < 3:  # the last ones are cut behind the publication, inside the ack
            message = messages.setdefault(f"orders{number}", a_message(f"orders{number}"))
            await transport.send(message)
            delivery, settled = await retry_cut_after(number, transport, message, proxy)
            identities[message.id] = delivery.identity
            finished += settled
            number += 3 if settled else 2 * STEP
        assert len(messages) > 6
        for queue, message in messages.items():
            await until(partial(nobody_has, queue, rabbitmq_url, watch))
            found = await received(watch, await ready(watch, queue), queue)
            assert found
            assert {(each.message.id, each.message.body) for each in found} == {(message.id, message.body)}
            assert {each.identity for each in found} == {identities[message.id]}


async def retry_cut_after(
    number: int, transport: RabbitTransport, message: Message, proxy: Proxy
) -> tuple[Delivery, bool]:
    """What was retried, and whether it was confirmed all the same."""
    settled = False
    async with aclosing(transport.receive(message.queue, prefetch=1)) as deliveries:
        delivery = await anext(deliveries)
        proxy.cut_after(number)
        with suppress(Unreachable, LeaseLost):
            await transport.retry(delivery, message, delay=0, trail=b"once")
            settled = True
        with suppress(LeaseLost):
            await transport.release(delivery)
    return delivery, settled


async def nobody_has(queue: str, url: str, watch: RabbitTransport) -> bool:
    """All copies lie in the queue."""
    with closing(Looking(url)) as looking:
        look = looking.look(queue)
    return look is not None and look.consumers == 0 and await ready(watch, queue) > 0


async def test_a_confirm_that_never_arrives_is_no_success_and_the_message_is_there(
    proxy: Proxy, rabbitmq_url: str
) -> None:
    async with opened(proxy.url) as transport, opened(rabbitmq_url) as watch:
        await transport.send(a_message())
        for number in range(2, 5):
            proxy.cut_answers(ACKED)
            with pytest.raises(Unreachable):
                await transport.send(a_message())
            await until(partial(holds, watch, number))


class Cut(Scenario):
    """A worker whose connections are cut again and again at the words that matter."""

    def __init__(self, proxy: Proxy, cut: Callable[[], None]) -> None:
        super().__init__(lots=10)
        self._proxy = proxy
        self._cut = cut

    def set_stage(self, experiment: Experiment) -> None:
        experiment.produce(SUCCEED, HEAL, EFFECT, FAIL, times=self._lots)

    def begin(self, experiment: Experiment, faults: str) -> Child:
        worker, before = experiment.start("work", faults, forever=True), self._proxy.cuts
        while self._proxy.cuts - before < CUTS:
            self._cut()
            assert not worker.ended_within(0.1), experiment.told()
        return worker


@pytest.mark.parametrize(
    ("rabbit", "lost"),
    [("quorum", "acks of the worker"), ("classic", "confirms of the broker")],
    indirect=["rabbit"],
)
def test_a_worker_whose_acknowledgements_or_confirms_get_lost_repeats_only_what_was_in_flight_and_no_effect(
    lost: str, rabbit: Rabbit, experiment: Callable[..., Experiment]
) -> None:
    with Proxy(rabbit.url) as proxy:
        lab = experiment(broker=replace(rabbit, url=proxy.url, direct=rabbit.url))
        cut = proxy.cut_questions if lost == "acks of the worker" else proxy.cut_answers
        play = Cut(proxy, lambda: cut(ACKED))
        play.set_stage(lab)
        worker = play.begin(lab, "")
        cut(ACKED, 0)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, lab.told()
        lab.kills = CUTS  # each cut may repeat what one death of a process may
        play.come_to_rest(lab)

        assert problems_at_rest(lab, play, in_flight=play.in_flight) == []


@pytest.mark.parametrize("rabbit", ["quorum"], indirect=True)
def test_letters_whose_confirms_get_lost_are_sent_again_under_the_same_redrive_id(
    rabbit: Rabbit, experiment: Callable[..., Experiment]
) -> None:
    with Proxy(rabbit.url) as proxy:
        lab, play = experiment(broker=replace(rabbit, url=proxy.url, direct=rabbit.url)), Redriving(lots=3)
        play.set_stage(lab)
        proxy.cut_answers(ACKED)
        assert lab.start_redriving().wait() == 0, lab.told()
        assert proxy.cuts == 1
        lab.kills = 1  # a cut may repeat what the death of the sender may
        play.come_to_rest(lab)

        assert problems_at_rest(lab, play, in_flight=play.in_flight) == []
