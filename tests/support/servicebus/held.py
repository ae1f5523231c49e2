"""One message in an entity of the emulator, and the lock that somebody may have on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from proton import int32, timestamp, ubyte, uint

from support.servicebus import sections

if TYPE_CHECKING:
    from support.servicebus.sections import Content

ACTIVE, DEFERRED, SCHEDULED = range(3)
_PRIORITY = 4


@dataclass
class Lock:
    token: UUID
    until: float


@dataclass
class Held:
    sequence: int
    content: Content
    enqueued_at: float
    due_at: float | None = None
    """Scheduled: not before this moment. None: it lies in the queue."""
    delivery_count: int = 0
    """How often it was handed out and came back, as the header says it."""
    deferred: bool = False
    lock: Lock | None = None

    @property
    def state(self) -> int:
        if self.due_at is not None:
            return SCHEDULED
        return DEFERRED if self.deferred else ACTIVE

    @property
    def expires_at(self) -> float | None:
        lives = self.content.seconds_to_live
        return None if lives is None else self.enqueued_at + lives

    def encoded(self) -> bytes:
        """As it is handed out or shown now."""
        annotations: dict[str, Any] = {
            "x-opt-enqueued-time": _milliseconds(self.enqueued_at),
            "x-opt-sequence-number": self.sequence,
            "x-opt-enqueue-sequence-number": self.sequence,
            "x-opt-message-state": int32(self.state),
        }
        hop: dict[str, Any] = {}
        if self.lock is not None:
            annotations["x-opt-locked-until"] = _milliseconds(self.lock.until)
            hop["x-opt-lock-token"] = self.lock.token
        return sections.write(self.content, header=self._header(), annotations=annotations, hop=hop)

    def _header(self) -> list[Any]:
        given: list[Any] = [*self.content.header, None, None, None]
        durable, priority, lives = given[:3]
        return [
            True if durable is None else durable,
            ubyte(_PRIORITY) if priority is None else priority,
            lives,
            self.delivery_count == 0,
            uint(self.delivery_count),
        ]


def _milliseconds(moment: float) -> timestamp:
    return timestamp(int(moment * 1000))
