"""How long retries can wait, by what their policy says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.transports.delays import rungs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.policy import Retry

_FIRST_RETRIES = 1000
"""Later ones wait no differently: delays rise until they reach the longest."""


def waits_of(retry: Retry) -> list[float]:
    """Every delay of the ladder that such a retry can be rounded up to, in seconds, each once."""
    return list(dict.fromkeys(_waits(retry)))


def _waits(retry: Retry) -> Iterator[float]:
    delayed = max(0, retry.attempts - 1 - retry.immediate)
    for number in range(1, min(delayed, _FIRST_RETRIES) + 1):
        shortest, longest = retry.delays.delay(number, 0.0), retry.delays.delay(number, 1.0)
        yield from (milliseconds / 1e3 for milliseconds in rungs(shortest, longest))
