"""Where messages wait for their next attempt: a topic per delay, so that none waits behind a longer one (SD13),
unless the settings want it otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.errors import ConfigurationError
from redrive.transports.delays import LADDER, rung

if TYPE_CHECKING:
    from redrive.transports import Names

MODES = ("per-delay", "single", "blocking")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms"))


def spelled(milliseconds: int) -> str:
    """As short as it is exact: 90 s, not 1.5 m."""
    for size, unit in _UNITS:
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    raise AssertionError(milliseconds)


class RetryTopics:
    """`mode`: "per-delay"; "single", one topic for all delays, in which those wait longest that are behind many
    others; "blocking", where retries wait in memory, and a topic is for what is redriven or sent with a delay.
    """

    def __init__(self, names: Names, mode: str) -> None:
        if mode not in MODES:
            told = ", ".join(f'"{each}"' for each in MODES)
            raise ConfigurationError(f"retry_topics = {mode!r} is not possible", remedy=f"use one of {told}")
        self._names = names
        self._single = mode == "single"
        self._per_delay = mode == "per-delay"
        self.blocking = mode == "blocking"

    def topic(self, queue: str, delay: float) -> str:
        base = self._names.retry_of(queue)
        return f"{base}_{spelled(rung(delay))}" if self._per_delay and delay > 0 else base

    def all_of(self, queue: str) -> tuple[str, ...]:
        """Those that are read. With "blocking" also those per delay: whoever worked so before has left some there,
        or still does beside us.
        """
        base = self._names.retry_of(queue)
        return (base,) if self._single else (base, *(f"{base}_{spelled(each)}" for each in LADDER))

    def pattern(self, queue: str) -> str:
        """For librdkafka: those that are there, and those that are made later."""
        base = self._names.retry_of(queue).replace(".", "\\.")
        return f"^{base}$" if self._single else f"^{base}(_[0-9]+(ms|s|m|h|d))?$"
