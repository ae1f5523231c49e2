"""What is told of locks of Service Bus that are over, without a broker."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from redrive.transports import LostLeases
from redrive.transports.servicebus.links import Link, Receipt
from redrive.transports.servicebus.sessions import SessionLink

MESSAGE: Any = SimpleNamespace(locked_until_utc=datetime(2030, 1, 1, tzinfo=UTC), sequence_number=1)
NOBODY: Any = None


def told_of(link: Link) -> list[object]:
    told: list[object] = []
    link.lost.listen(told.append)
    return told


def held(link: Link, count: int) -> list[Receipt]:
    receipts = [Receipt(link, MESSAGE) for _ in range(count)]
    link.held.update(receipts)
    return receipts


def test_whoever_handles_a_message_is_told_once_that_its_lock_is_over_and_who_settles_it_is_not() -> None:
    link = Link("orders", NOBODY, lambda: None, LostLeases())
    told, [handled, settled] = told_of(link), held(link, 2)
    settled.claim()

    for each in (handled, handled, settled):
        each.lose()

    assert told == [handled]


def test_whoever_handles_messages_of_a_session_is_told_of_all_when_its_lock_is_over() -> None:
    link = SessionLink("orders", NOBODY, lambda: None, LostLeases())
    told, receipts = told_of(link), held(link, 2)

    link.lose()

    assert set(told) == set(receipts)
