"""The event loop for what runs long: uvloop where it is installed (`redrive[rabbitmq]` brings it)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


def run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=_factory()) as runner:
        runner.run(work)


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415  it may not be there
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
