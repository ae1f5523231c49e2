"""Paths of Azure Service Bus: `orders`, `events/Subscriptions/mail`, and the two subqueues that each has."""

from __future__ import annotations

import msgspec

DEAD_LETTERS = "$DeadLetterQueue"
TRANSFER_DEAD_LETTERS = f"$Transfer/{DEAD_LETTERS}"
"""What the broker itself could not forward."""
_SUBSCRIPTIONS = "/subscriptions/"


class EntityPath(msgspec.Struct, frozen=True):
    name: str
    """Of the queue, or of the topic."""
    subscription: str = ""
    subqueue: str = ""

    @property
    def parent(self) -> str:
        """The same without its subqueue."""
        return f"{self.name}/Subscriptions/{self.subscription}" if self.subscription else self.name

    @property
    def beside(self) -> str:
        """What the queues beside it are named after: nothing can be sent to a subscription."""
        return f"{self.name}.{self.subscription}" if self.subscription else self.name


def parse(path: str) -> EntityPath:
    """Total. Service Bus compares paths without their case; names stay as they are written."""
    rest, subqueue = path, ""
    for each in (TRANSFER_DEAD_LETTERS, DEAD_LETTERS):
        ending = f"/{each}"
        if len(rest) > len(ending) and rest.casefold().endswith(ending.casefold()):
            rest, subqueue = rest[: -len(ending)], each
            break
    at = rest.casefold().find(_SUBSCRIPTIONS)
    if at < 1 or not rest[at + len(_SUBSCRIPTIONS) :]:
        return EntityPath(rest, "", subqueue)
    return EntityPath(rest[:at], rest[at + len(_SUBSCRIPTIONS) :], subqueue)
