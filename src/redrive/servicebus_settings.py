"""[broker.servicebus]."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from redrive.section import Section
from redrive.setting_values import OptionalPath, OptionalSecret, QueueNames, Seconds, number, unset

_MOST_DELIVERIES = 2000
_SHORTEST_LOCK, _LONGEST_LOCK = 5, 300


def _administration(value: Any) -> Any:
    if value is None:
        return None
    parts = urlsplit(value) if isinstance(value, str) else None
    if (
        parts is None
        or parts.scheme != "https"
        or not parts.netloc
        or "@" in parts.netloc
        or parts.path.strip("/")
    ):
        raise ValueError("should be https://HOST:PORT, without credentials, or 'none'")
    return f"https://{parts.netloc}"


def _never(value: bool) -> bool:  # noqa: FBT001  a setting's value
    if value:
        raise ValueError(
            "can only be false: a message would be completed whatever became of it, so that one whose worker is "
            "killed before its dead letter is written, or whose store is away just then, would be lost"
        )
    return value


class ServiceBusSettings(Section):
    """For `servicebus://` alone."""

    connection_string: OptionalSecret = None
    """As the portal gives it, for the namespace of `broker.url`. None: the URL's key, else Entra ID."""
    administration: Annotated[str | None, BeforeValidator(_administration), BeforeValidator(unset)] = None
    """Where entities are looked at and made, over HTTPS. None: where the namespace is."""
    tls_ca: OptionalPath = None
    """Authorities to trust, a PEM file. None: the usual ones."""
    max_delivery_count: Annotated[int, BeforeValidator(number), Field(ge=1, le=_MOST_DELIVERIES)] = 100
    """Of queues that `redrive setup` makes: given back or lost more often, a message is dead-lettered by Service
    Bus itself. Azure's own: 10.
    """
    lock_duration: Annotated[Seconds, Field(ge=_SHORTEST_LOCK, le=_LONGEST_LOCK)] = 60.0
    """Of queues that `redrive setup` makes: how long a delivery belongs to a worker that no longer says it lives.
    It says so every third of this, for as long as the handler runs. S2: MaxLockDurationMinutes.
    """
    sessions: QueueNames = ()
    """Queues and subscriptions that require sessions: a message's key is its session."""
    auto_complete: Annotated[bool, AfterValidator(_never)] = False
    """S2's EnableAutoComplete: refused."""
