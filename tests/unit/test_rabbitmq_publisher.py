"""Publishing against a broker that answers as it likes: in any order, together, not at all, with returns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from redrive.errors import PublishRefused, Unreachable
from redrive.transports.rabbitmq import publisher as publishing
from redrive.transports.rabbitmq.methods import Basic, ChannelClosed, ConnectionLost, encode
from redrive.transports.rabbitmq.publisher import Publisher, Unroutable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.transports.rabbitmq.connection import Connection

NOTHING = b"\x00\x00"
FITS = 100_000


class Broker:
    """Connection and channel in one; what is written to it is counted."""

    number = 1
    frame_max = 131072

    def __init__(self) -> None:
        self.why_closed: Exception | None = None
        self.blocked = ""
        self.written = 0
        self.aborted: Exception | None = None
        self._free = asyncio.Event()
        self._free.set()

    @property
    def connection(self) -> Broker:
        return self

    @property
    def usable(self) -> bool:
        return self.why_closed is None

    async def channel(self, _listener: Any) -> Broker:
        return self

    async def call(self, _method: Any) -> None:
        pass

    def write(self, _frames: bytes) -> None:
        self.written += 1

    def abort(self, why: Exception) -> None:
        self.aborted = why

    @property
    def hurried(self) -> bool:
        return not self._free.is_set()

    async def room(self) -> None:
        await self._free.wait()

    def block(self, why: str) -> None:
        self.blocked = why
        self._free.clear()

    def unblock(self) -> None:
        self.blocked = ""
        self._free.set()


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
async def publisher(broker: Broker) -> AsyncIterator[Publisher]:
    made = Publisher(30.0)
    await made.open(cast("Connection", broker))
    yield made
    made.closed(ConnectionLost("the test is over"))


async def fly(publisher: Publisher, *bodies: bytes, key: bytes = b"orders", exchange: bytes = b"") -> list[Any]:
    """Under way when it returns."""
    flying = [asyncio.create_task(publisher.publish(exchange, key, NOTHING, body, fits=FITS)) for body in bodies]
    await asyncio.sleep(0)
    return flying


def returned(publisher: Publisher, body: bytes, key: str = "orders", properties: bytes = NOTHING) -> None:
    frame = encode(Basic.Return(reply_code=312, reply_text="NO_ROUTE", exchange="", routing_key=key), 1)
    publisher.returned(frame[7:-1], properties, body)


async def outcome(task: asyncio.Future[None]) -> str:
    try:
        async with asyncio.timeout(10):
            await task
    except PublishRefused as error:
        return (
            "unroutable" if isinstance(error, Unroutable) else f"refused {error.permanent and bool(error.remedy)}"
        )
    except Unreachable:
        return "unknown"
    return "there"


async def test_each_confirm_lands_its_own(publisher: Publisher) -> None:
    one, two, three = await fly(publisher, b"1", b"2", b"3")
    publisher.confirmed(2, multiple=False, taken=True)
    assert await outcome(two) == "there"
    assert not one.done()
    assert not three.done()
    publisher.confirmed(3, multiple=True, taken=True)
    assert [await outcome(one), await outcome(three)] == ["there", "there"]


def begin(publisher: Publisher, *bodies: bytes, key: bytes = b"orders") -> list[Any]:
    """Without anybody who waits; a Future is told as whoever else would be."""
    channel = publisher.open_channel
    assert channel is not None
    words = [asyncio.get_running_loop().create_future() for _ in bodies]
    for word, body in zip(words, bodies, strict=True):
        assert publisher.begin(channel, b"", key, NOTHING, body, word)
    return words


async def test_who_does_not_wait_is_told_the_same(publisher: Publisher) -> None:
    flying = begin(publisher, *(b"%d" % number for number in range(4)))
    returned(publisher, b"1")
    publisher.confirmed(2, multiple=True, taken=True)
    publisher.confirmed(3, multiple=False, taken=False)
    publisher.closed(ConnectionLost("cut"))
    assert [await outcome(each) for each in flying] == ["there", "unroutable", "refused False", "unknown"]


async def test_nothing_begins_where_it_would_have_to_wait(broker: Broker, publisher: Publisher) -> None:
    broker.block("memory")
    assert publisher.open_channel is None
    broker.unblock()
    assert publisher.open_channel is not None


async def test_nothing_begins_on_a_channel_that_is_closed(broker: Broker, publisher: Publisher) -> None:
    broker.why_closed = ChannelClosed(200, "closed")
    assert publisher.open_channel is None


async def test_nothing_begins_for_a_queue_that_confirms_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_DOUBTFUL", 1)
    doubts = publishing.Doubts()
    publisher = Publisher(30.0, doubts)
    await publisher.open(cast("Connection", broker))
    begin(publisher, b"1")
    doubts.add(b"orders")
    channel = publisher.open_channel
    assert channel is not None
    word = asyncio.get_running_loop().create_future()
    assert not publisher.begin(channel, b"", b"orders", NOTHING, b"2", word)
    assert publisher.begin(channel, b"", b"mails", NOTHING, b"2", word)
    publisher.closed(ConnectionLost("the test is over"))
    assert await outcome(word) == "unknown"


async def test_a_nack_is_a_refusal_that_is_worth_another_try(publisher: Publisher) -> None:
    one, two, three = await fly(publisher, b"1", b"2", b"3")
    publisher.confirmed(2, multiple=True, taken=False)
    publisher.confirmed(3, multiple=False, taken=True)
    assert [await outcome(each) for each in (one, two, three)] == ["refused False", "refused False", "there"]


async def test_of_many_in_flight_exactly_the_one_that_came_back_is_refused(publisher: Publisher) -> None:
    flying = await fly(publisher, *(b"%d" % number for number in range(20)))
    returned(publisher, b"7")
    publisher.confirmed(20, multiple=True, taken=True)
    assert [await outcome(each) for each in flying] == ["there"] * 7 + ["unroutable"] + ["there"] * 12


async def test_of_two_keys_the_right_one(publisher: Publisher) -> None:
    [orders] = await fly(publisher, b"same")
    [mails] = await fly(publisher, b"same", key=b"mails")
    returned(publisher, b"same", "mails")
    publisher.confirmed(2, multiple=True, taken=True)
    assert [await outcome(orders), await outcome(mails)] == ["there", "unroutable"]


async def test_twins_that_both_came_back_are_both_refused(publisher: Publisher) -> None:
    flying = await fly(publisher, b"twin", b"twin", b"other")
    returned(publisher, b"twin")
    returned(publisher, b"twin")
    publisher.confirmed(3, multiple=True, taken=True)
    assert [await outcome(each) for each in flying] == ["unroutable", "unroutable", "there"]


async def test_a_return_that_fits_nothing_by_its_content_is_none_that_was_delivered(publisher: Publisher) -> None:
    one, two = await fly(publisher, b"1", b"2")
    [elsewhere] = await fly(publisher, b"1", key=b"mails")
    returned(publisher, b"changed on its way")
    publisher.confirmed(3, multiple=True, taken=True)
    assert [await outcome(each) for each in (one, two, elsewhere)] == ["unroutable", "unroutable", "there"]


async def test_a_confirm_for_nobody_is_nothing(publisher: Publisher) -> None:
    [one] = await fly(publisher, b"1")
    publisher.confirmed(1, multiple=False, taken=True)
    publisher.confirmed(1, multiple=False, taken=False)
    publisher.confirmed(99, multiple=True, taken=False)
    assert await outcome(one) == "there"


@pytest.mark.parametrize("multiple", [False, True])
async def test_r12_no_answer_in_time_is_unknown_and_never_success(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, *, multiple: bool
) -> None:
    monkeypatch.setattr(publishing, "_SWEEP", 0.01)
    publisher = Publisher(0.02)
    await publisher.open(cast("Connection", broker))
    [one] = await fly(publisher, b"1")
    assert await outcome(one) == "unknown"
    [two] = await fly(publisher, b"2")
    publisher.confirmed(1 + multiple, multiple, taken=True)  # too late for the first
    assert one.exception() is not None
    if multiple:
        assert await outcome(two) == "there"
    else:
        assert await outcome(two) == "unknown"
    publisher.closed(ConnectionLost("the test is over"))


async def test_r12_a_lost_channel_leaves_everything_in_flight_unknown(publisher: Publisher) -> None:
    flying = await fly(publisher, b"1", b"2")
    publisher.confirmed(1, multiple=False, taken=True)
    publisher.closed(ConnectionLost("cut"))
    assert [await outcome(each) for each in flying] == ["there", "unknown"]


async def test_whoever_does_not_wait_any_more_disturbs_nobody(publisher: Publisher) -> None:
    one, two = await fly(publisher, b"1", b"2")
    one.cancel()
    await asyncio.wait({one})
    publisher.confirmed(2, multiple=True, taken=True)
    assert await outcome(two) == "there"


@pytest.mark.parametrize(
    ("why", "bodies", "outcomes"),
    [
        (
            ChannelClosed(406, "PRECONDITION_FAILED - message size 300 is larger than configured max size 200"),
            (b"x" * 300, b"x" * 200),
            ["refused True", "unknown"],
        ),
        (ChannelClosed(404, "NOT_FOUND - no exchange 'gone' in vhost '/'"), (b"1",), ["refused True"]),
        (
            ChannelClosed(403, "ACCESS_REFUSED - access to exchange 'gone' in vhost '/' refused for user 'a'"),
            (b"1",),
            ["refused True"],
        ),
        (ChannelClosed(404, "NOT_FOUND - no exchange 'another' in vhost '/'"), (b"1",), ["unknown"]),
        (ChannelClosed(406, "PRECONDITION_FAILED - something else"), (b"1",), ["unknown"]),
        (ChannelClosed(541, "INTERNAL_ERROR"), (b"1",), ["unknown"]),
    ],
    ids=["too large", "no exchange", "no permission", "an exchange of others", "a precondition", "internal"],
)
async def test_r23_why_the_channel_was_closed_decides(
    publisher: Publisher, why: ChannelClosed, bodies: tuple[bytes, ...], outcomes: list[str]
) -> None:
    flying = await fly(publisher, *bodies, exchange=b"gone")
    publisher.closed(why)
    assert [await outcome(each) for each in flying] == outcomes


async def test_r14_a_content_header_that_does_not_fit_is_refused_before_it_is_written(
    broker: Broker, publisher: Publisher
) -> None:
    with pytest.raises(PublishRefused) as refused:
        await publisher.publish(b"", b"orders", b"x" * 101, b"", fits=100)
    assert (refused.value.permanent, broker.written) == (True, 0)


async def test_while_blocked_nothing_is_written_and_afterwards_it_goes_on(
    broker: Broker, publisher: Publisher
) -> None:
    broker.block("low on memory")
    [one] = await fly(publisher, b"1")
    assert broker.written == 0
    broker.unblock()
    for _ in range(5):
        await asyncio.sleep(0)
    assert broker.written == 1
    publisher.confirmed(1, multiple=False, taken=True)
    assert await outcome(one) == "there"


async def test_blocked_beyond_the_deadline_says_why_and_that_nothing_was_sent(broker: Broker) -> None:
    publisher = Publisher(0.01)
    await publisher.open(cast("Connection", broker))
    broker.block("low on memory")
    with pytest.raises(Unreachable, match="low on memory") as refused:
        await publisher.publish(b"", b"orders", NOTHING, b"1", fits=FITS)
    assert "free memory" in (refused.value.remedy or "")
    assert broker.written == 0


async def test_g7_no_more_are_in_flight_than_the_window(
    broker: Broker, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_WINDOW", 3)
    flying = await fly(publisher, *(b"%d" % number for number in range(5)))
    assert broker.written == 3
    publisher.confirmed(3, multiple=True, taken=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert broker.written == 5
    publisher.confirmed(5, multiple=True, taken=True)
    assert {await outcome(each) for each in flying} == {"there"}


async def test_large_bodies_fill_the_window_sooner(
    broker: Broker, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_WINDOW_BYTES", 100)
    flying = await fly(publisher, b"x" * 60, b"x" * 60, b"x")
    assert broker.written == 2
    publisher.confirmed(1, multiple=False, taken=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert broker.written == 3
    publisher.confirmed(3, multiple=True, taken=True)
    assert {await outcome(each) for each in flying} == {"there"}


async def test_a_publisher_without_its_channel_is_of_no_use(broker: Broker, publisher: Publisher) -> None:
    broker.why_closed = ConnectionLost("cut")
    assert not publisher.alive
    with pytest.raises(Unreachable):
        await publisher.publish(b"", b"orders", NOTHING, b"1", fits=FITS)
    assert broker.written == 0


async def test_a_queue_that_never_confirms_does_not_stop_the_others(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_WINDOW", 3)
    impatient = Publisher(0.0)
    await impatient.open(cast("Connection", broker))
    stuck = await fly(impatient, b"1", b"2", b"3")
    impatient._sweep()
    assert [await outcome(each) for each in stuck] == ["unknown"] * 3

    [next_one] = await fly(impatient, b"4")
    impatient.confirmed(4, multiple=False, taken=True)
    assert await outcome(next_one) == "there"
    impatient.confirmed(1, multiple=False, taken=True)  # late, and nobody waits
    impatient.closed(ConnectionLost("the test is over"))


async def test_after_many_unanswered_messages_a_queue_gets_one_at_a_time_until_it_answers(broker: Broker) -> None:
    publisher = Publisher(0.0)
    await publisher.open(cast("Connection", broker))
    lost = await fly(publisher, *(b"%d" % number for number in range(20)))
    publisher._sweep()
    assert [await outcome(each) for each in lost] == ["unknown"] * 20

    first, second = await fly(publisher, b"a", b"b")
    [elsewhere] = await fly(publisher, b"c", key=b"mails")
    assert await outcome(second) == "unknown"  # at once, and nothing of it was written
    publisher.confirmed(22, multiple=True, taken=True)
    assert [await outcome(first), await outcome(elsewhere)] == ["there", "there"]

    again = await fly(publisher, b"d", b"e")
    publisher.confirmed(24, multiple=True, taken=True)
    assert [await outcome(each) for each in again] == ["there", "there"]
    publisher.closed(ConnectionLost("the test is over"))


async def test_a_connection_on_which_nothing_is_confirmed_is_given_up(broker: Broker) -> None:
    publisher = Publisher(0.0)
    await publisher.open(cast("Connection", broker))
    await fly(publisher, b"1")
    publisher._sweep()
    assert broker.aborted is not None


async def test_a_connection_that_confirms_others_is_kept(broker: Broker) -> None:
    publisher = Publisher(0.5)
    await publisher.open(cast("Connection", broker))
    await fly(publisher, b"1")
    await fly(publisher, b"2", key=b"mails")
    publisher._flights[1].deadline = 0.0
    publisher.confirmed(2, multiple=False, taken=True)
    publisher._sweep()
    assert broker.aborted is None
    publisher.closed(ConnectionLost("the test is over"))
