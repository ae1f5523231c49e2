"""Who carries alerts out: one courier for each channel, so that none waits for another.

Whoever raises an alert waits for the outbox alone, never for a channel. A channel that is down, slow or flooded
holds up its own courier and nobody else; what is left over is in the outbox, which is bounded.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from redrive import faults
from redrive.alerts.alert import Severity
from redrive.alerts.channels import Channel
from redrive.alerts.outbox import LEASE
from redrive.errors import NotDelivered, RedriveError
from redrive.schedule import exponential
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from redrive.alerts.alert import Alert
    from redrive.alerts.outbox import Claimed, Outbox
    from redrive.clock import Clock

log = structlog.get_logger("redrive.alerts")

WAITS = exponential("2s", factor=2, at_most="5m", jitter="equal")
"""Between attempts: over a quarter of an hour before the tenth."""

LONGEST_ASKED = 900.0
"""Seconds that a receiver may ask to be left alone for."""

_LOOK_EVERY = 5.0
"""For what other processes put into the outbox."""

_LONGEST_ATTEMPT = LEASE / 2
_LONGEST_QUESTION = 5.0
"""A store that does not answer keeps nobody from being told."""


async def always(_alert: Alert) -> bool:
    return True


class Line(msgspec.Struct, frozen=True):
    channel: Channel
    min_severity: Severity = Severity.INFO


class Dispatcher:
    """`attempts` of one alert by one channel; then it is undelivered. `is_current` says whether an alert is still
    what is to be told: another server, with an outbox of its own, may have told of the end meanwhile. `run` does
    the work.
    """

    def __init__(
        self,
        lines: Mapping[str, Line],
        outbox: Outbox,
        *,
        clock: Clock,
        attempts: int = 10,
        dice: Callable[[], float] = random.random,
        is_current: Callable[[Alert], Awaitable[bool]] = always,
    ) -> None:
        self._lines = dict(lines)
        self.outbox = outbox
        self._clock = clock
        given: dict[str, Any] = {"clock": clock, "attempts": attempts, "dice": dice, "is_current": is_current}
        self._couriers = {name: Courier(name, line.channel, outbox, **given) for name, line in lines.items()}

    async def hand_over(self, alert: Alert, only: Collection[str] | None = None) -> None:
        """Every channel that is to hear of it will, whatever becomes of this process: durable when it returns.
        `only`: of these; none: of all. Unreachable: the outbox cannot be written, and nobody hears of it. Safe to
        repeat.
        """
        names = [
            name
            for name, line in self._lines.items()
            if alert.severity.rank >= line.min_severity.rank and (not only or name in only)
        ]
        if names:
            await self.outbox.put(alert, names, self._clock.now())
        for name in names:
            self._couriers[name].wake()

    async def run(self) -> None:
        """Until it is cancelled. What is being sent then is sent again by the next one."""
        async with asyncio.TaskGroup() as tasks:
            for courier in self._couriers.values():
                tasks.create_task(courier.run())


class Courier:
    """One channel's."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        outbox: Outbox,
        *,
        clock: Clock,
        attempts: int,
        dice: Callable[[], float],
        is_current: Callable[[Alert], Awaitable[bool]],
    ) -> None:
        self._name = name
        self._channel = channel
        self._outbox = outbox
        self._clock = clock
        self._attempts = attempts
        self._dice = dice
        self._is_current = is_current
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    async def run(self) -> None:
        while True:
            self._news.clear()  # before it looks: what comes while it looks wakes it again
            try:
                if not await self._carry_one():
                    await self._pause()
            except Exception as error:  # noqa: BLE001  whatever is wrong with the outbox, the courier lives on
                log.warning("alerts wait: the outbox fails", channel=self._name, **error_facts(error))
                await self._clock.sleep(_LOOK_EVERY)

    async def _carry_one(self) -> bool:
        """Whether there was one."""
        claimed = await self._outbox.claim(self._name, self._clock.now())
        if claimed is None:
            return False
        if not await self._is_still_so(claimed.alert):
            await self._outbox.outdated(claimed)
            return True
        try:
            await attempt(self._channel, claimed.alert)
        except NotDelivered as refused:
            await self._not_delivered(claimed, refused)
        else:
            faults.point("alerts.delivered")
            await self._outbox.delivered(self._name, claimed)
        return True

    async def _is_still_so(self, alert: Alert) -> bool:
        """What nobody can say is told: twice rather than never."""
        try:
            async with asyncio.timeout(_LONGEST_QUESTION):
                return await self._is_current(alert)
        except (RedriveError, TimeoutError):
            return True

    async def _not_delivered(self, claimed: Claimed, refused: NotDelivered) -> None:
        now = self._clock.now()
        facts = {"channel": self._name, "alert": claimed.alert.id, "attempts": claimed.attempts}
        if refused.permanent or claimed.attempts >= self._attempts:
            log.error("an alert could not be delivered: `redrive alerts undelivered`", why=str(refused), **facts)
            await self._outbox.failed(self._name, claimed, str(refused), now=now, again_at=None)
            return
        asked = min(refused.again_in or 0.0, LONGEST_ASKED)
        wait = max(WAITS.delay(claimed.attempts, self._dice()), asked)
        log.warning("an alert was not delivered", why=str(refused), again_in=round(wait, 1), **facts)
        again_at = now.timestamp() + wait
        await self._outbox.failed(self._name, claimed, str(refused), now=now, again_at=again_at)

    async def _pause(self) -> None:
        """Until there is news, or something is due, or it is time to look for what others brought."""
        due = await self._outbox.next_due(self._name)
        wait = _LOOK_EVERY if due is None else min(_LOOK_EVERY, max(due - self._clock.now().timestamp(), 0.01))
        waiting = {asyncio.ensure_future(each) for each in (self._news.wait(), self._clock.sleep(wait))}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()


async def attempt(channel: Channel, alert: Alert) -> None:
    """One, which ends in time. NotDelivered, whatever else goes wrong; no error quotes what others answered."""
    try:
        async with asyncio.timeout(_LONGEST_ATTEMPT):
            await channel.deliver(alert)
    except NotDelivered:
        raise
    except TimeoutError:
        raise NotDelivered(f"it took longer than {_LONGEST_ATTEMPT:g} s", permanent=False) from None
    except Exception as error:
        told = str(error) if isinstance(error, RedriveError) else type(error).__name__
        raise NotDelivered(f"sending it failed: {told}", permanent=False) from error
