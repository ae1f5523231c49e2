"""What the settings say about Service Bus, in the words of its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redrive.settings import Settings


def transport_options(settings: Settings) -> dict[str, Any]:
    told = settings.broker.servicebus
    return {
        "names": settings.broker.names,
        "sessions": told.sessions,
        "connection_string": told.connection_string.reveal() if told.connection_string else "",
        "administration": (told.administration or "").removeprefix("https://"),
        "ca": str(told.tls_ca or ""),
    }
