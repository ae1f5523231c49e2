"""Moments as whole microseconds since 1970: exact, where seconds as a float are not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


def moment(microseconds: int) -> datetime:
    """OverflowError beyond the calendar."""
    return EPOCH + timedelta(microseconds=microseconds)
