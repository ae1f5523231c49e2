"""Alerts as a rule would make them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from redrive.alerts.alert import Alert, Severity, State
from redrive.clock import new_id

SINCE = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
AT = datetime(2026, 3, 1, 12, 5, tzinfo=UTC)
GROUP = "01957f00-0000-7000-8000-000000000001"
INCIDENT = "01957f00-0000-7000-8000-00000000000a"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105  the example of Standard Webhooks


def raised(key: str = f"new_group/{GROUP}", **facts: Any) -> Alert:
    usual: dict[str, Any] = {
        "id": new_id(),
        "rule": "new_group",
        "severity": Severity.CRITICAL,
        "state": State.RAISED,
        "title": "TimeoutError: no answer from [masked]",
        "counts": {"letters": 10_000, "per minute": 40},
        "queue": "orders",
        "group_id": GROUP,
        "since": SINCE,
        "at": AT,
        "path": f"/groups/{GROUP}",
        "incident_id": INCIDENT,
    }
    return Alert(**{**usual, "dedup_key": key, **facts})


def resolved(alert: Alert, **facts: Any) -> Alert:
    return msgspec.structs.replace(alert, id=new_id(), state=State.RESOLVED, **facts)
