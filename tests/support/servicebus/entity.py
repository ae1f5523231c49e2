"""What can be received from in the emulator: a queue, a subscription, or one of their subqueues.

No I/O and no time of its own: `now` is asked, and `sweep` does what has become due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from support.servicebus.held import ACTIVE, SCHEDULED, Held, Lock
from support.servicebus.refusals import LOCK_LOST, MESSAGE_NOT_FOUND, NOT_ALLOWED, SESSION_LOCK_LOST, Refusal
from support.servicebus.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from support.servicebus.sections import Content

DEAD_LETTERS = "$DeadLetterQueue"
TRANSFER_DEAD_LETTERS = f"$Transfer/{DEAD_LETTERS}"
_NO_LIMIT = 2**31


@dataclass(frozen=True)
class Rules:
    """How an entity is set up; the numbers are those of a new one on Azure."""

    lock: float = 60.0
    max_deliveries: int = 10
    sessions: bool = False
    dead_letter_expired: bool = False
    max_message_bytes: int = 100 * 2**20
    """What only a premium namespace takes; the standard tier takes 256 KiB."""


@dataclass(frozen=True)
class Outcome:
    """What a receiver wants to become of a message."""

    what: str
    """completed, abandoned, released, deferred or dead-lettered."""
    reason: str | None = None
    description: str | None = None


@dataclass
class Entity:
    path: str
    rules: Rules
    now: Callable[[], float]
    subqueues: dict[str, Entity] = field(default_factory=dict)
    """Empty in a subqueue: nothing is dead-lettered twice."""
    when_due: Callable[[Content], object] | None = None
    """Where a scheduled message goes then; None: to the end of this queue."""
    messages: dict[int, Held] = field(default_factory=dict)
    sessions: Sessions = field(init=False)
    _last: int = 0
    _soonest: float = math.inf
    """Nothing is due or over before this: it need not be looked for."""

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.rules.lock, self.now)

    @property
    def dead_letters(self) -> Entity:
        return self.subqueues[DEAD_LETTERS]

    @property
    def transfer_dead_letters(self) -> Entity:
        return self.subqueues[TRANSFER_DEAD_LETTERS]

    def enqueue(self, content: Content, *, due_at: float | None = None, delivery_count: int = 0) -> int:
        """Its sequence number. A scheduled message gets another one when it is due."""
        self._last += 1
        later = due_at if due_at is not None and due_at > self.now() else None
        held = Held(self._last, content, self.now(), due_at=later, delivery_count=delivery_count)
        self.messages[self._last] = held
        self._watch(held)
        return self._last

    def cancel(self, sequences: Iterable[int]) -> None:
        numbers = list(sequences)
        if not all(number in self.messages and self.messages[number].state == SCHEDULED for number in numbers):
            raise Refusal(MESSAGE_NOT_FOUND, "not every one of these messages is scheduled")
        for number in numbers:
            del self.messages[number]

    def take(self, session: str | None = None) -> Held | None:
        """The next message, locked; None if there is none for this session, or outside of sessions."""
        for held in self.messages.values():
            if held.state == ACTIVE and held.lock is None and self._is_for(held, session):
                return self._lock(held)
        return None

    def take_deferred(self, sequences: Iterable[int]) -> list[Held]:
        numbers = list(sequences)
        found = [self.messages[number] for number in numbers if number in self.messages]
        if len(found) < len(numbers) or not all(held.deferred and held.lock is None for held in found):
            raise Refusal(MESSAGE_NOT_FOUND, "not every one of these messages is deferred")
        return [self._lock(held) for held in found]

    def remove(self, held: Held) -> None:
        """Received and deleted."""
        del self.messages[held.sequence]

    def peek(self, start: int, count: int, session: str | None = None) -> list[Held]:
        """Also what is scheduled, deferred or locked; nothing changes."""
        found = [
            held
            for number, held in self.messages.items()
            if number >= start and (session is None or held.content.session_id == session)
        ]
        return found[:count]

    def settle(self, token: UUID, outcome: Outcome) -> None:
        held = self._locked_with(token)
        if outcome.what == "completed":
            del self.messages[held.sequence]
        elif outcome.what == "dead-lettered":
            self._dead_letter(held, outcome.reason, outcome.description)
        elif outcome.what == "released":
            held.lock = None
            self._watch(held)
        else:
            held.deferred = outcome.what == "deferred"
            self._give_back(held)

    def renew(self, token: UUID) -> float:
        held = self._locked_with(token)
        held.lock = Lock(token, self.now() + self.rules.lock)
        return held.lock.until

    def lose_locks(self) -> None:
        """As if every lock had expired just now."""
        for held in list(self.messages.values()):
            if held.lock is not None:
                self._give_back(held)

    def drop_session(self, session: str) -> None:
        """Its receiver is gone: what it held can be received with the session."""
        for held in self.messages.values():
            if held.content.session_id == session:
                held.lock = None
                self._watch(held)

    def sweep(self) -> list[object]:
        """Does what is due. Gives the receivers whose sessions are no longer theirs."""
        now, lost = self.now(), self.sessions.expired()
        for session, _ in lost:
            self.drop_session(session)
        if now < self._soonest:
            return [owner for _, owner in lost]
        for held in list(self.messages.values()):
            if held.due_at is not None and held.due_at <= now:
                del self.messages[held.sequence]
                (self.when_due or self.enqueue)(held.content)
            elif (over := self._over_at(held)) is not None and over <= now:
                self._give_back(held) if held.lock else self._expire(held)
        self._soonest = math.inf
        for held in self.messages.values():
            self._watch(held)
        return [owner for _, owner in lost]

    def next_moment(self) -> float | None:
        """When there is something to sweep."""
        first = min(self._soonest, self.sessions.next_moment() or math.inf)
        return None if first == math.inf else first

    def free_session(self) -> str | None:
        """The next one that has messages and no receiver."""
        for held in self.messages.values():
            session = held.content.session_id
            if held.state == ACTIVE and session is not None and self.sessions.is_free(session):
                return session
        return None

    def session_ids(self) -> list[str]:
        """Those with messages or with a state."""
        found = [held.content.session_id for held in self.messages.values()]
        return [session for session in dict.fromkeys((*found, *self.sessions.states)) if session is not None]

    def _over_at(self, held: Held) -> float | None:
        """When its lock is over by itself, or it has lived long enough; what is dead-lettered lives for ever."""
        if held.lock is not None:
            return None if self.rules.sessions else held.lock.until
        return held.expires_at if self.subqueues and held.due_at is None else None

    def _watch(self, held: Held) -> None:
        """It may be the next that is due or over."""
        for moment in (held.due_at, self._over_at(held)):
            self._soonest = min(self._soonest, math.inf if moment is None else moment)

    def _is_for(self, held: Held, session: str | None) -> bool:
        return not self.rules.sessions or held.content.session_id == session

    def _lock(self, held: Held) -> Held:
        held.lock = Lock(uuid4(), self.now() + self.rules.lock)
        self._watch(held)
        return held

    def _locked_with(self, token: UUID) -> Held:
        for held in self.messages.values():
            if held.lock is not None and held.lock.token == token:
                if (over := self._over_at(held)) is None or over > self.now():
                    return held
                break
        condition = SESSION_LOCK_LOST if self.rules.sessions else LOCK_LOST
        raise Refusal(condition, "the lock supplied is invalid: it expired, or the message was removed")

    def _give_back(self, held: Held) -> None:
        held.lock = None
        held.delivery_count += 1
        self._watch(held)
        if self.subqueues and held.delivery_count >= self.rules.max_deliveries:
            text = f"Message could not be consumed after {self.rules.max_deliveries} delivery attempts."
            self._dead_letter(held, "MaxDeliveryCountExceeded", text)

    def _expire(self, held: Held) -> None:
        if self.rules.dead_letter_expired:
            self._dead_letter(held, "TTLExpiredException", "The message expired and was dead lettered.")
        else:
            del self.messages[held.sequence]

    def _dead_letter(self, held: Held, reason: str | None, description: str | None) -> None:
        if not self.subqueues:
            raise Refusal(NOT_ALLOWED, "a message in a dead-letter queue cannot be dead-lettered again")
        told = {"DeadLetterReason": reason, "DeadLetterErrorDescription": description}
        said = {name: text for name, text in told.items() if text}
        content = held.content.with_application(said) if said else held.content
        self.dead_letters.enqueue(content, delivery_count=held.delivery_count)
        del self.messages[held.sequence]


def with_subqueues(path: str, rules: Rules, now: Callable[[], float]) -> Entity:
    plain = Rules(lock=rules.lock, max_deliveries=_NO_LIMIT, max_message_bytes=rules.max_message_bytes)
    names = (DEAD_LETTERS, TRANSFER_DEAD_LETTERS)
    return Entity(path, rules, now, {name: Entity(f"{path}/{name}", plain, now) for name in names})
