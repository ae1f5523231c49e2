"""An alert about nothing, to see whether a channel works: its beginning and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.alerts.alert import Alert, Severity, State
from redrive.clock import new_id

if TYPE_CHECKING:
    from datetime import datetime

RULE = "test"


def trial(now: datetime) -> list[Alert]:
    """Of a key of their own: two tests at a time are two incidents."""
    key = f"{RULE}/{new_id()}"
    return [
        Alert(
            id=new_id(),
            dedup_key=key,
            rule=RULE,
            severity=Severity.INFO,
            state=state,
            title="This is a test of Redrive, nothing is wrong",
            counts={"letters": 0},
            since=now,
            at=now,
        )
        for state in State
    ]
