"""Where messages wait for their next attempt: a topic per delay, so that none waits behind a longer one (SD13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.transports.delays import LADDER, rung

if TYPE_CHECKING:
    from redrive.transports import Names

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms"))


def spelled(milliseconds: int) -> str:
    """As short as it is exact: 90 s, not 1.5 m."""
    for size, unit in _UNITS:
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    raise AssertionError(milliseconds)


class RetryTopics:
    """`single`: one topic for all delays, in which those wait longest that are behind many others."""

    def __init__(self, names: Names, *, single: bool) -> None:
        self._names = names
        self._single = single

    def topic(self, queue: str, delay: float) -> str:
        base = self._names.retry_of(queue)
        return base if self._single or delay <= 0 else f"{base}_{spelled(rung(delay))}"

    def all_of(self, queue: str) -> tuple[str, ...]:
        base = self._names.retry_of(queue)
        return (base,) if self._single else (base, *(f"{base}_{spelled(each)}" for each in LADDER))

    def pattern(self, queue: str) -> str:
        """For librdkafka: those that are there, and those that are made later."""
        base = self._names.retry_of(queue).replace(".", "\\.")
        return f"^{base}$" if self._single else f"^{base}(_[0-9]+(ms|s|m|h|d))?$"
