"""Who carries alerts out: one courier for each channel, so that none waits for another.

Whoever raises an alert waits for the outbox alone, never for a channel. A channel that is down, slow or flooded
holds up its own courier and nobody else; what is left over is in the outbox, which is bounded.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

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
    from collections.abc import Callable, Collection, Mapping

    from redrive.alerts.alert import Alert
    from redrive.alerts.outbox import Claimed, Outbox
    from redrive.clock import Clock

log = structlog.get_logger("redrive.alerts")

WAITS = exponential("2s", factor=2, at_most="5m", jitter="equal")
"""Between attempts: over a quarter of an hour before the tenth."""

_LOOK_EVERY = 5.0
"""For what other processes put into the outbox."""

_LONGEST_ATTEMPT = LEASE / 2


class Line(msgspec.Struct, frozen=True):
    channel: Channel
    min_severity: Severity = Severity.INFO


class Dispatcher:
    """`attempts` of one alert by one channel; then it is undelivered. `run` does the work."""

    def __init__(
        self,
        lines: Mapping[str, Line],
        outbox: Outbox,
        *,
        clock: Clock,
        attempts: int = 10,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self._lines = dict(lines)
        self.outbox = outbox
        self._clock = clock
        self._couriers = {
            name: Courier(name, line.channel, outbox, clock=clock, attempts=attempts, dice=dice)
            for name, line in lines.items()
        }

    async def hand_over(self, alert: Alert, *, only: Collection[str] = ()) -> None:
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
    ) -> None:
        self._name = name
        self._channel = channel
        self._outbox = outbox
        self._clock = clock
        self._attempts = attempts
        self._dice = dice
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    async def run(self) -> None:
        while True:
            self._news.clear()  # before it looks: what comes while it looks wakes it again
            try:
                worked = await self._carry_one()
            except Exception as error:  # noqa: BLE001  whatever is wrong with the outbox, the courier lives on
                log.warning("alerts wait: the outbox fails", channel=self._name, **error_facts(error))
                await self._clock.sleep(_LOOK_EVERY)
                continue
            if not worked:
                await self._pause()

    async def _carry_one(self) -> bool:
        """Whether there was one."""
        claimed = await self._outbox.claim(self._name, self._clock.now())
        if claimed is None:
            return False
        try:
            await attempt(self._channel, claimed.alert)
        except NotDelivered as refused:
            await self._not_delivered(claimed, refused)
        else:
            faults.point("alerts.delivered")
            await self._outbox.delivered(self._name, claimed)
        return True

    async def _not_delivered(self, claimed: Claimed, refused: NotDelivered) -> None:
        now = self._clock.now()
        facts = {"channel": self._name, "alert": claimed.alert.id, "attempts": claimed.attempts}
        if refused.permanent or claimed.attempts >= self._attempts:
            log.error("an alert could not be delivered: `redrive alerts undelivered`", why=str(refused), **facts)
            await self._outbox.failed(self._name, claimed, str(refused), now=now, again_at=None)
            return
        wait = WAITS.delay(claimed.attempts, self._dice())
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
