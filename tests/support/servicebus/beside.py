"""The emulator beside the test, in a thread with an event loop of its own: for commands, which have theirs."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from support.servicebus.emulator import emulated

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any

    from support.certificates import Certificates
    from support.servicebus.emulator import ServiceBusEmulator

T = TypeVar("T")


class EmulatorBeside:
    """`do` is how a test touches the emulator: in its own loop."""

    def __init__(self, emulator: ServiceBusEmulator, loop: asyncio.AbstractEventLoop) -> None:
        self._emulator = emulator
        self._loop = loop
        self.url = emulator.url
        self.settings = emulator.settings
        self.variables = emulator.variables
        self.connection_string = emulator.connection_string

    def do(self, act: Callable[[ServiceBusEmulator], T]) -> T:
        async def doing() -> T:
            done = act(self._emulator)
            self._emulator.wake()
            return done

        return asyncio.run_coroutine_threadsafe(doing(), self._loop).result()


@contextmanager
def emulated_beside(certificates: Certificates) -> Iterator[EmulatorBeside]:
    made: list[EmulatorBeside] = []
    ready, over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with emulated(certificates) as emulator:
            made.append(EmulatorBeside(emulator, asyncio.get_running_loop()))
            ready.set()
            await over.wait()

    thread = _started(serve(), ready)
    ready.wait()
    try:
        yield made[0]
    finally:
        made[0]._loop.call_soon_threadsafe(over.set)
        thread.join()


def _started(serving: Coroutine[Any, Any, None], ready: threading.Event) -> threading.Thread:
    def run() -> None:
        try:
            asyncio.run(serving)
        finally:
            ready.set()  # whoever waits finds out that there is nothing

    thread = threading.Thread(target=run, name="emulator of Service Bus", daemon=True)
    thread.start()
    return thread
