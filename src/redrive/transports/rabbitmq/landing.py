"""What becomes of a message that nobody waits for: whoever sent it is told, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from redrive import faults
from redrive.telemetry.error_facts import error_facts
from redrive.transports.rabbitmq.publisher import Unroutable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Tell = Callable[[Exception | None], None]
    Again = Callable[[], Coroutine[Any, Any, None]]
    Start = Callable[[Coroutine[Any, Any, None]], None]

log = structlog.get_logger("redrive.rabbitmq")


class Landing:
    """A publisher's answer in the place of a Future. `again` publishes it once more, for somebody may have deleted
    the queue since it was known; `start` does so in the background.
    """

    __slots__ = ("_again", "_start", "_tell")

    def __init__(self, tell: Tell, again: Again, start: Start) -> None:
        self._tell = tell
        self._again = again
        self._start = start

    def done(self) -> bool:
        return False  # whoever is told does not stop listening

    def set_result(self, _result: None) -> None:
        faults.point("rabbitmq.confirmed")
        self._end(None)

    def set_exception(self, exception: Exception) -> None:
        if isinstance(exception, Unroutable):
            self._start(self._try_again())
        else:
            self._end(exception)

    async def _try_again(self) -> None:
        try:
            await self._again()
        except Exception as error:  # noqa: BLE001  whatever it is, it is told
            self._end(error)
        else:
            self._end(None)

    def _end(self, error: Exception | None) -> None:
        try:
            self._tell(error)
        except Exception as bug:
            # The connection by which the answer came is everybody's.
            log.exception("somebody could not be told what became of a message", **error_facts(bug))
