"""How long ago something was, in whole seconds: finer would be noise."""

from __future__ import annotations

from datetime import datetime

from redrive.duration import short


def age(since: datetime, now: datetime) -> str:
    """`3d4h`, `12m`, `0s`; a moment that another machine's clock puts into the future was just now."""
    return short(float(max(0, int((now - since).total_seconds()))))
