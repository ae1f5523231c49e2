"""Stops consuming a queue when its dependency is down, instead of filling the store with good messages.

closed → open: many consecutive transient failures of one exception type over distinct messages. Permanent
failures neither count nor reset: they are the message's own fault, and a thousand invalid events in a row are a
thousand letters. open → probing: after the pause one message is let through. It succeeds: closed. It fails: open
again, for twice as long, up to ten times the pause.

Written here and not taken from a library: what counts is distinct messages of one type, and an open breaker
pauses consumption instead of raising. Pure: the time comes in.
"""

from __future__ import annotations

from enum import StrEnum

_LONGEST = 10


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"


class Breaker:
    def __init__(self, *, failures: int, pause: float) -> None:
        """`failures` = 0 switches it off."""
        self._threshold = failures
        self._pause = pause
        self._type = ""
        self._failed: set[str] = set()
        self._opened_at = 0.0
        self._wait = pause
        self.state = BreakerState.CLOSED
        self.opened = 0
        """How often it has."""

    def succeeded(self) -> None:
        if self.state is BreakerState.CLOSED and not self._failed:
            return  # the usual, for every message
        self._failed.clear()
        self._wait = self._pause
        self.state = BreakerState.CLOSED

    def failed(self, error_type: str, identity: str, now: float) -> bool:
        """Counts a transient failure; True if this one opened the breaker."""
        if not self._threshold:
            return False
        if self.state is BreakerState.PROBING:
            self._wait = min(self._wait * 2, self._pause * _LONGEST)
            return self._open(now)
        if error_type != self._type:
            self._type = error_type
            self._failed.clear()
        self._failed.add(identity)
        if self.state is BreakerState.CLOSED and len(self._failed) >= self._threshold:
            return self._open(now)
        return False

    def remaining(self, now: float) -> float:
        """Seconds until a message may be taken: 0 when closed or when it is time to probe."""
        if self.state is BreakerState.CLOSED:
            return 0.0
        return max(0.0, self._opened_at + self._wait - now)

    def holds_up(self, now: float) -> bool:
        """Whether messages wait because of it, as far as it can know: if none came to be tried for as long as a
        pause, though one might have, there are none.
        """
        return self.state is not BreakerState.CLOSED and now < self._opened_at + self._wait + self._pause

    def probe(self) -> None:
        """One message is about to be tried."""
        self.state = BreakerState.PROBING

    def _open(self, now: float) -> bool:
        self.state = BreakerState.OPEN
        self.opened += 1
        self._opened_at = now
        self._failed.clear()
        return True
