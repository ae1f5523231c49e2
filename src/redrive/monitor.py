"""S0's monitor: are there too many dead letters, or too old ones? One line, for cron."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.dead_letter import Status
from redrive.duration import short

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.statistics import Statistics


class Verdict(msgspec.Struct, frozen=True):
    alert: bool
    line: str


def judge(
    statistics: Statistics, *, now: datetime, max_pending: int | None = None, max_age: float | None = None
) -> Verdict:
    """An alert if more than `max_pending` letters are open, or the oldest one is older than `max_age` seconds.
    Open are PENDING and QUARANTINED: both wait for a person.
    """
    pending = statistics.by_status.get(Status.PENDING, 0)
    quarantined = statistics.by_status.get(Status.QUARANTINED, 0)
    age = None if statistics.oldest is None else max(0, int((now - statistics.oldest).total_seconds()))
    too_many = max_pending is not None and pending + quarantined > max_pending
    too_old = max_age is not None and age is not None and age > max_age
    parts = [f"{pending} pending dead letter{'' if pending == 1 else 's'}{_limit(max_pending)}"]
    if quarantined:
        parts.append(f"{quarantined} quarantined")
    if age is not None:
        parts.append(f"oldest {short(age)}{_limit(None if max_age is None else short(max_age))}")
    alert = too_many or too_old
    return Verdict(alert, f"{'ALERT' if alert else 'OK'}: {', '.join(parts)}")


def _limit(value: object) -> str:
    return "" if value is None else f" (limit {value})"
