"""Which headers an edit may touch.

Locked: what tells a message from others, what we or the broker wrote to follow it, and what would send copies of
it elsewhere. Sensitive: what lets somebody in. Capitals, and the difference between `-`, `_` and `.`, never
matter, so that no spelling slips through.
"""

from __future__ import annotations

from enum import StrEnum


class HeaderClass(StrEnum):
    LOCKED = "locked"
    """Never set or removed by an edit."""
    SENSITIVE = "sensitive"
    """Only where somebody has said so."""
    FREE = "free"


HIDDEN = "(hidden)"
"""What is shown in the place of a sensitive header's value."""

_IDS = frozenset(
    {
        "id",
        "messageid",
        "correlationid",
        "conversationid",
        "causationid",
        "requestid",
        "idempotencykey",
        "taskid",
        "rootid",
        "parentid",
        "relatedto",
        "ceid",
        "cloudeventsid",
    }
)
_OF_BROKERS = frozenset({"xdeath", "xdeliverycount", "xacquiredcount", "cc", "bcc"})
_BEGINNINGS = ("xredrive", "xfirstdeath", "xlastdeath")
_PREFIXES = ("x", "nservicebus", "rbs2", "mt", "amqp")
_SENSITIVE = (
    "authorization",
    "authentication",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "jwt",
    "bearer",
    "session",
    "signature",
)


def header_class(name: str) -> HeaderClass:
    bare = "".join(character for character in name.casefold() if character.isalnum())
    if bare in _OF_BROKERS or bare.startswith(_BEGINNINGS) or _without_prefix(bare) in _IDS:
        return HeaderClass.LOCKED
    return HeaderClass.SENSITIVE if any(word in bare for word in _SENSITIVE) else HeaderClass.FREE


def _without_prefix(bare: str) -> str:
    """`X-Correlation-ID` and `NServiceBus.MessageId` are ids as well."""
    if bare in _IDS:
        return bare
    return next((bare.removeprefix(each) for each in _PREFIXES if bare.startswith(each)), bare)
