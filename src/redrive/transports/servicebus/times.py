"""Moments that a message tells. Total: anybody can write an annotation, and not every number is a date."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from azure.servicebus import ServiceBusReceivedMessage


def enqueued(message: ServiceBusReceivedMessage) -> datetime | None:
    return _told(lambda: message.enqueued_time_utc)


def locked_until(message: ServiceBusReceivedMessage) -> datetime | None:
    return _told(lambda: message.locked_until_utc)


def _told(ask: Callable[[], datetime | None]) -> datetime | None:
    try:
        return ask()
    except (ValueError, OverflowError, OSError, TypeError):
        return None
