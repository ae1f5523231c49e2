"""RabbitMQ's own `x-death`: one entry per queue and reason, the newest first, with how often and since when.

Anybody can write that header, so every part of it is doubted. Once a message has gone round in circles (a queue
that rejects, a queue that lets it expire back), the order of the entries tells which one was updated last. So the
queue that it failed in is where the oldest rejection was, and only without one the queue of the first death.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.dialects.arrival import MOST_ATTEMPTS, Arrival, Reading, one_failure
from redrive.failure import FailureKind
from redrive.headers import header
from redrive.message import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.failure import Failure
    from redrive.message import Headers

NAME = "rabbitmq"

DEATHS = "x-death"

_REJECTIONS = frozenset({"rejected", "delivery_limit"})
_REASONS = _REJECTIONS | {"expired", "maxlen"}
_MOST_ENTRIES = 100
_WORD_BUDGET = 255


class _Death(msgspec.Struct, frozen=True):
    queue: str | None
    reason: str | None
    count: int
    time: datetime | None
    exchange: str | None


def read(arrival: Arrival) -> Reading | None:
    headers = arrival.message.headers
    if not any(name == DEATHS or name.startswith("x-first-death-") for name, _ in headers):
        return None
    warnings: list[str] = []
    deaths = _deaths(header(headers, DEATHS), warnings) or _first_death(headers)
    failures = _failures(arrival, deaths)
    times = [death.time for death in deaths if death.time is not None]
    return Reading(
        dialect=NAME,
        home=_home(arrival, deaths, warnings),
        failures=failures,
        message=arrival.message,
        first_attempt_at=min(failure.at for failure in failures) if times else None,
        warnings=tuple(warnings),
    )


def _deaths(told: Any, warnings: list[str]) -> list[_Death]:
    """Newest first, as the broker tells them."""
    if not isinstance(told, list | tuple):
        warnings.append("x-death is no list")
        return []
    entries = [each for each in told if isinstance(each, dict)]
    if len(entries) < len(told) or len(entries) > _MOST_ENTRIES:
        warnings.append("x-death holds entries that are left out: no tables, or too many")
    deaths = [_death(entry) for entry in entries[:_MOST_ENTRIES]]
    if any(None in (death.queue, death.reason, death.time) for death in deaths):
        warnings.append("x-death does not tell queue, reason and time everywhere")
    return deaths


def _first_death(headers: Headers) -> list[_Death]:
    """What is left to go by where x-death itself says nothing."""
    queue, reason = (_word(header(headers, f"x-first-death-{what}")) for what in ("queue", "reason"))
    return [_Death(queue, reason, 1, None, _word(header(headers, "x-first-death-exchange")))]


def _death(entry: dict[Any, Any]) -> _Death:
    count, time = entry.get("count"), entry.get("time")
    return _Death(
        queue=_word(entry.get("queue")),
        reason=_word(entry.get("reason")),
        count=max(1, min(count, MOST_ATTEMPTS)) if isinstance(count, int) else 1,
        time=time if isinstance(time, datetime) else None,
        exchange=_word(entry.get("exchange")),
    )


def _word(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    return cut(value, _WORD_BUDGET) if isinstance(value, str) and value else None


def _home(arrival: Arrival, deaths: Sequence[_Death], warnings: list[str]) -> str:
    oldest_first = deaths[::-1]
    rejected = [death.queue for death in oldest_first if death.reason in _REJECTIONS]
    first = _word(header(arrival.message.headers, "x-first-death-queue"))
    for name in (*rejected, first, *(death.queue for death in oldest_first)):
        if home := arrival.usable(name):
            return home
    warnings.append("x-death names no queue that it could go back to")
    return arrival.home_by_name or arrival.home_by_message or arrival.queue


def _failures(arrival: Arrival, deaths: Sequence[_Death]) -> tuple[Failure, ...]:
    """Oldest first. Each stands for as many attempts as it counts, and bears the number of its last one."""
    told: list[Failure] = []
    attempts = 0
    for death in reversed(deaths):
        attempts += death.count
        told.append(_failure(arrival, death, attempts))
    return tuple(told)


def _failure(arrival: Arrival, death: _Death, attempt: int) -> Failure:
    reason = death.reason or "unknown reason"
    known = reason if reason in _REASONS else "dead"  # a type is a name, and anybody can write a reason
    came_by = f", published to exchange {death.exchange!r}" if death.exchange else ""
    return one_failure(
        arrival,
        type=f"rabbitmq.{known}",
        text=f"{reason} in queue {death.queue or '(not told)'!r} (count {death.count}){came_by}",
        kind=FailureKind.PERMANENT if death.reason in _REJECTIONS else FailureKind.TRANSIENT,
        attempt=attempt,
        at=death.time,
    )
