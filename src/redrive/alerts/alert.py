"""What a person is told: one thing that began, goes on or is over.

It holds names, numbers and a title that is masked already. There is no place in it for a payload, a header or the
text of an exception, so that no channel can pass one on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

LONGEST_KEY = 255
"""Characters: what PagerDuty takes."""

LONGEST_TITLE = 1000
"""Characters; channels show the beginning."""

MOST_COUNTS = 20


class Severity(StrEnum):
    """From the least to the worst."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class State(StrEnum):
    RAISED = "raised"
    RESOLVED = "resolved"


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One message. ValueError for what no channel could send."""

    id: str
    """Of this message, a UUIDv7: the same whenever it is sent again, another one for what comes after it."""
    dedup_key: str
    """Of what it is about: the same from its beginning to its end, such as `new_group/0190…`. Of two messages with
    one key the later one says all that is still true.
    """
    rule: str
    severity: Severity
    """From its beginning to its end it may become worse and never less: a channel that was told of the one is told
    of the other.
    """
    state: State
    title: str
    """Masked by whoever makes it."""
    counts: Mapping[str, int] = {}
    """What is counted, and how many, in the order to be read: `{"letters": 10_000, "per minute": 40}`."""
    queue: str = ""
    """Empty: it is not about one queue."""
    group_id: str = ""
    """Empty: it is not about one group."""
    since: datetime
    """When that which it is about began."""
    at: datetime
    """When this message was made."""
    path: str = "/"
    """The page of the console that shows it, such as `/groups/0190…`. Ids of ours alone: it ends up in logs."""
    incident_id: str = ""
    """Whom `redrive alerts acknowledge` and the page of alerts know it by. Empty: it is not kept in the store."""

    def __post_init__(self) -> None:
        if not 0 < len(self.dedup_key) <= LONGEST_KEY or not self.dedup_key.isprintable():
            raise ValueError(f"an alert's dedup_key has 1 to {LONGEST_KEY} printable characters")
        if not self.id or not self.rule or not self.title.strip() or len(self.title) > LONGEST_TITLE:
            raise ValueError(f"an alert has an id, a rule and a title of at most {LONGEST_TITLE} characters")
        if not self.path.startswith("/") or self.path.startswith("//") or not self.path.isprintable():
            raise ValueError("an alert's path begins with one /")
        if len(self.counts) > MOST_COUNTS:
            raise ValueError(f"an alert counts at most {MOST_COUNTS} things")
        if self.since.tzinfo is None or self.at.tzinfo is None:
            raise ValueError("an alert's moments say their time zone")

    @property
    def is_raised(self) -> bool:
        return self.state is State.RAISED

    @property
    def own_path(self) -> str:
        """The page of the console where something is done about it; empty if there is none."""
        return f"/alerts/{self.incident_id}" if self.incident_id else ""


def written(alert: Alert) -> bytes:
    return _encoder.encode(alert)


def read(text: bytes) -> Alert:
    """What `written` wrote. ValueError for anything else."""
    return _decoder.decode(text)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Alert)
