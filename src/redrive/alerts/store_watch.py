"""The one rule that no store can help with: it does not answer.

Every server looks to it by itself, for the one that would speak for all may have gone with the store. They tell it
under one key, so that whoever takes incidents together takes these together. What is known of it is in the
outbox:

1. The store has not answered for as long as the window: a note is written, with the message and the id that the
   message of the end will have.
2. The message is handed over.
   Crash before: whoever starts on this outbox finds the note, and hands it over again.
3. The store answers: the end is handed over, and the note says so.
   Crash between: the same again, with the same id.
4. The note stays: within the cooldown the next absence is not told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import structlog
from msgspec.structs import replace

from redrive import faults
from redrive.alerts.alert import Alert, State
from redrive.alerts.conditions import key_of
from redrive.clock import new_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from redrive.alerts.outbox import Outbox
    from redrive.alerts.rule import AlertRule
    from redrive.clock import Clock

log = structlog.get_logger("redrive.alerts")


class _Note(msgspec.Struct, frozen=True):
    raised: Alert
    end_id: str
    over: bool = False
    """Its end was handed over."""


class StoreWatch:
    """`tell` hands a message over."""

    def __init__(
        self, rule: AlertRule, outbox: Outbox, tell: Callable[[Alert], Awaitable[None]], *, clock: Clock
    ) -> None:
        self._rule = rule
        self._name = f"store down: {rule.name}"
        self._outbox = outbox
        self._tell = tell
        self._clock = clock
        self._away: float | None = None
        self._since: datetime | None = None
        self._looked = False
        """Whether it is known that no end is to be told."""

    async def answered(self) -> None:
        self._away = self._since = None
        if self._looked:
            return
        note = await self._note()
        if note is not None and not note.over:
            now = self._clock.now()
            await self._tell(replace(note.raised, id=note.end_id, state=State.RESOLVED, at=now))
            faults.point("alerts.end_told")
            await self._write(replace(note, over=True))
        self._looked = True

    async def failed(self) -> None:
        now, monotonic = self._clock.now(), self._clock.monotonic()
        if self._away is None or self._since is None:
            self._away, self._since = monotonic, now
        if monotonic - self._away < self._rule.window:
            return
        note = await self._note()
        if note is not None and note.over:
            if 0 <= (now - note.raised.at).total_seconds() < self._rule.cooldown:
                return
            note = None
        if note is None:
            note = _Note(self._raised(self._since, now), new_id())
            await self._write(note)
            faults.point("alerts.noted")
            log.error("the store is away, and people are told", since=self._since.isoformat())
        self._looked = False
        await self._tell(note.raised)  # the same again changes nothing

    async def _note(self) -> _Note | None:
        text = await self._outbox.noted(self._name)
        return None if text is None else msgspec.json.decode(text, type=_Note)

    async def _write(self, note: _Note) -> None:
        await self._outbox.note(self._name, msgspec.json.encode(note))

    def _raised(self, since: datetime, now: datetime) -> Alert:
        rule = self._rule
        return Alert(
            id=new_id(),
            dedup_key=key_of(rule.name, ""),
            rule=rule.name,
            severity=rule.severity,
            state=State.RAISED,
            title="The store does not answer: dead letters are spooled, and nobody can look at them",
            since=since,
            at=now,
        )
