"""Who receives which session of an entity of the emulator, until when, and what was written to its state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.servicebus.refusals import SESSION_LOCK_LOST, SESSION_LOCKED, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class _Hold:
    owner: object
    until: float


@dataclass
class Sessions:
    lock: float
    now: Callable[[], float]
    states: dict[str, bytes] = field(default_factory=dict)
    _holds: dict[str, _Hold] = field(default_factory=dict)

    def is_free(self, session: str) -> bool:
        return session not in self._holds or self._holds[session].until <= self.now()

    def accept(self, session: str, owner: object) -> float:
        """Until when it is this owner's alone."""
        if not self.is_free(session):
            raise Refusal(SESSION_LOCKED, f"the session {session!r} has another receiver")
        self._holds[session] = _Hold(owner, self.now() + self.lock)
        return self._holds[session].until

    def renew(self, session: str) -> float:
        hold = self._holds.get(session)
        if hold is None or hold.until <= self.now():
            raise Refusal(SESSION_LOCK_LOST, f"the lock of the session {session!r} has expired")
        hold.until = self.now() + self.lock
        return hold.until

    def give_up(self, owner: object) -> list[str]:
        """The sessions that this owner had."""
        gone = [session for session, hold in self._holds.items() if hold.owner is owner]
        for session in gone:
            del self._holds[session]
        return gone

    def expired(self) -> list[tuple[str, object]]:
        """Those whose time is up, with whoever had them; they are free now."""
        gone = [(session, hold.owner) for session, hold in self._holds.items() if hold.until <= self.now()]
        for session, _ in gone:
            del self._holds[session]
        return gone

    def lose(self) -> None:
        """As if every lock had expired just now."""
        for hold in self._holds.values():
            hold.until = self.now()

    def next_moment(self) -> float | None:
        return min((hold.until for hold in self._holds.values()), default=None)

    def set_state(self, session: str, state: bytes | None) -> None:
        if state is None:
            self.states.pop(session, None)
        else:
            self.states[session] = state
