"""The desk's part about letters that are handed in by consumers that are not ours: see `redrive.actions`."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from redrive.access import Permission, fits
from redrive.dead_letter import Entry
from redrive.fingerprint import fingerprint
from redrive.standing import Standing

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.clock import Clock
    from redrive.dead_letter import Recorded
    from redrive.failure import Failure
    from redrive.message import Message


class IntakeActions(Standing):
    _clock: Clock

    async def hand_in(
        self, message: Message, failures: tuple[Failure, ...], *, first_attempt_at: datetime | None = None
    ) -> tuple[str, Recorded]:
        """The letter's id, and whether it is new. The same message of the same queue again, by its id and its
        body, is one more delivery of the same letter.
        """
        scope = await self._may(Permission.INGEST)
        if scope is not None and not any(fits(message.queue, each) for each in scope):
            raise await self._denied(Permission.INGEST, f"queue {message.queue}")
        last = failures[-1]
        return await self._store.record(
            Entry(
                identity=f"{_identity(message)}/{last.handler}",
                message=message,
                queue=message.queue,
                handler=last.handler,
                failures=failures,
                fingerprint=fingerprint(last, queue=message.queue),
                at=self._clock.now(),
                first_attempt_at=first_attempt_at or failures[0].at,
                by=self._who.name,
            )
        )


def _identity(message: Message) -> str:
    """With the body, so that no message hides behind the id of another."""
    queue, own = message.queue, message.id
    named = f"{len(queue)}:{queue}{len(own)}:{own}".encode("utf-8", "surrogatepass")
    return f"handed-in:{hashlib.sha256(named + (message.body or b'')).hexdigest()}"
