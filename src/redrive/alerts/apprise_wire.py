"""What goes to the process that uses apprise, and what comes back. As small as can be: it holds a secret."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Order(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    only_check: bool = False
    """Whether apprise understands the URL; nothing is sent."""
    title: str = ""
    body: str = ""
    kind: str = "info"
    """apprise's: info, success, warning, failure."""
    dedup_key: str = ""
    severity: str = ""
    link: str | None = None
    place: str = ""
    rule: str = ""
    facts: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return "Order(***)"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    understood: bool
    """The URL is one of apprise's."""
    sent: bool = False
    status: int | None = None
    """What HTTP said, if it was said no."""
