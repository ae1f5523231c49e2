"""Messages that go out together without a task for each, and what became of them so far."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from redrive.transports import ImmediateSending

if TYPE_CHECKING:
    from redrive.message import Message
    from redrive.telemetry.spans import Follow, Span
    from redrive.transports import Transport


class Volley:
    """Where the driver cannot send at once, or there is none, none goes with it."""

    def __init__(self, transport: Transport | None, follow: Follow | None = None) -> None:
        driver: object = transport
        self._transport = driver if isinstance(driver, ImmediateSending) else None
        self._follow = follow
        self._followed: dict[int, Span] = {}
        self._flying = 0
        self._landed: dict[int, Exception | None] = {}
        self._word = asyncio.Event()

    def send(self, place: int, message: Message, *, queue: str) -> bool:
        """Whether it is on its way; what becomes of it is told by this place."""
        if self._transport is None:
            return False
        flies = self._transport.send_at_once(message, queue=queue, done=partial(self._land, place))
        self._flying += flies
        if flies and self._follow is not None:
            self._followed[place] = self._follow(message, queue)
        return flies

    def landed(self) -> dict[int, Exception | None]:
        """What has become known since this was last asked: None, or what went wrong."""
        landed, self._landed = self._landed, {}
        return landed

    @property
    def empty(self) -> bool:
        return not self._flying

    async def over(self) -> None:
        """Until word of all of them has come. The driver sees to it that it does: each has a deadline."""
        while self._flying:
            await self._heard()

    async def word(self) -> None:
        """Until word of one has come that `landed` has not given."""
        while not self._landed:
            await self._heard()

    async def _heard(self) -> None:
        self._word.clear()
        await self._word.wait()

    def _land(self, place: int, error: Exception | None) -> None:
        if (span := self._followed.pop(place, None)) is not None:
            span.end(error)
        self._flying -= 1
        self._landed[place] = error
        self._word.set()
