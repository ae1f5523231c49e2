"""Messages that go out together: each one's own outcome, told once, whenever it comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from redrive.volley import Volley
from support.dead_letters import an_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.message import Message
    from redrive.transports import Transport

LOST = ConnectionError("lost")


class Driver:
    """Sends at once what has a body, and tells of it when it is told to."""

    def __init__(self) -> None:
        self.tell: list[Callable[[Exception | None], None]] = []

    def send_at_once(
        self,
        message: Message,
        *,
        queue: str,  # noqa: ARG002  the seam's
        done: Callable[[Exception | None], None],
    ) -> bool:
        if message.body is not None:
            self.tell.append(done)
        return message.body is not None


def sent(driver: object, number: int) -> Volley:
    volley = Volley(cast("Transport", driver))
    assert all(volley.send(place, an_order(), queue="orders") for place in range(number))
    return volley


async def test_what_became_of_each_is_given_once_and_it_is_over_when_all_is_known() -> None:
    driver = Driver()
    volley = sent(driver, 3)
    over = asyncio.create_task(volley.over())
    driver.tell[2](None)
    driver.tell[0](LOST)
    await asyncio.sleep(0)
    assert volley.landed() == {2: None, 0: LOST}
    assert volley.landed() == {}
    assert (over.done(), volley.empty) == (False, False)
    driver.tell[1](None)
    await over
    assert volley.empty
    assert volley.landed() == {1: None}


async def test_word_of_one_is_enough_for_who_waits_for_word() -> None:
    driver = Driver()
    volley = sent(driver, 2)
    word = asyncio.create_task(volley.word())
    await asyncio.sleep(0)
    assert not word.done()
    driver.tell[1](None)
    await word
    assert volley.landed() == {1: None}


async def test_what_landed_before_anybody_waited_is_not_waited_for() -> None:
    driver = Driver()
    volley = sent(driver, 1)
    driver.tell[0](None)
    await volley.over()
    await volley.word()


async def test_a_driver_that_cannot_send_at_once_gets_nothing() -> None:
    assert not Volley(cast("Transport", object())).send(0, an_order(), queue="orders")
    assert not Volley(None).send(0, an_order(), queue="orders")
    assert Volley(None).empty
