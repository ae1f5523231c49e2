"""Looks at what a run would do: asks the store for its letters, the broker for their targets; changes nothing."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from redrive.errors import RedriveError
from redrive.preview import Detour, Expired, Preview, Target, Targets
from redrive.preview_checks import judge
from redrive.transports import Detouring, OriginSending

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from redrive.clock import Clock
    from redrive.preview import Overview
    from redrive.run import RunPlan
    from redrive.stores import RunStore
    from redrive.transports import Transport
    from redrive.transports.inspection import Inspector, QueueFigures

    ExpireAfter = Callable[[str], float | None]

QUEUES_CHECKED = 50
"""Targets, and queues with an expiry, that are looked at: those with the most letters."""


async def preview(
    plan: RunPlan,
    *,
    store: RunStore,
    transport: Transport,
    clock: Clock,
    expire_after: ExpireAfter,
    inspector: Inspector | None = None,
) -> Preview:
    """`expire_after` tells the seconds after which a queue's letters are too old, or None.

    Without an inspector the broker tells what waits in a queue, not whether it is there and has a consumer.
    A broker that is away is a check of its own; a store that is away raises Unreachable.
    """
    overview = await store.overview(plan.selection, at_most=plan.at_most, quarantined=plan.quarantined)
    by_target = _by_target(plan, overview)
    if plan.to_origin:
        targets = await _origin(list(overview.by_queue), transport)
    else:
        targets = await _look_at(list(by_target), transport, inspector)
    expired = await _expired(plan, overview, store, clock.now(), expire_after)
    checks = judge(overview, targets, expired, to_origin=plan.to_origin, backlog=plan.brakes.backlog)
    return Preview(
        count=overview.count,
        exact=overview.exact,
        by_queue=overview.by_queue,
        by_group=overview.by_group,
        groups=overview.groups,
        spread_over=overview.spread_over,
        by_target=by_target,
        oldest=overview.oldest,
        newest=overview.newest,
        sample=overview.sample,
        checks=checks,
        digest=plan.digest(overview.count),
    )


def _by_target(plan: RunPlan, overview: Overview) -> dict[str, int]:
    if plan.to_origin:
        return {}
    if plan.target is not None:
        return {plan.target: overview.count}
    return dict(overview.by_queue)


async def _origin(queues: list[str], transport: Transport) -> Targets:
    driver: object = transport
    if not isinstance(driver, OriginSending):
        return Targets()  # the run is refused, and says why
    try:
        return Targets(readers=await driver.readers_of_origin(queues), readers_are=driver.readers_are)
    except RedriveError as error:
        return Targets(unknown=str(error))


async def _look_at(names: list[str], transport: Transport, inspector: Inspector | None) -> Targets:
    looked_at = names[:QUEUES_CHECKED]
    if not looked_at:
        return Targets()
    try:
        detours = await _detours(looked_at, transport)
        there = [_sought(name, detours.get(name)) for name in looked_at]
        names = [name for name in there if name is not None]
        queues = (
            await (_waiting(names, transport) if inspector is None else _told(names, inspector)) if names else ()
        )
    except RedriveError as error:  # away, or not for this user: the page says so, and the rest of it stands
        return Targets(unknown=str(error))
    return Targets(queues=queues, detours=tuple(detours.values()))


async def _detours(names: list[str], transport: Transport) -> dict[str, Detour]:
    driver: object = transport
    if not isinstance(driver, Detouring):
        return {}
    found = {name: await driver.landing_of(name) for name in names}
    return {
        name: Detour(name=name, place=each.place, readers=each.readers, impossible=each.impossible)
        for name, each in found.items()
        if each is not None
    }


def _sought(name: str, detour: Detour | None) -> str | None:
    """The queue to look at. None: it would be a topic, or nothing."""
    if detour is None:
        return name
    return detour.place if detour.readers is None and not detour.impossible else None


async def _waiting(names: list[str], transport: Transport) -> tuple[Target, ...]:
    depths = await transport.depths(names)
    return tuple(
        Target(name=name, exists=name in depths or None, waiting=depths[name].ready if name in depths else 0)
        for name in names
    )


async def _told(names: list[str], inspector: Inspector) -> tuple[Target, ...]:
    figures = await inspector.figures(names)
    found = {each.name: each for each in figures.queues}
    return tuple(
        _target(found[name]) if name in found else _absent(name, is_gone=figures.empty_too) for name in names
    )


def _target(queue: QueueFigures) -> Target:
    return Target(name=queue.name, exists=True, consumers=queue.consumers, waiting=queue.ready)


def _absent(name: str, *, is_gone: bool) -> Target:
    """Some brokers make a queue on first use, and forget it when it is empty."""
    return Target(name=name, exists=False) if is_gone else Target(name=name, waiting=0)


async def _expired(
    plan: RunPlan, overview: Overview, store: RunStore, now: datetime, expire_after: ExpireAfter
) -> list[Expired]:
    after = {queue: expire_after(queue) for queue in islice(overview.by_queue, QUEUES_CHECKED)}
    limits = {queue: now - timedelta(seconds=each) for queue, each in after.items() if each is not None}
    if overview.oldest is not None:
        limits = {queue: limit for queue, limit in limits.items() if overview.oldest < limit}
    if not limits:
        return []
    older = await store.count_older(plan.selection, limits, at_most=plan.at_most, quarantined=plan.quarantined)
    return [Expired(queue=queue, after=after[queue] or 0.0, letters=found) for queue, found in older.items()]
