"""The desk's part about erasures: what is kept about a person goes, if one asks for it and another agrees.

1. Somebody asks: the value that the person is known by is looked for, and kept as keyed hashes alone.
2. Somebody else agrees, and gives the same value: durable before anything is erased. From before that the folder
   of archives is this process's alone, so that no retention puts a letter in there behind its back.
   Crash here or later: whoever approves it again goes on.
3. Letters are looked for again, for some may have come meanwhile, in the store and in archives, and erased in the
   store, a few per transaction; those in archives get their tombstones.
4. Archives that hold some are written anew without them, and their copies replaced (archive_erasing.py).
5. Steps 3 and 4 again, until a look finds nothing.
6. The erasure is ended, unless something was left: that is named, and whoever approves it again goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, nullcontext
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from redrive import faults
from redrive.access import Permission
from redrive.dead_letter import DeadLetter, Status
from redrive.erasure import Erasure, ErasureStatus, Person
from redrive.errors import NotFound, Refused
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.search_terms import Filter
from redrive.standing import Standing
from redrive.upkeep.archive_erasing import ArchiveErasing, HeldInArchives, Left

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from redrive.clock import Clock
    from redrive.stores.erasure_store import ErasureStore
    from redrive.upkeep.archive import Archive

EXPIRES_AFTER = 7 * 86400.0
_AT_ONCE = 100


class AboutPerson(msgspec.Struct, frozen=True):
    letters: list[DeadLetter]
    """In the store, without their bodies."""
    archived: int = 0
    """In archives, and not in the store."""

    @property
    def number(self) -> int:
        return len(self.letters) + self.archived


class Erased(msgspec.Struct, frozen=True):
    erasure: Erasure
    left: Mapping[str, Status] = {}
    """Letters that are being sent just now: they can be erased when that is over."""
    unreached: Sequence[Left] = ()
    """Archives and copies that could not be searched or written."""

    @property
    def is_done(self) -> bool:
        return not self.left and not self.unreached


class _Round(NamedTuple):
    ends: bool
    """The look found nothing but what is being sent."""
    left: Mapping[str, Status]
    unreached: Sequence[Left]


class ErasureActions(Standing):
    _clock: Clock

    @cached_property
    def _erasing(self) -> ErasureStore:
        return cast("ErasureStore", self._runs)  # every driver of ours is one

    async def about(self, person: Person, archive: Archive | None) -> AboutPerson:
        """What holds the value, in the store and in archives. Refused while some cannot be searched yet."""
        letters = await self._letters_about(person)
        held = await self._held(person, archive)
        return AboutPerson(letters, len(held.ids - {letter.id for letter in letters}))

    async def _held(self, person: Person, archive: Archive | None) -> HeldInArchives:
        if archive is None:
            return HeldInArchives({}, ())
        return await asyncio.to_thread(self._in_archives(person, archive).look)

    def _in_archives(self, person: Person, archive: Archive) -> ArchiveErasing:
        return ArchiveErasing(archive, lambda letter: person.is_in(letter, self._masks))

    async def _letters_about(self, person: Person) -> list[DeadLetter]:
        await self._may_everywhere(Permission.PURGE)
        while await self._store.index():
            pass
        if waiting := await self._store.search_backlog():
            raise Refused(
                f"{waiting} letters are being indexed, and cannot be searched yet", remedy="try again in a moment"
            )
        found = {letter.id: letter async for page in self._pages(Filter((person.term,))) for letter in page}
        # The index has bodies and errors as they are now: not headers, keys, causes, nor what was before an edit.
        async for page in self._pages(Filter()):
            others = {letter.id: letter for letter in page if letter.id not in found}
            async with aclosing(self._store.whole(list(others))) as whole:
                found |= {each.id: others[each.id] async for each in whole if person.is_in(each, self._masks)}
        return list(found.values())

    async def request_erasure(self, person: Person, reason: str, archive: Archive | None = None) -> Erasure:
        """NotFound if there is nothing about that person, neither in the store nor in the archives."""
        by, found = self._because(reason), await self.about(person, archive)
        if not found.number:
            raise NotFound("no letter in the store or in its archives holds that value")
        subject = person.hashes(await self._erasing.erasure_key())
        expires_at = self._clock.now() + timedelta(seconds=EXPIRES_AFTER)
        return await self._erasing.request_erasure(subject, found=found.number, expires_at=expires_at, by=by)

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
        archive: Archive | None = None,
        on_progress: Callable[[int], None] = lambda _more: None,
    ) -> Erased:
        """Carries it out, in the store and in that folder of archives. Refused if it is about somebody else, if
        the same person has asked for it, or while letters are being archived.
        """
        erasure = await self.erasure(erasure_id)
        if not erasure.subject & person.hashes(await self._erasing.erasure_key()):
            raise Refused(f"erasure {erasure.id} is about another value", remedy="give the value it was asked for")
        if erasure.status is ErasureStatus.DONE:
            return Erased(erasure)
        with nullcontext() if archive is None else archive.alone():
            erasure = await self._erasing.approve_erasure(erasure.id, by=self._by(reason))
            faults.point("erasure.approved")
            while not (done := await self._erase_once(erasure.id, person, archive, on_progress)).ends:
                pass
        if done.left or done.unreached:
            return Erased(await self.erasure(erasure.id), done.left, done.unreached)
        return Erased(await self._erasing.end_erasure(erasure.id, by=self._by(f"erasure {erasure.id}")))

    async def _erase_once(
        self, erasure_id: str, person: Person, archive: Archive | None, on_progress: Callable[[int], None]
    ) -> _Round:
        """One look, and everything that it found is erased."""
        held = await self._held(person, archive)
        ids = list(dict.fromkeys((*(each.id for each in await self._letters_about(person)), *held.ids)))
        left: dict[str, Status] = {}
        by = self._by(f"erasure {erasure_id}")  # a tombstone tells for which, not what somebody wrote of whom
        for start in range(0, len(ids), _AT_ONCE):
            lot = ids[start : start + _AT_ONCE]
            left |= await self._erasing.erase(erasure_id, lot, by=by)
            faults.point("erasure.erased")
            on_progress(len(lot))
        unreached = list(held.left)
        if archive is not None:
            erasing = self._in_archives(person, archive)
            for path in held.files:
                await asyncio.to_thread(erasing.erase, path)
            unreached += await asyncio.to_thread(erasing.bring_copies_up_to_date)
        return _Round(not held.files and left.keys() == set(ids), left, unreached)

    async def reject_erasure(self, erasure_id: str, reason: str) -> Erasure:
        await self._may_everywhere(Permission.PURGE)
        return await self._erasing.reject_erasure(erasure_id, by=self._because(reason))

    async def _pages(self, where: Filter) -> AsyncIterator[list[DeadLetter]]:
        query = LetterQuery(where=where, limit=MAX_PAGE)
        while page := await self._store.find(query):
            yield page
            query = msgspec.structs.replace(query, after=Place.of(page[-1]))
