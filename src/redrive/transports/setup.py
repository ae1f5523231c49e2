"""What `redrive setup` finds on a broker, whichever it is: things that are there, missing, or not as wanted."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


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
