"""Many who want a connection at once find out by one attempt that the server is away; leaving takes no time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from redrive.stores.postgres_connections import Connections


class Opened:
    """One connection."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.goodbyes = 0
        self.rude = False

    async def close(self, *, timeout: float) -> None:
        assert timeout > 0
        self.goodbyes += 1
        await asyncio.sleep(0)
        if self.rude:
            raise TimeoutError


class Server:
    """Lets in whoever comes, or nobody."""

    def __init__(self) -> None:
        self.attempts = 0
        self.there = True
        self.goes_after = 1000

    async def connect(self) -> Opened:
        self.attempts += 1
        number = self.attempts
        for _ in range(3):
            await asyncio.sleep(0)
        if not self.there or number > self.goes_after:
            raise ConnectionRefusedError(number)
        return Opened(number)


@pytest.fixture
def server() -> Server:
    return Server()


async def ten_at_once(opening: Connections) -> list[Any]:
    return list(await asyncio.gather(*(opening.open() for _ in range(10)), return_exceptions=True))


def numbers(told: list[Any]) -> list[int]:
    return [each.number for each in told]


async def test_of_a_server_that_is_away_one_attempt_tells_all_who_wait(server: Server) -> None:
    opening = Connections(server.connect)
    server.there = False

    told = await ten_at_once(opening)

    assert server.attempts == 1
    assert [type(each) for each in told] == [ConnectionRefusedError] * 10


async def test_whoever_comes_later_tries_again(server: Server) -> None:
    opening = Connections(server.connect)
    server.there = False
    await ten_at_once(opening)

    server.there = True
    told = await ten_at_once(opening)

    assert numbers(told) == list(range(2, 12))


async def test_a_server_that_goes_while_some_are_let_in_is_asked_once_more(server: Server) -> None:
    opening = Connections(server.connect)
    server.goes_after = 3

    told = await ten_at_once(opening)

    assert numbers(told[:3]) == [1, 2, 3]
    assert [type(each) for each in told[3:]] == [ConnectionRefusedError] * 7
    assert server.attempts == 4


async def test_an_attempt_that_is_given_up_holds_nobody_up(server: Server) -> None:
    opening = Connections(server.connect)
    given_up = asyncio.create_task(opening.open())
    other = asyncio.create_task(opening.open())
    await asyncio.sleep(0)
    given_up.cancel()

    assert (await other).number == 2


async def test_leave_is_taken_of_all_though_some_do_not_answer(server: Server) -> None:
    opening = Connections(server.connect)
    told = await ten_at_once(opening)
    told[3].rude = told[7].rude = True

    await opening.close()

    assert [each.goodbyes for each in told] == [1] * 10
