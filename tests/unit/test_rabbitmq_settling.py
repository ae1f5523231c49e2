"""Acknowledgements of one channel against a broker that keeps strict books: whatever is settled in whatever order,
no unfinished delivery is ever acknowledged, and no tag is named that the broker does not wait for.
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.errors import LeaseLost
from redrive.transports.rabbitmq import wire
from redrive.transports.rabbitmq.methods import ConnectionLost
from redrive.transports.rabbitmq.settling import LOOKS, Tags

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.transports.rabbitmq.channel import Channel

_FRAME = Struct(">BHIIQBB")


class Broker:
    """The other end of a channel. Its books are what a settled delivery is checked against."""

    number = 3

    def __init__(self) -> None:
        self.why_closed: ConnectionLost | None = None
        self.outstanding: set[int] = set()
        self.acked: set[int] = set()
        self.rejected: dict[int, bool] = {}
        self.frames = 0
        self._soon: list[Callable[[], None]] = []
        self._last = 0

    @property
    def usable(self) -> bool:
        return self.why_closed is None

    @property
    def connection(self) -> Broker:
        return self

    def soon(self, job: Callable[[], None]) -> None:
        self._soon.append(job)

    def turn(self) -> None:
        jobs, self._soon = self._soon, []
        for job in jobs:
            job()

    def deliver(self) -> int:
        self._last += 1
        self.outstanding.add(self._last)
        return self._last

    def write(self, frames: bytes) -> None:
        for start in range(0, len(frames), _FRAME.size):
            _, number, _, method, tag, flag, end = _FRAME.unpack_from(frames, start)
            assert (number, end) == (self.number, wire.FRAME_END)
            assert tag in self.outstanding, f"unknown delivery tag {tag}"  # the broker would close the channel
            self.frames += 1
            if method == wire.REJECT:
                self.outstanding.remove(tag)
                self.rejected[tag] = bool(flag)
            else:
                settled = {each for each in self.outstanding if each <= tag} if flag else {tag}
                self.outstanding -= settled
                self.acked |= settled


def channel(broker: Broker) -> Channel:
    return cast("Channel", broker)


operations = st.lists(
    st.tuples(st.sampled_from(["deliver", "ack", "release", "loop", "move", "moved", "turn"]), st.integers(0, 30)),
    min_size=5,
    max_size=60,
)


@settings(max_examples=300)
@given(operations)
def test_the_books_agree_whatever_is_settled_in_whatever_order(steps: list[tuple[str, int]]) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, int]]) -> None:
    broker, freed = Broker(), []
    tags = Tags(channel(broker), lambda: freed.append(1))
    held: list[int] = []
    acked: set[int] = set()
    given_back: dict[int, bool] = {}
    moving: dict[int, Any] = {}
    for operation, which in steps:
        tag = held[which % len(held)] if held else 0
        if operation == "deliver":
            tags.take(broker.deliver())
            held.append(max(broker.outstanding))
        elif operation == "turn":
            broker.turn()
        elif operation == "moved" and moving:
            number, context = moving.popitem()
            context.__exit__(None, None, None)
            held.append(number)
        elif operation in {"ack", "release", "loop", "move"} and tag:
            held.remove(tag)
            if operation == "ack":
                tags.ack(tag)
                acked.add(tag)
            elif operation == "move":
                moving[tag] = tags.moving(tag)
                moving[tag].__enter__()
                with pytest.raises(LeaseLost):
                    tags.ack(tag)
            else:
                tags.reject(tag, requeue=operation == "release")
                given_back[tag] = operation == "release"
        assert broker.acked <= acked
        assert len(tags) == len(held) + len(moving)
    broker.turn()
    assert broker.acked == acked
    assert broker.rejected == given_back
    assert broker.outstanding == {*held, *moving}
    assert len(freed) == len(acked) + len(given_back)


async def test_what_is_acked_in_one_turn_goes_out_as_one_frame_and_what_has_a_gap_below_it_alone() -> None:
    broker = Broker()
    tags = Tags(channel(broker), lambda: None)
    for _ in range(10):
        tags.take(broker.deliver())
    for tag in (3, 1, 2, 5, 4, 8):
        tags.ack(tag)
    assert broker.frames == 0
    broker.turn()
    assert (broker.frames, broker.outstanding) == (2, {6, 7, 9, 10})  # 1 to 5 together, and 8
    tags.ack(6)
    tags.ack(7)
    broker.turn()
    assert (broker.frames, broker.outstanding) == (3, {9, 10})


async def test_r11_a_tag_of_a_channel_that_is_gone_is_a_lost_lease_and_nothing_is_written() -> None:
    broker = Broker()
    tags = Tags(channel(broker), lambda: None)
    for _ in range(3):
        tags.take(broker.deliver())
    tags.ack(1)
    broker.why_closed = ConnectionLost("cut")
    broker.turn()  # what was acked and not yet written is not written
    assert broker.frames == 0
    assert not tags.holds(2)
    for settle in (tags.ack, lambda tag: tags.reject(tag, requeue=True)):
        with pytest.raises(LeaseLost) as lost:
            settle(2)
        assert lost.value.remedy
    with pytest.raises(LeaseLost), tags.moving(3):
        pass


async def test_nothing_is_settled_twice() -> None:
    broker = Broker()
    tags = Tags(channel(broker), lambda: None)
    tags.take(broker.deliver())
    tags.ack(1)
    with pytest.raises(LeaseLost):
        tags.ack(1)
    with pytest.raises(LeaseLost):
        tags.reject(1, requeue=True)
    with pytest.raises(LeaseLost):
        tags.ack(2)


async def test_a_move_that_fails_leaves_it_where_it_was() -> None:
    broker = Broker()
    tags = Tags(channel(broker), lambda: None)
    tags.take(broker.deliver())
    with pytest.raises(RuntimeError), tags.moving(1):
        raise RuntimeError("refused")
    assert tags.holds(1)
    tags.ack(1)


async def test_giving_back_rejects_the_latest_first_and_leaves_what_is_being_moved() -> None:
    broker = Broker()
    tags = Tags(channel(broker), lambda: None)
    for _ in range(4):
        tags.take(broker.deliver())
    with tags.moving(2):
        tags.give_back()
        assert list(broker.rejected) == [4, 3, 1]
        assert set(broker.rejected.values()) == {True}
    tags.ack(2)
    broker.turn()
    assert not broker.outstanding


async def test_r13_what_is_held_is_told_once_after_half_of_the_time() -> None:
    tags = Tags(channel(Broker()), lambda: None)
    tags.take(1)
    told = [tags.late() for _ in range(LOOKS)]
    assert (sum(told), told.index(1)) == (1, LOOKS // 2)


def test_each_channel_has_its_own_generation() -> None:
    assert Tags(channel(Broker()), lambda: None).generation != Tags(channel(Broker()), lambda: None).generation
