"""The desk's part about erasures: what is kept about a person goes, if one asks for it and another agrees.

1. Somebody asks: the value that the person is known by is looked for, and kept as keyed hashes alone.
2. Somebody else agrees, and gives the same value: durable before anything is erased.
   Crash here or later: whoever approves it again goes on.
3. Letters are looked for again, for some may have come meanwhile, and erased, a few per transaction.
4. The erasure is ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, cast

import msgspec

from redrive import faults
from redrive.access import Permission
from redrive.dead_letter import Status
from redrive.erasure import Erasure, ErasureStatus, Person
from redrive.errors import NotFound, Refused
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.search_terms import Field, FieldTerm, Filter, Op
from redrive.standing import Standing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from redrive.clock import Clock
    from redrive.dead_letter import DeadLetter
    from redrive.stores.erasure_store import ErasureStore

EXPIRES_AFTER = 7 * 86400.0
_AT_ONCE = 100
_EDITED = FieldTerm(field=Field.REVISION, op=Op.MORE, values=(0,))


class Erased(msgspec.Struct, frozen=True):
    erasure: Erasure
    left: Mapping[str, Status | None]
    """Letters that are being sent just now: they can be erased when that is over."""


class ErasureActions(Standing):
    _clock: Clock

    @cached_property
    def _erasing(self) -> ErasureStore:
        return cast("ErasureStore", self._runs)  # every driver of ours is one

    async def letters_about(self, person: Person) -> list[DeadLetter]:
        """Every letter that holds the value, without its body. Refused while some cannot be searched yet."""
        await self._may_everywhere(Permission.PURGE)
        while await self._store.index():
            pass
        if waiting := await self._store.search_backlog():
            raise Refused(
                f"{waiting} letters are being indexed, and cannot be searched yet", remedy="try again in a moment"
            )
        found = {letter.id: letter async for letter in self._pages(Filter((person.term,)))}
        # The index is over messages as they are now; an edit may have taken the value out.
        edited = {letter.id: letter async for letter in self._pages(Filter((_EDITED,))) if letter.id not in found}
        async with aclosing(self._store.whole(list(edited))) as whole:
            found |= {each.id: edited[each.id] async for each in whole if person.is_in(each, self._masks)}
        return list(found.values())

    async def request_erasure(self, person: Person, reason: str) -> Erasure:
        """NotFound if there is nothing about that person."""
        by, found = self._because(reason), await self.letters_about(person)
        if not found:
            raise NotFound("no letter in the store holds that value")
        subject = person.hashes(await self._erasing.erasure_key())
        expires_at = self._clock.now() + timedelta(seconds=EXPIRES_AFTER)
        return await self._erasing.request_erasure(subject, found=len(found), expires_at=expires_at, by=by)

    async def erasure(self, erasure_id: str) -> Erasure:
        await self._may_everywhere(Permission.PURGE)
        found = await self._erasing.erasure(erasure_id)
        if found is None:
            raise NotFound(f"no erasure {erasure_id}", remedy="`redrive erase list` shows the ids")
        return found

    async def erasures(self, *, limit: int = 50) -> list[Erasure]:
        await self._may_everywhere(Permission.PURGE)
        return await self._erasing.erasures(limit=limit)

    async def approve_erasure(
        self,
        erasure_id: str,
        person: Person,
        reason: str = "",
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> Erased:
        """Carries it out. Refused if it is about somebody else, or the same person has asked for it."""
        erasure = await self.erasure(erasure_id)
        if not erasure.subject & person.hashes(await self._erasing.erasure_key()):
            raise Refused(f"erasure {erasure.id} is about another value", remedy="give the value it was asked for")
        if erasure.status is ErasureStatus.DONE:
            return Erased(erasure, {})
        erasure = await self._erasing.approve_erasure(erasure.id, by=self._by(reason))
        faults.point("erasure.approved")
        left: dict[str, Status | None] = {}
        ids = [letter.id for letter in await self.letters_about(person)]
        # The tombstones tell why: the reason of whoever asked, who may not write of whom.
        by = self._by(f"erasure {erasure.id}")
        for start in range(0, len(ids), _AT_ONCE):
            lot = ids[start : start + _AT_ONCE]
            left |= await self._erasing.erase(erasure.id, lot, by=by)
            faults.point("erasure.erased")
            if on_progress is not None:
                on_progress(len(lot))
        under_way = {each: status for each, status in left.items() if status is not None}
        if under_way:
            return Erased(await self.erasure(erasure.id), under_way)
        return Erased(await self._erasing.end_erasure(erasure.id, by=by), {})

    async def reject_erasure(self, erasure_id: str, reason: str) -> Erasure:
        await self._may_everywhere(Permission.PURGE)
        return await self._erasing.reject_erasure(erasure_id, by=self._because(reason))

    async def _pages(self, where: Filter) -> AsyncIterator[DeadLetter]:
        query = LetterQuery(where=where, limit=MAX_PAGE)
        while page := await self._store.find(query):
            for letter in page:
                yield letter
            query = msgspec.structs.replace(query, after=Place.of(page[-1]))
