"""What the broker says when a queue or exchange exists and is not as declared: which argument, what it is, what it
should be, and what can be done about it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_ARGUMENT = re.compile(r"inequivalent arg '([^']+)' for (?:queue|exchange) ")
_CURRENT = re.compile(r" but current is (none|the value '(.*)' of type '(\w+)'|'(.*)')$", re.DOTALL)
_INTEGERS = frozenset({"byte", "signedint", "long", "short", "unsignedbyte", "unsignedshort", "unsignedint"})
_FIXED = frozenset({"durable", "auto_delete", "exclusive", "x-queue-type"})
"""What no policy can change."""
_TTL_SETTINGS = "to keep it, set that time where the topology has one ([queues.NAME.loop] ttl, dead_letter_ttl)"


class Unknown(msgspec.Struct, frozen=True):
    """A value that the broker's text does not tell: it is cut after 255 bytes."""

    def __str__(self) -> str:
        return "something else"


class Difference(msgspec.Struct, frozen=True):
    argument: str
    current: Any
    """None: it is not set."""
    wanted: Any

    def __str__(self) -> str:
        return f"{self.argument} is {_shown(self.current)}, wanted is {_shown(self.wanted)}"

    @property
    def remedy(self) -> str:
        """It is used as it is; this is how to have it otherwise."""
        anew = "stop its consumers, move its messages away, delete it and run setup again"
        if self.argument == "x-queue-type" and self.wanted == "quorum":
            return f'set [broker.rabbitmq] queue_type = "classic" to keep it; or {anew}'
        if self.argument == "x-message-ttl" and self.current is not None:
            return f"{_TTL_SETTINGS}; or {anew}"
        if self.argument == "type":
            return "name another exchange in [broker.rabbitmq], or delete it and run setup again"
        if self.current is None and self.argument not in _FIXED:
            return f"a policy of the broker can add {self.argument.removeprefix('x-')!r} while it runs; or {anew}"
        return f"arguments win over policies and cannot be changed: {anew}"


def difference(text: str, wanted: Any) -> Difference | None:
    """`wanted`: the arguments that were declared. None if the text is about something else."""
    named = _ARGUMENT.search(text)
    if named is None:
        return None
    ours = wanted.get(named[1])
    return Difference(named[1], _current(text, ours), ours)


def _current(text: str, ours: Any) -> Any:
    """Where both have the same type, the broker does not tell it."""
    found = _CURRENT.search(text)
    if found is None:
        return Unknown()
    if found[1] == "none":
        return None
    value, kind = (found[2], found[3]) if found[4] is None else (found[4], _kind(ours))
    if kind in _INTEGERS and value.removeprefix("-").isdecimal():
        return int(value)
    return value == "true" if kind == "bool" else value


def _kind(value: Any) -> str:
    return "bool" if isinstance(value, bool) else "long" if isinstance(value, int) else "longstr"


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return (
        str(value).lower()
        if isinstance(value, bool)
        else str(value)
        if isinstance(value, Unknown)
        else repr(value)
    )
