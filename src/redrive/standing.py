"""Who stands at the desk, and what they may do there: see `redrive.actions`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from redrive.access import Permission, common, fits
from redrive.dead_letter import Actor
from redrive.errors import Denied, Unreachable, UsageError
from redrive.ledger import DENIED, Deed, Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.access import Identity, Scope
    from redrive.dead_letter import DeadLetter
    from redrive.denials import Denials
    from redrive.letter_query import LetterQuery
    from redrive.privacy.maskers import Maskers
    from redrive.stores import DeadLetterStore, RunStore


_LONG = 64 * 1024


class Standing:
    """Every action begins by asking whether it is allowed, and where. What lies outside is not there."""

    _store: DeadLetterStore
    _runs: RunStore
    _who: Identity
    _denials: Denials
    _masks: Maskers

    @property
    def who(self) -> Identity:
        return self._who

    async def require(self, permission: Permission) -> None:
        """Denied unless it is allowed for some queue at least."""
        await self._may(permission)

    async def _may(self, permission: Permission) -> Scope:
        """The queues that it is allowed for; None: all of them. Denied where there are none."""
        queues = self._who.scope_of(permission)
        if queues == ():
            raise await self._denied(permission)
        return queues

    async def _may_everywhere(self, permission: Permission) -> None:
        """For what cannot be done to some queues alone."""
        if await self._may(permission) is not None:
            raise await self._denied(permission, "all queues")

    async def _may_send_to(self, queue: str) -> None:
        scope = await self._may(Permission.REDRIVE)
        if scope is not None and not any(fits(queue, each) for each in scope):
            raise await self._denied(Permission.REDRIVE, f"queue {queue}")

    async def _denied(self, permission: Permission, where: str = "") -> Denied:
        """It is written down before it is told."""
        if self._denials.is_due(self._who.name, self._who.token, permission):
            deed = Deed(
                what=f"denied {permission}", subject=Subject(DENIED, (where or "everything",)), allowed=False
            )
            with suppress(Unreachable):  # nothing is allowed because the store is away
                await self._runs.note(deed, by=self._by())
        return Denied(self._who.name, permission, where=where)

    async def _seen(self, query: LetterQuery, permission: Permission = Permission.READ) -> LetterQuery:
        """The same question, about what the permission holds for."""
        within = common(query.within, await self._may(permission))
        return query if within == query.within else msgspec.structs.replace(query, within=within)

    async def _reached(self, letter_ids: Sequence[str], permission: Permission) -> set[str]:
        """Which of these letters it is allowed for. The others are not there, whether they are or not."""
        scope = await self._may(permission)
        return set(letter_ids) if scope is None else await self._store.inside(letter_ids, scope)

    async def _shown(self, letter: DeadLetter) -> DeadLetter:
        """Masked, and where that may take long, beside everything else that goes on."""
        messages = (letter.message, *(each.message for each in letter.revisions))
        if sum(len(each.body or b"") for each in messages) < _LONG:
            return self._masked(letter)
        return await asyncio.to_thread(self._masked, letter)

    def _masked(self, letter: DeadLetter) -> DeadLetter:
        return self._masks.for_queue(letter.queue).letter(letter)

    def _by(self, reason: str = "") -> Actor:
        return Actor(self._who.name, reason.strip(), request_id=self._who.request_id, token=self._who.token)

    def _because(self, reason: str) -> Actor:
        if not reason.strip():
            raise UsageError("a reason is needed", remedy="say why with --reason: the history keeps it")
        return self._by(reason)
