"""Waiting for something to become true, without guessing how long it takes."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_EVERY = 0.005
_ASK_EVERY = 0.05
"""A question to a store or a broker costs those who work there."""


async def until(condition: Callable[[], Any], *, within: float = 30.0) -> Any:
    """What the condition gives as soon as that is true; fails the test if it never is. It may be async."""
    deadline, pause = time.monotonic() + within, _LOOK_EVERY
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found, pause = await found, min(1.2 * pause, _ASK_EVERY)
        if found:
            return found
        assert time.monotonic() < deadline, f"not true within {within:g} s"
        await asyncio.sleep(pause)


def until_now(condition: Callable[[], Any], *, within: float = 30.0) -> Any:
    """As `until`, where nothing else runs in this process."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not true within {within:g} s"
        time.sleep(_ASK_EVERY)
    return found
