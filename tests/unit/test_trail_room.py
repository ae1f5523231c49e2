"""How much of the story of its failures travels with a message: as much as the broker has room for."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from redrive import App, Retry
from redrive.errors import PublishRefused, TrailTooLong
from redrive.failure import decode_trail, encode_trail
from redrive.sinks import TRAIL_BUDGET, QueueSink, with_trail
from redrive.testing.letters import a_failure, an_entry
from redrive.transports import Names
from redrive.transports.embedded import EmbeddedTransport
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from redrive import Delivery, Message

FAILURES = tuple(a_failure(number) for number in range(1, 6))
WHOLE = encode_trail(FAILURES, TRAIL_BUDGET)


class FakeNarrowBroker(EmbeddedTransport):
    """The embedded broker, with a limit of its own for trails, as brokers with small headers have."""

    def __init__(self, url: str, *, room: int, names: Names, **how: Any) -> None:
        super().__init__(url, names=names, **how)
        self._room = room
        self.asked: list[int] = []

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        self._measure(trail or b"")
        await super().send(message, queue=queue, delay=delay, trail=trail)

    async def retry(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> None:
        self._measure(trail)
        await super().retry(delivery, message, delay=delay, trail=trail)

    def _measure(self, trail: bytes) -> None:
        self.asked.append(len(trail))
        if len(trail) > self._room:
            raise TrailTooLong(self._room)


class FakeChannel:
    """Answers each trail that is sent with the next room; None: it is taken."""

    def __init__(self, *rooms: int | None) -> None:
        self._rooms = list(rooms)
        self.sent: list[bytes] = []

    async def send(self, trail: bytes) -> None:
        self.sent.append(trail)
        room = self._rooms.pop(0)
        if room is not None:
            raise TrailTooLong(room)


async def test_where_there_is_room_the_whole_trail_goes_at_once() -> None:
    channel = FakeChannel(None)

    await with_trail(FAILURES, channel.send)

    assert channel.sent == [WHOLE]


async def test_a_trail_that_is_too_long_is_cut_to_the_room_there_is() -> None:
    room = len(WHOLE) // 2
    channel = FakeChannel(room, None)

    await with_trail(FAILURES, channel.send)

    assert channel.sent == [WHOLE, encode_trail(FAILURES, room)]
    assert 0 < len(channel.sent[1]) <= room
    assert decode_trail(channel.sent[1])[-1].attempt == 5


async def test_no_room_at_all_is_an_empty_trail() -> None:
    channel = FakeChannel(0, None)

    await with_trail(FAILURES, channel.send)

    assert channel.sent == [WHOLE, b""]


async def test_a_broker_that_finds_less_and_less_room_gets_the_message_without_a_trail() -> None:
    channel = FakeChannel(1000, 500, None)

    await with_trail(FAILURES, channel.send)

    assert channel.sent == [WHOLE, encode_trail(FAILURES, 1000), b""]


async def test_a_broker_that_has_no_room_for_nothing_is_not_asked_for_ever() -> None:
    channel = FakeChannel(1000, 500, 0)

    with pytest.raises(PublishRefused) as refused:
        await with_trail(FAILURES, channel.send)

    assert refused.value.permanent
    assert len(channel.sent) == 3


@pytest.mark.parametrize("room", [TRAIL_BUDGET, len(WHOLE) // 2, 0])
async def test_a_copy_in_the_dead_letter_queue_tells_as_many_failures_as_fit(room: int) -> None:
    broker = FakeNarrowBroker("embedded:///:memory:", room=room, names=Names())
    entry = an_entry(failures=FAILURES)

    kept = await QueueSink(broker).keep(entry)

    async with aclosing(broker.receive("orders_dlq", prefetch=1)) as deliveries:
        delivery = await anext(deliveries)
    assert (kept.sink, delivery.trail) == ("queue", encode_trail(FAILURES, room, identity=entry.identity))
    assert (delivery.message.body, delivery.message.retry_count) == (entry.message.body, 5)
    assert len(broker.asked) == (1 if room == TRAIL_BUDGET else 2)
    await broker.close()


@pytest.mark.parametrize(("room", "told"), [(TRAIL_BUDGET, 3), (0, 1)])
async def test_a_retry_goes_on_with_the_failures_that_fit(tmp_path: Path, room: int, told: int) -> None:
    app, runs = App("shop"), []

    @app.handler("orders", retry=Retry(3, "10ms"))
    async def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])
        raise TimeoutError("bank")

    def narrow(url: str, **how: Any) -> FakeNarrowBroker:
        return FakeNarrowBroker(url, room=room, **how)

    async with workshop(app, tmp_path, opening=narrow) as shop:
        await shop.send("orders", {"number": 1})
        await until(shop.letters)
        await until(shop.empty)

        [letter] = await shop.letters()
        assert (letter.attempts, len(letter.failures), runs) == (3, told, [1, 1, 1])
