"""Many who want a connection at once find out by one attempt that the server is away."""

from __future__ import annotations

import asyncio

import pytest

from redrive.stores.postgres_knocking import Knocking


class Server:
    """Lets in whoever comes, or nobody."""

    def __init__(self) -> None:
        self.attempts = 0
        self.there = True
        self.goes_after = 1000

    async def connect(self) -> int:
        self.attempts += 1
        number = self.attempts
        for _ in range(3):
            await asyncio.sleep(0)
        if not self.there or number > self.goes_after:
            raise ConnectionRefusedError(number)
        return number


@pytest.fixture
def server() -> Server:
    return Server()


async def ten_at_once(knocking: Knocking) -> list[object]:
    return list(await asyncio.gather(*(knocking.connect() for _ in range(10)), return_exceptions=True))


async def test_of_a_server_that_is_away_one_attempt_tells_all_who_wait(server: Server) -> None:
    knocking = Knocking(server.connect)
    server.there = False

    told = await ten_at_once(knocking)

    assert server.attempts == 1
    assert [type(each) for each in told] == [ConnectionRefusedError] * 10


async def test_whoever_comes_later_tries_again(server: Server) -> None:
    knocking = Knocking(server.connect)
    server.there = False
    await ten_at_once(knocking)

    server.there = True
    told = await ten_at_once(knocking)

    assert sorted(told, key=str) == sorted(range(2, 12), key=str)


async def test_a_server_that_goes_while_some_are_let_in_is_asked_once_more(server: Server) -> None:
    knocking = Knocking(server.connect)
    server.goes_after = 3

    told = await ten_at_once(knocking)

    assert told[:3] == [1, 2, 3]
    assert [type(each) for each in told[3:]] == [ConnectionRefusedError] * 7
    assert server.attempts == 4


async def test_an_attempt_that_is_given_up_holds_nobody_up(server: Server) -> None:
    knocking = Knocking(server.connect)
    given_up = asyncio.create_task(knocking.connect())
    other = asyncio.create_task(knocking.connect())
    await asyncio.sleep(0)
    given_up.cancel()

    assert await other == 2
