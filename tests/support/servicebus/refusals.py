"""What the emulator says no with: conditions that the SDK knows by name."""

from __future__ import annotations

from proton import Condition, symbol

NOT_FOUND = "amqp:not-found"
NOT_ALLOWED = "amqp:not-allowed"
TOO_LARGE = "amqp:link:message-size-exceeded"
UNAUTHORIZED = "amqp:unauthorized-access"
QUOTA = "amqp:resource-limit-exceeded"
BUSY = "com.microsoft:server-busy"
TIMEOUT = "com.microsoft:timeout"
LOCK_LOST = "com.microsoft:message-lock-lost"
MESSAGE_NOT_FOUND = "com.microsoft:message-not-found"
SESSION_LOCK_LOST = "com.microsoft:session-lock-lost"
SESSION_LOCKED = "com.microsoft:session-cannot-be-locked"

_STATUS = {
    NOT_FOUND: 404,
    MESSAGE_NOT_FOUND: 404,
    LOCK_LOST: 410,
    SESSION_LOCK_LOST: 410,
    UNAUTHORIZED: 401,
    BUSY: 503,
}


class Refusal(Exception):
    def __init__(self, condition: str, text: str) -> None:
        super().__init__(f"{condition}: {text}")
        self.condition = condition
        self.text = text

    def on_the_wire(self) -> Condition:
        """With something to tell beside: the SDK reads all three parts of a rejection, there or not."""
        return Condition(self.condition, self.text, {symbol("tracking-id"): "emulator"})

    @property
    def status(self) -> int:
        """As a management answer puts it."""
        return _STATUS.get(self.condition, 400)
