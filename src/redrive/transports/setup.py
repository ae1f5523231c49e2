"""What `redrive setup` finds on a broker, whichever it is: things that are there, missing, or not as wanted."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence


class State(StrEnum):
    MISSING = "missing"
    DEFERRED = "deferred"
    """A delay queue that is missing, and is made by the first retry that waits in it."""
    MADE = "made"
    EXISTS = "exists"
    DIFFERS = "differs"
    """It exists and is not as wanted. It is left, and used, as it is."""
    REFUSED = "refused"
    """The broker does not let this user look at it or make it."""
    UNKNOWN = "unknown"
    """A binding: no broker tells whether it has one. Made again, it changes nothing."""


class Difference(Protocol):
    """As text: what is, and what is wanted."""

    @property
    def argument(self) -> str: ...

    @property
    def current(self) -> Any: ...

    @property
    def wanted(self) -> Any: ...

    @property
    def remedy(self) -> str:
        """It is used as it is; this is how to have it otherwise."""
        ...


class Step(Protocol):
    @property
    def role(self) -> str: ...

    @property
    def thing(self) -> Any:
        """A QueueSpec is a queue, a TopicSpec a topic."""
        ...

    @property
    def delays(self) -> bool:
        """Messages only wait in it."""
        ...


class Look(Protocol):
    @property
    def messages(self) -> int: ...

    @property
    def consumers(self) -> int: ...


class Found(Protocol):
    """One thing, and how it is."""

    @property
    def step(self) -> Step: ...

    @property
    def state(self) -> State: ...

    @property
    def look(self) -> Look | None: ...

    @property
    def differences(self) -> Sequence[Difference]: ...

    @property
    def refusal(self) -> str: ...


class Examined(Protocol):
    """The things of one queue."""

    @property
    def queue(self) -> str: ...

    @property
    def things(self) -> Sequence[Found]: ...


# What most drivers tell it with.


class PlainDifference(msgspec.Struct, frozen=True):
    argument: str
    current: Any
    wanted: Any
    remedy: str

    def __str__(self) -> str:
        return f"{self.argument} is {self.current}, wanted is {self.wanted}"


class PlainStep(msgspec.Struct, frozen=True):
    role: str
    thing: Any
    delays: bool = False


class PlainFound(msgspec.Struct, frozen=True, kw_only=True):
    step: PlainStep
    state: State
    look: Look | None = None
    differences: tuple[PlainDifference, ...] = ()
    refusal: str = ""


class PlainExamined(msgspec.Struct, frozen=True):
    """In the order in which they are made."""

    queue: str
    things: tuple[PlainFound, ...]


def found(step: PlainStep, differences: Iterable[PlainDifference] | None) -> PlainFound:
    """`differences`: in what it is not as wanted; None: it is not there."""
    if differences is None:
        return PlainFound(step=step, state=State.MISSING)
    told = tuple(differences)
    return PlainFound(step=step, state=State.DIFFERS if told else State.EXISTS, differences=told)


async def complete(
    examined: PlainExamined, create: Callable[[Any], Awaitable[object]], refusal: type[Exception]
) -> PlainExamined:
    """Makes what is missing. What the broker refuses, which `create` tells by `refusal`, does not keep it from the
    rest.
    """
    things = tuple([await _complete(each, create, refusal) for each in examined.things])
    return PlainExamined(examined.queue, things)


async def _complete(
    thing: PlainFound, create: Callable[[Any], Awaitable[object]], refusal: type[Exception]
) -> PlainFound:
    if thing.state is not State.MISSING:
        return thing
    try:
        await create(thing.step.thing)
    except refusal as refused:
        return PlainFound(step=thing.step, state=State.REFUSED, refusal=str(refused))
    return PlainFound(step=thing.step, state=State.MADE)
