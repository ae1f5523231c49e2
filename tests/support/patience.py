"""Waiting for something to become true, without guessing how long it takes."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_EVERY = 0.005


async def until(condition: Callable[[], Any], *, within: float = 30.0) -> Any:
    """What the condition gives as soon as that is true; fails the test if it never is. It may be async."""
    deadline = time.monotonic() + within
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, f"not true within {within:g} s"
        await asyncio.sleep(_LOOK_EVERY)
