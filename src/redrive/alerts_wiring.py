"""Builds channels, the outbox and the dispatcher from the settings: see `redrive.wiring`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import structlog

from redrive.alerts.channels import open_channel
from redrive.alerts.dispatch import Dispatcher, Line
from redrive.alerts.incident import is_newest
from redrive.alerts.outbox import Outbox
from redrive.alerts.rule import RuleKind
from redrive.alerts.store_watch import StoreWatch
from redrive.alerts.texts import Texts
from redrive.clock import own_name
from redrive.errors import ConfigurationError, NotFound
from redrive.finding import warn
from redrive.outgoing import Outgoing
from redrive.privacy_wiring import maskers_of
from redrive.watching import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping

    from redrive.alerts.alert import Alert
    from redrive.alerts.channels import Channel
    from redrive.clock import Clock
    from redrive.finding import Finding
    from redrive.settings import Settings
    from redrive.stores import Store

log = structlog.get_logger("redrive.alerts")


@asynccontextmanager
async def dispatching(settings: Settings, store: Store, clock: Clock) -> AsyncIterator[Dispatcher]:
    """Hand alerts to what it gives; all channels are worked on meanwhile, and what was left over before too.
    Whoever uses it is cancelled and fails if they are not any more: nobody would be told.
    """

    async def is_current(alert: Alert) -> bool:
        return not alert.incident_id or is_newest(alert, await store.incident(alert.incident_id))

    async with opened_outbox(settings) as outbox, asyncio.TaskGroup() as tasks:
        attempts = settings.alerts.attempts
        dispatcher = Dispatcher(_lines(settings), outbox, clock=clock, attempts=attempts, is_current=is_current)
        working = tasks.create_task(dispatcher.run())
        try:
            yield dispatcher
        finally:
            working.cancel()


def _lines(settings: Settings) -> dict[str, Line]:
    """One that could never send anything is left out, and no reason not to tell by the others."""
    found: dict[str, Line] = {}
    for name, channel in settings.alerts.channels.items():
        try:
            found[name] = Line(channel_of(settings, name), channel.min_severity)
        except ConfigurationError as error:
            log.error("nobody is told by this channel", channel=name, why=str(error), remedy=error.remedy)  # noqa: TRY400  no traceback: it is a setting
    return found


async def undelivered(settings: Settings, outbox: Outbox) -> dict[str, int]:
    """By channel: those of the settings, and those that are gone while anything of theirs is left."""
    figures = await outbox.figures()
    left = {name: each.undelivered for name, each in figures.items() if each.undelivered}
    return {**dict.fromkeys(settings.alerts.channels, 0), **left}


async def examine_undelivered(settings: Settings) -> list[Finding]:
    """For the doctor: what nobody was told. Nothing is looked at where nothing was ever told."""
    if not settings.alerts.outbox.exists():
        return []
    async with opened_outbox(settings) as outbox:
        found = await undelivered(settings, outbox)
    return [
        warn(
            "undelivered-alerts",
            f"channel {name} did not take {number:,} alert{'' if number == 1 else 's'}: nobody was told by it",
            f"see `redrive alerts undelivered list --channel {name}`, then resend or drop them",
        )
        for name, number in found.items()
        if number
    ]


def _nobody(_undelivered: Callable[[], Awaitable[Mapping[str, int]]]) -> None:
    return None


async def serve_alerts(
    settings: Settings,
    store: Store,
    clock: Clock,
    *,
    on_undelivered: Callable[[Callable[[], Awaitable[Mapping[str, int]]]], None] = _nobody,
) -> None:
    """Looks, judges and tells until it is cancelled; returns at once if the settings do not ask for it.
    `on_undelivered` is given what can be asked for what could not be told, by channel.
    """
    rules, every = settings.alerts.judged(), settings.alerts.every
    if every is None:
        return
    by_name = {rule.name: rule for rule in rules}
    async with dispatching(settings, store, clock) as dispatcher:
        on_undelivered(partial(undelivered, settings, dispatcher.outbox))

        async def tell(alert: Alert, channels: Collection[str] | None) -> None:
            rule = by_name.get(alert.rule)
            usual = None if rule is None else rule.channels
            await dispatcher.hand_over(alert, usual if channels is None else channels)

        of_store = [rule for rule in rules if rule.kind is RuleKind.STORE_DOWN]
        watch = Watch(
            rules,
            store=store,
            tell=tell,
            masks=maskers_of(settings),
            clock=clock,
            holder=own_name(),
            every=every,
            store_watches=[
                StoreWatch(rule, dispatcher.outbox, partial(tell, channels=rule.channels), clock=clock)
                for rule in of_store
            ],
        )
        await watch.serve()


@asynccontextmanager
async def opened_outbox(settings: Settings) -> AsyncIterator[Outbox]:
    alerts = settings.alerts
    outbox = Outbox(alerts.outbox, waiting=alerts.waiting, undelivered=alerts.undelivered)
    try:
        yield outbox
    finally:
        await outbox.close()


def texts_of(settings: Settings) -> Texts:
    return Texts(public_url=settings.server.public_url, place=settings.app.environment)


def channel_of(settings: Settings, name: str) -> Channel:
    """NotFound if the settings have no channel of that name."""
    found = settings.alerts.channels.get(name)
    if found is None:
        known = ", ".join(settings.alerts.channels) or "none"
        raise NotFound(f"there is no channel {name!r}", remedy=f"the settings have: {known}")
    secret = None if found.secret is None else found.secret.reveal()
    outgoing = Outgoing(allowed=settings.alerts.allowed_hosts)
    try:
        return open_channel(found.url.reveal(), secret=secret, texts=texts_of(settings), outgoing=outgoing)
    except ConfigurationError as error:
        raise ConfigurationError(f"channel {name}: {error}", remedy=error.remedy) from None
