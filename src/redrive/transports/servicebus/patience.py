"""How long the SDK is waited for. Left alone it waits for ever: for an answer to a send, for a server that says
nothing. And it may swallow a cancellation, so whoever gives up does not wait for ever for that either.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import msgspec
from azure.core.exceptions import AzureError

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

T = TypeVar("T")
_GRACE = 1.0


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    attempt: float = 10.0
    """For one attempt of the SDK's at something; it makes several."""
    answer: float = 30.0
    """For one call, with all its attempts."""
    end: float = 10.0
    """For something to close."""


class NoAnswer(AzureError):
    """Nobody knows what became of it, and what it was asked with is good for nothing more."""


_asked: set[asyncio.Future[Any]] = set()
"""Tasks must be held by somebody until they are over."""


async def within(seconds: float, asked: Coroutine[Any, Any, T], *, grace: float = _GRACE) -> T:
    """NoAnswer if it takes longer. `grace`: seconds for it to end when it is told to."""
    task = asyncio.ensure_future(asked)
    _asked.add(task)
    task.add_done_callback(_over)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            await _end(task, grace)
    if not task.done() or task.cancelled():
        raise NoAnswer(f"no answer within {seconds:g} s")
    return task.result()


async def _end(task: asyncio.Future[Any], grace: float) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=grace)


def _over(task: asyncio.Future[Any]) -> None:
    _asked.discard(task)
    if not task.cancelled():
        task.exception()  # whoever asked may have been cancelled, and not look at it
