"""What just happened in the shop, read from the product's own log lines."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import structlog

from redrive.duration import short

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

_LONGEST = 12


class Feed:
    """A structlog processor that keeps the last lines for the screen instead of printing them."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self.lines: deque[str] = deque(maxlen=_LONGEST)
        self.retries: Counter[str] = Counter()
        self.dead: Counter[str] = Counter()
        self._tell = tell

    def install(self) -> None:
        structlog.configure(
            processors=[self],
            wrapper_class=structlog.make_filtering_bound_logger(0),
            cache_logger_on_first_use=False,
        )

    def add(self, line: str) -> None:
        self.lines.append(line)
        if self._tell is not None:
            self._tell(line)

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:  # noqa: ARG002  structlog's
        if event["event"] == "retry scheduled":
            self.retries[event["queue"]] += 1
            failed = f"attempt {event['attempt']} failed with {_last(event['error_type'])}"
            self.add(f"retry    {event['queue']:<9} {failed}, again in {short(event['delay'])}")
        elif event["event"] == "message sent to dead letter queue":
            self.dead[event["queue"]] += 1
            self.add(f"dead     {event['queue']:<9} after {event['attempts']} attempt(s): {event['reason']}")
        raise structlog.DropEvent


def _last(name: str) -> str:
    return name.rpartition(".")[2]
