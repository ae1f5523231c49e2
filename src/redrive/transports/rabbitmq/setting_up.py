"""Looks at what a layout asks for, and declares what is missing. What exists is never changed.

Whether an existing queue is as wanted is found out by declaring it once more: the broker then says which argument
differs, and takes it for granted if none does. Its next difference is found by declaring it as it is so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from redrive.transports.rabbitmq.administration import DeclarationRefused, QueueLook
from redrive.transports.rabbitmq.mismatch import Difference, Unknown, difference
from redrive.transports.rabbitmq.topology import BindingSpec, ExchangeSpec, QueueSpec, Step
from redrive.transports.setup import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from redrive.transports.rabbitmq.administration import Administration
    from redrive.transports.rabbitmq.topology import Layout

_OF_QUORUM = frozenset({"x-dead-letter-strategy", "x-overflow", "x-delivery-limit"})
_MOST_DIFFERENCES = 20


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One thing of a layout, and how it is."""

    step: Step
    state: State
    look: QueueLook | None = None
    differences: tuple[Difference, ...] = ()
    refusal: str = ""


class Examined(msgspec.Struct, frozen=True):
    """The things of one queue, in the order of declaration."""

    queue: str
    things: tuple[Found, ...]


async def examine(
    administration: Administration, layouts: Iterable[Layout], *, defers_delays: bool = False
) -> list[Examined]:
    """Changes nothing. With `defers_delays`, delay queues that are missing are left to who needs them first."""
    found: list[Examined] = []
    for layout in layouts:
        things = [await _examine(administration, step) for step in layout.steps]
        found.append(Examined(layout.queue, tuple(map(_deferred, things) if defers_delays else things)))
    return found


async def complete(administration: Administration, examined: Iterable[Examined]) -> list[Examined]:
    """Declares what was missing and not deferred, and every binding. What the broker refuses does not keep it from
    the rest.
    """
    return [
        Examined(each.queue, tuple([await _complete(administration, found) for found in each.things]))
        for each in examined
    ]


async def _examine(administration: Administration, step: Step) -> Found:
    try:
        if isinstance(step.thing, QueueSpec):
            return await _examine_queue(administration, step, step.thing)
        if isinstance(step.thing, ExchangeSpec):
            return await _examine_exchange(administration, step, step.thing)
    except DeclarationRefused as refused:
        return Found(step=step, state=State.REFUSED, refusal=str(refused))
    return Found(step=step, state=State.UNKNOWN)


def _deferred(found: Found) -> Found:
    missing = found.step.delays and found.state is State.MISSING
    return msgspec.structs.replace(found, state=State.DEFERRED) if missing else found


async def _examine_queue(administration: Administration, step: Step, spec: QueueSpec) -> Found:
    look = await administration.look(spec.name)
    if look is None:
        return Found(step=step, state=State.MISSING)
    differences = await _differences(administration, spec)
    state = State.DIFFERS if differences else State.EXISTS
    return Found(step=step, state=state, look=look, differences=differences)


async def _differences(administration: Administration, spec: QueueSpec) -> tuple[Difference, ...]:
    found: dict[str, Difference] = {}
    arguments = dict(spec.arguments)
    while len(found) < _MOST_DIFFERENCES:
        try:
            await administration.declare_queue(QueueSpec(spec.name, arguments))
            break
        except DeclarationRefused as refused:
            told = difference(str(refused), {"durable": True, **spec.arguments})
            if told is None and not found:
                raise
            if told is None or told.argument in found:
                break
            found[told.argument] = told
            if isinstance(told.current, Unknown) or not told.argument.startswith("x-"):
                break
            arguments = _adopted(arguments, told.argument, told.current)
    return _without_consequences(found)


def _adopted(arguments: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    others = {key: other for key, other in arguments.items() if key != name}
    return others if value is None else {**others, name: value}


def _without_consequences(found: dict[str, Difference]) -> tuple[Difference, ...]:
    """A queue that is no quorum queue lacks what only those have: that it is none says it all."""
    lacking = _OF_QUORUM if "x-queue-type" in found else frozenset[str]()
    return tuple(each for each in found.values() if each.current is not None or each.argument not in lacking)


async def _examine_exchange(administration: Administration, step: Step, spec: ExchangeSpec) -> Found:
    if not await administration.exchange_exists(spec.name):
        return Found(step=step, state=State.MISSING)
    try:
        await administration.declare_exchange(spec)
    except DeclarationRefused as refused:
        told = difference(str(refused), {"type": spec.kind, "durable": True})
        if told is None:
            raise
        return Found(step=step, state=State.DIFFERS, differences=(told,))
    return Found(step=step, state=State.EXISTS)


async def _complete(administration: Administration, found: Found) -> Found:
    thing = found.step.thing
    if found.state not in {State.MISSING, State.UNKNOWN}:
        return found
    try:
        if isinstance(thing, QueueSpec):
            await administration.declare_queue(thing)
        elif isinstance(thing, ExchangeSpec):
            await administration.declare_exchange(thing)
        else:
            await administration.bind(thing)
    except DeclarationRefused as refused:
        return Found(step=found.step, state=State.REFUSED, refusal=str(refused))
    made = State.EXISTS if isinstance(thing, BindingSpec) else State.MADE
    return Found(step=found.step, state=made)
