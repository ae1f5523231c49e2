"""How long a handler may take, and how long the broker waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.duration import short
from redrive.finding import problem, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.finding import Finding

_WARN_AT = 0.5
_SHORTEN = "shorten its handler_timeout or its immediate retries, or raise consumer_timeout on the broker and here"


def examine_timeout(queue: str, longest: float | None, timeout: float | None) -> Iterator[Finding]:
    """Behind `consumer_timeout` RabbitMQ closes the channel and gives the message to somebody else."""
    if timeout is None:
        return
    if longest is None:
        what = f"its handler has no timeout; the broker waits {short(timeout)}"
        yield warn("consumer-timeout", what, "set handler_timeout for it", queue=queue)
        return
    what = f"a message may be in hand for {short(longest)}; the broker waits {short(timeout)}"
    if longest >= timeout:
        yield problem("consumer-timeout", what, _SHORTEN, queue=queue)
    elif longest >= timeout * _WARN_AT:
        yield warn("consumer-timeout", what, _SHORTEN, queue=queue)
