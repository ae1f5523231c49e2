"""S4's two queues on a real broker: rejected, waiting in `.deadletter` for their TTL, back, so many times, then
`.limbu`. On queues that we made the broker itself turns the loop; on queues that S4 made we use them as they are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App, Message, Retry
from redrive.wiring import transport
from support.at_work import settings_on, working
from support.patience import until
from support.plain_client import PlainClient
from support.rabbitmq_server import RabbitServer, vhost_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redrive.settings import Settings
    from redrive.transports import Delivery

NOTICE = "sgp.fechamento.reabertura.notificacao.dre"
FREQUENCY = "sgp.frequencia.calculo"
EXCHANGE, AWAY = "sme.sgp.workers", "sme.sgp.workers.deadletter"
CYCLES = {NOTICE: 3, FREQUENCY: 10}
TTL = {NOTICE: 200, FREQUENCY: 100}
"""Milliseconds, in the place of ten and of three minutes."""


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        yield client


def settings_for(url: str, folder: Path, **rabbit: Any) -> Settings:
    loops = {queue: {"loop": {"ttl": TTL[queue] / 1000, "cycles": CYCLES[queue]}} for queue in CYCLES}
    told = {"topology": "ttl-loop", "exchange": EXCHANGE, "dead_letter_exchange": AWAY} | rabbit
    return settings_on(url, folder, rabbitmq=told, queues=loops, dead_letters={"sink": "queue"})


class Sgp:
    """S4's worker: every attempt fails. It keeps what each one saw."""

    def __init__(self) -> None:
        self.app = App("sgp")
        self.seen: dict[str, list[Message]] = {}
        for queue in CYCLES:
            self.app.handler(queue)(self._failing(queue))

    def _failing(self, queue: str) -> Any:
        async def process(message: Message) -> None:
            self.seen.setdefault(queue, []).append(message)
            raise TimeoutError("the school does not answer")

        return process


def s4_declares(other: PlainClient, *queues: str) -> None:
    """As S4's pictures show its queues: classic, without any routing key for dead letters."""
    other.declare_exchange(EXCHANGE)
    other.declare_exchange(AWAY)
    for queue in queues:
        other.declare(queue, dead_letter_exchange=AWAY)
        other.declare(f"{queue}.deadletter", dead_letter_exchange=EXCHANGE, message_ttl=TTL[queue])
        other.declare(f"{queue}.limbu")
        other.bind(EXCHANGE, queue)
        other.bind(AWAY, f"{queue}.deadletter", queue)


def rejections(message: Message, queue: str) -> int:
    for name, value in message.headers:
        if name == "x-death":
            return sum(each["count"] for each in value if (each["queue"], each["reason"]) == (queue, "rejected"))
    return 0


async def limbo(settings: Settings, queue: str) -> Delivery:
    """What lies in limbo, as whoever extracts it from there reads it."""
    opened = transport(settings, app="sgp")
    try:
        receiving = opened.receive(f"{queue}.limbu", prefetch=1)
        delivery = await anext(receiving)
        await opened.ack(delivery)
        await receiving.aclose()
    finally:
        await opened.close()
    return delivery


async def test_s4_on_queues_that_we_made_the_broker_turns_the_loop_and_x_death_counts_the_cycles(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    settings, sgp = settings_for(rabbitmq_url, tmp_path), Sgp()
    async with working(sgp.app, settings):
        for queue in CYCLES:
            other.publish(queue, b'{"turma": 7}', exchange=EXCHANGE, message_id=f"m-{queue}")
        for queue in CYCLES:
            await until(partial(other.count, f"{queue}.limbu"))

    for queue, cycles in CYCLES.items():
        assert [rejections(message, queue) for message in sgp.seen[queue]] == list(range(cycles + 1))
        assert {message.id for message in sgp.seen[queue]} == {f"m-{queue}"}
        dead = await limbo(settings, queue)
        assert (dead.message.body, rejections(dead.message, queue)) == (b'{"turma": 7}', cycles)
        assert other.count(queue) == other.count(f"{queue}.deadletter") == other.count(f"{queue}.limbu") == 0


async def test_s4_queues_that_existed_before_are_used_as_they_are(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    s4_declares(other, *CYCLES)
    settings, sgp = settings_for(rabbitmq_url, tmp_path, declare="never"), Sgp()
    for queue in CYCLES:
        other.publish(queue, b'{"turma": 7}', exchange=EXCHANGE, message_id=f"m-{queue}")
    async with working(sgp.app, settings):
        for queue in CYCLES:
            await until(partial(other.count, f"{queue}.limbu"))

    for queue, cycles in CYCLES.items():
        assert [message.retry_count for message in sgp.seen[queue]] == list(range(cycles + 1))
        dead = await limbo(settings, queue)
        assert (dead.message.body, dead.message.id) == (b'{"turma": 7}', f"m-{queue}")
        assert dead.message.retry_count == cycles + 1
        assert other.count(queue) == other.count(f"{queue}.deadletter") == 0


async def test_s4_the_ttl_of_a_queue_that_existed_before_is_the_one_that_counts(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    """S4's picture shows five seconds where its text says ten minutes."""
    s4_declares(other, NOTICE)
    settings, sgp = settings_for(rabbitmq_url, tmp_path, declare="never"), Sgp()
    settings = settings.model_copy(update={"queues": {}})  # ten minutes, three times
    del sgp.app.handlers[FREQUENCY]
    other.publish(NOTICE, b"{}", exchange=EXCHANGE)
    async with working(sgp.app, settings):
        await until(lambda: other.count(f"{NOTICE}.limbu"))

    assert len(sgp.seen[NOTICE]) == 4


async def test_s4_cycles_that_its_own_worker_has_turned_are_counted(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    s4_declares(other, NOTICE)
    other.publish(NOTICE, b"{}", exchange=EXCHANGE)
    for _ in range(2):
        await other.reject(NOTICE)
    settings, sgp = settings_for(rabbitmq_url, tmp_path), Sgp()
    async with working(sgp.app, settings):
        await until(lambda: other.count(f"{NOTICE}.limbu"))

    assert len(sgp.seen[NOTICE]) == 2  # the third and the fourth attempt
    assert rejections(sgp.seen[NOTICE][0], NOTICE) == 2


@pytest.mark.parametrize(
    "headers",
    [(), (("again", 1), ("again", 2)), (("moment", 2**70),)],
    ids=["plain", "a name twice", "what AMQP cannot say"],
)
async def test_s4_a_message_of_ours_goes_round_as_often_whatever_its_headers(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, headers: Any
) -> None:
    settings, sgp = settings_for(rabbitmq_url, tmp_path), Sgp()
    async with working(sgp.app, settings):
        sent = await sgp.app.send(NOTICE, {"turma": 7}, headers=headers)
        await until(lambda: other.count(f"{NOTICE}.limbu"))

    assert [message.id for message in sgp.seen[NOTICE]] == [sent.id] * 4
    dead = await limbo(settings, NOTICE)
    assert dead.message.body == sent.body
    assert [each for each in dead.message.headers if "death" not in each[0]] == list(headers)


async def test_s4_a_message_that_was_sent_with_a_delay_is_counted_too(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    settings, sgp = settings_for(rabbitmq_url, tmp_path), Sgp()
    async with working(sgp.app, settings):
        await sgp.app.send(NOTICE, {"turma": 7}, delay=0.1)
        await until(lambda: other.count(f"{NOTICE}.limbu"))

    assert len(sgp.seen[NOTICE]) == 4


async def test_s4_waits_of_both_kinds_add_up(tmp_path: Path, rabbitmq_url: str, other: PlainClient) -> None:
    """A handler's own delays: the first in a delay queue of ours, the others in the loop."""
    app, seen = App("sgp"), []

    @app.handler(NOTICE, retry=Retry(attempts=4, delays=["100ms", "200ms"]))
    async def process(message: Message) -> None:
        seen.append(message)
        raise TimeoutError("the school does not answer")

    settings = settings_for(rabbitmq_url, tmp_path)
    async with working(app, settings):
        other.publish(NOTICE, b"{}", exchange=EXCHANGE, message_id="m-1")
        await until(lambda: other.count(f"{NOTICE}.limbu"))

    assert len(seen) == 4


async def test_s4_limbo_has_no_consumer_no_dead_letter_exchange_and_no_ttl(
    tmp_path: Path, rabbitmq_url: str, rabbitmq: RabbitServer
) -> None:
    async with working(Sgp().app, settings_for(rabbitmq_url, tmp_path)):
        queues = {each["name"]: each for each in rabbitmq.queues(vhost_of(rabbitmq_url))}

    for queue, ttl in TTL.items():
        assert queues[f"{queue}.limbu"]["arguments"] == {"x-queue-type": "quorum"}
        assert queues[f"{queue}.deadletter"]["arguments"]["x-message-ttl"] == ttl
        assert queues[f"{queue}.deadletter"]["arguments"]["x-dead-letter-exchange"] == EXCHANGE
        assert queues[queue]["arguments"]["x-dead-letter-exchange"] == AWAY
        assert queues[queue]["arguments"]["x-dead-letter-strategy"] == "at-least-once"
