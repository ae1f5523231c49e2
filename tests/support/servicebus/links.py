"""What a link's attach says to the emulator, and what is said back."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from proton import symbol

_SESSION_FILTER = "com.microsoft:session-filter"
_LOCKED_UNTIL = "com.microsoft:locked-until-utc"
_TIMEOUT = "com.microsoft:timeout"
_TICKS_AT_1970, _TICKS = 621355968000000000, 10_000_000
_USUAL_PATIENCE = 60.0


class LinkEnd:
    """The emulator's end of a link. Which of these are called depends on its direction."""

    def received(self, delivery: Any, encoded: bytes) -> None:
        """The client has sent something, whole."""

    def settled(self, delivery: Any) -> None:
        """The client says what shall become of something it got."""

    def hand_out(self) -> None:
        """There may be something for the client."""

    def closed(self) -> None:
        """The link is gone, or its connection is."""


def address_of(link: Any) -> str:
    found = link.remote_source.address if link.is_sender else link.remote_target.address
    return str(found)


def path_of(address: str) -> str:
    """`orders` of `amqps://host/orders`, and of `orders`."""
    return urlsplit(address).path.strip("/") if "://" in address else address.strip("/")


def asked_session(link: Any) -> tuple[bool, str | None]:
    """Whether it wants a session, and which; None: the next that is free."""
    found = link.remote_source.filter
    found.rewind()
    filters = found.get_object() if found.next() is not None else None
    if not filters or _SESSION_FILTER not in filters:
        return False, None
    session = filters[_SESSION_FILTER]
    return True, None if session is None else str(session)


def grant(link: Any, session: str, *, until: float) -> None:
    """Says in the answer to the attach which session it is, and how long."""
    found = link.source.filter
    found.clear()
    found.put_object({symbol(_SESSION_FILTER): session})
    link.properties = {symbol(_LOCKED_UNTIL): _TICKS_AT_1970 + int(until * _TICKS)}


def patience_of(link: Any) -> float:
    """How long a receiver waits for any session, in seconds."""
    given = (link.remote_properties or {}).get(symbol(_TIMEOUT))
    return _USUAL_PATIENCE if given is None else int(given) / 1000
