"""Claim, send, mark: how named letters go back to their queues (GUARANTEES 4, T4 to T9).

1. Claim. The letter is REDRIVING and its redrive id is durable before anything is sent.
   Crash here: nothing was sent; when the lease has run out, the next claim takes over.
2. Send. The current revision, its bytes untouched, with our signed control headers.
   Crash here: sent, not marked; the takeover sends a second copy with the same redrive id (G4).
3. Mark. Guarded by the fence. A consumer may have confirmed in the meantime: then there is nothing to mark.

Letters are claimed in small windows, so that a crash leaves at most WINDOW of them to be taken over. A window
is claimed when the turn of its first letter has come, and is so small that the turn of its last comes within
_WINDOW_SECONDS: however low the rate is, no claim's lease runs out while its letter waits.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from redrive import faults
from redrive.control import stamp
from redrive.dead_letter import Actor, Status, Transition
from redrive.errors import PublishRefused, Unreachable, UsageError
from redrive.letter_query import LetterQuery
from redrive.telemetry.spans import told
from redrive.transports import OriginSending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from redrive.dead_letter import Claim, DeadLetter
    from redrive.message import Message
    from redrive.pace import Pace
    from redrive.stores import DeadLetterStore
    from redrive.telemetry.spans import Follow, Spans
    from redrive.transports import Transport

WINDOW = 20
LEASE = 60.0
SEND_DEADLINE = 25.0
_WINDOW_SECONDS = 10.0
"""All turns of a window come within this time after its claim: LEASE outlasts it and the last send's deadline."""


class Result(StrEnum):
    SENT = "sent"
    REFUSED = "refused"
    """The broker said no; nothing was sent."""
    UNKNOWN = "unknown"
    """It may or may not have been sent. The letter stays REDRIVING until its lease has run out."""
    NOT_CLAIMED = "not claimed"
    """Its status does not allow it; nothing was sent."""
    NOT_FOUND = "not found"
    NOT_TRIED = "not tried"
    """Store or broker went away before its turn, or before the store could say why it gave no claim; nothing was
    sent.
    """


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one letter."""

    letter_id: str
    result: Result
    status: Status | None = None
    """The status that stood in the way, for NOT_CLAIMED."""
    redrive_id: str | None = None
    note: str = ""


class Redriver:
    """Sends named letters back, each at most once per call."""

    def __init__(
        self,
        *,
        store: DeadLetterStore,
        transport: Transport,
        actor: Actor,
        to_origin: bool = False,
        spans: Spans | None = None,
    ) -> None:
        """`to_origin`: to the exchange the producer sent to, and so to every queue bound there. UsageError if the
        broker has none. `spans`: who follows what is sent, if anybody does.
        """
        self._store = store
        self._transport = transport
        self._actor = actor
        follow = None if spans is None else partial(spans.redrive, stamped=True)
        self._send = sender(transport, to_origin=to_origin, follow=follow)

    async def redrive(
        self,
        letter_ids: Sequence[str],
        *,
        pace: Pace,
        on_progress: Callable[[int], None] | None = None,
        begun: bool = False,
    ) -> list[Outcome]:
        """One outcome per letter, in the given order. Raises Unreachable only if the very first claim cannot be
        made; after that, whatever goes away, what is known is told. `begun`: somebody else had them in hand and
        may have sent them.
        """
        wanted = list(dict.fromkeys(letter_ids))
        key = await self._store.signing_key()
        outcomes: list[Outcome] = []
        size = pace.window(WINDOW, within=_WINDOW_SECONDS)
        for start in range(0, len(wanted), size):
            window = wanted[start : start + size]
            await pace.upcoming()
            try:
                outcomes += await self._window(window, key, pace, begun=begun)
            except Unreachable as away:
                if not outcomes:
                    raise
                return outcomes + _not_tried(wanted[start:], str(away))
            if on_progress is not None:
                on_progress(len(window))
            if (why := _lost_contact(outcomes[start:])) is not None:
                return outcomes + _not_tried(wanted[start + size :], why)
        return outcomes

    async def send_begun(
        self,
        take: Callable[[int], Awaitable[list[Claim]]],
        *,
        pace: Pace,
        at_most: int | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[Outcome]:
        """Sends what `take` gives, so many at a time, until it gives none or `at_most` are sent: claims of others,
        taken over.
        """
        key = await self._store.signing_key()
        size = pace.window(WINDOW, within=_WINDOW_SECONDS)
        outcomes: list[Outcome] = []
        while claims := await take(size if at_most is None else min(size, at_most - len(outcomes))):
            window = await self._send_all(claims, key, pace, begun=True)
            outcomes += window
            if on_progress is not None:
                on_progress(len(window))
            if _lost_contact(window) is not None or len(outcomes) == at_most:
                break
            await pace.upcoming()
        return outcomes

    async def _window(self, letter_ids: list[str], key: bytes, pace: Pace, *, begun: bool) -> list[Outcome]:
        claims = await self._store.claim(letter_ids, owner=self._actor.name, lease=LEASE)
        faults.point("redrive.after_claim")
        outcomes = {outcome.letter_id: outcome for outcome in await self._send_all(claims, key, pace, begun=begun)}
        left = [letter_id for letter_id in letter_ids if letter_id not in outcomes]
        outcomes |= await self._explain(left)
        return [outcomes[letter_id] for letter_id in letter_ids]

    async def _send_all(self, claims: list[Claim], key: bytes, pace: Pace, *, begun: bool) -> list[Outcome]:
        sending = (self._send_and_mark(claim, key, pace, begun=begun) for claim in claims)
        ended = await asyncio.gather(*sending, return_exceptions=True)  # none goes on behind another's error
        outcomes = [each for each in ended if isinstance(each, Outcome)]
        errors = [each for each in ended if isinstance(each, BaseException)]
        if errors:
            raise errors[0]
        return outcomes

    async def _send_and_mark(self, claim: Claim, key: bytes, pace: Pace, *, begun: bool) -> Outcome:
        try:
            await pace.turn()
        except asyncio.CancelledError:
            if not begun:  # interrupted before its turn: nothing was published (T16)
                await self._store.settle(claim, Transition.UNCLAIM, by=self._because("interrupted"))
            raise
        try:
            async with asyncio.timeout(SEND_DEADLINE):
                await self._send(redriven(claim, key), queue=claim.target)
        except PublishRefused as refusal:
            if begun:  # whoever had it before may have had a better answer
                return _outcome(claim, Result.REFUSED, f"{refusal}; it may have been sent before")
            return await self._refused(claim, refusal)
        except (Unreachable, TimeoutError) as cut:  # T9: wait for T6
            return _outcome(claim, Result.UNKNOWN, str(cut) or f"no answer within {SEND_DEADLINE:g} s")
        faults.point("redrive.after_send")
        return await self._mark(claim)

    async def _mark(self, claim: Claim) -> Outcome:
        try:
            # False: confirmed, come back or taken over in the meantime. Sent it was in any case.
            await self._store.settle(claim, Transition.SENT, by=self._actor)
        except Unreachable as away:
            return _outcome(claim, Result.UNKNOWN, f"sent, but not marked: {away}")
        faults.point("redrive.after_mark")
        return _outcome(claim, Result.SENT)

    async def _refused(self, claim: Claim, refusal: PublishRefused) -> Outcome:
        # Only a lasting refusal counts towards quarantine (T8); "not now" gives the claim back (T16).
        outcome = Transition.REFUSED if refusal.permanent else Transition.UNCLAIM
        try:
            await self._store.settle(claim, outcome, by=self._because(str(refusal)))
        except Unreachable as away:
            return _outcome(claim, Result.REFUSED, f"{refusal}; not noted in the store: {away}")
        return _outcome(claim, Result.REFUSED, str(refusal))

    async def _explain(self, letter_ids: list[str]) -> dict[str, Outcome]:
        if not letter_ids:
            return {}
        query = LetterQuery(ids=tuple(letter_ids), limit=len(letter_ids))
        try:
            found = {letter.id: letter for letter in await self._store.find(query)}
        except Unreachable as away:  # others of this window were sent: that has to be told all the same
            why = f"not claimed, and the store went away before it said why: {away}"
            return {outcome.letter_id: outcome for outcome in _not_tried(letter_ids, why)}
        return {letter_id: _unclaimed(letter_id, found.get(letter_id)) for letter_id in letter_ids}

    def _because(self, reason: str) -> Actor:
        return Actor(self._actor.name, reason)


def sender(
    transport: Transport, *, to_origin: bool, follow: Follow | None = None
) -> Callable[..., Awaitable[None]]:
    """How letters go back: to the queue that is named, or to the exchange that each one's producer sent to."""
    send = _sender(transport, to_origin=to_origin)
    if follow is None:
        return send

    async def followed(message: Message, *, queue: str) -> None:
        with told(follow(message, queue)):
            await send(message, queue=queue)

    return followed


def _sender(transport: Transport, *, to_origin: bool) -> Callable[..., Awaitable[None]]:
    if not to_origin:
        return transport.send
    if not isinstance(transport, OriginSending):
        raise UsageError("this broker has no exchanges", remedy="send the letters back to their queue")
    origins: OriginSending = transport

    async def send(message: Message, *, queue: str) -> None:  # noqa: ARG001  the exchange says which queues
        await origins.send_to_origin(message)

    return send


def redriven(claim: Claim, key: bytes) -> Message:
    """What is sent: the same id and bytes, as if it had never failed, with a ticket that only we can write.
    PublishRefused if there is nothing that could be sent.
    """
    if claim.unreadable is not None:
        raise PublishRefused(f"nothing was sent: {claim.unreadable.explained}", permanent=True)
    return claim.message.with_reset(headers=stamp(claim.message.headers, claim.ticket, key))


def _outcome(claim: Claim, result: Result, note: str = "") -> Outcome:
    return Outcome(letter_id=claim.letter_id, result=result, redrive_id=claim.redrive_id, note=note)


def _unclaimed(letter_id: str, letter: DeadLetter | None) -> Outcome:
    if letter is None or letter.unreadable is None or letter.status is not Status.PENDING:
        return unclaimed(letter_id, None if letter is None else letter.status)
    why = f"its content cannot be read: {letter.unreadable.explained}"
    return Outcome(letter_id=letter_id, result=Result.NOT_CLAIMED, status=letter.status, note=why)


def unclaimed(letter_id: str, status: Status | None) -> Outcome:
    """Why a letter in that status (None: there is none) cannot be sent, and what to do about it."""
    if status is None:
        return Outcome(letter_id=letter_id, result=Result.NOT_FOUND, note="no such letter")
    return Outcome(letter_id=letter_id, result=Result.NOT_CLAIMED, status=status, note=_REMEDIES[status])


_REMEDIES = {
    Status.PENDING: "somebody else redrove it at the same moment and it came back: look at it again",
    Status.REDRIVING: "it is being sent right now: wait for it, or try again in "
    f"{LEASE + SEND_DEADLINE:g} s if that process died",
    Status.REDRIVEN: "it was sent and nobody has confirmed it yet: wait for it, or resolve and restore it first",
    Status.RESOLVED: "restore it first if it has to be sent again",
    Status.DISCARDED: "restore it first",
    Status.QUARANTINED: "look at it, then release it first",
}


def _lost_contact(window: list[Outcome]) -> str | None:
    """Why it is no use to go on: some sends had no answer and none had a good one."""
    if any(outcome.result is Result.SENT for outcome in window):
        return None
    return next((outcome.note for outcome in window if outcome.result is Result.UNKNOWN), None)


def _not_tried(letter_ids: list[str], why: str) -> list[Outcome]:
    return [Outcome(letter_id=each, result=Result.NOT_TRIED, note=why) for each in letter_ids]
