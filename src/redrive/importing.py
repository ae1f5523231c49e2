"""Letters from elsewhere come into the store, in batches that memory and the store can bear."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import msgspec

from redrive.dead_letter import Actor, DeadLetter, Recorded

if TYPE_CHECKING:
    from redrive.dead_letter import Entry
    from redrive.stores import DeadLetterStore
    from redrive.stores.erasure_store import ErasureStore

_BATCH = 100
_BATCH_BYTES = 4 * 1024 * 1024


class Imported(msgspec.Struct, frozen=True):
    new: int = 0
    known: int = 0
    """Here already, by their id or their identity: nothing of them was changed."""
    erased: int = 0
    """Not taken in again, for somebody's data was erased with them."""


class Importer:
    """Whole letters keep their id, status and history; entries are recorded as a consumer would (T1)."""

    def __init__(self, *, store: DeadLetterStore, actor: str) -> None:
        self._store = store
        self._actor = actor
        self._waiting: list[Entry | DeadLetter] = []
        self._bytes = 0
        self._source = ""
        self.done = Imported()
        """Told even if an error ends it: what is in the store by now."""

    async def add(self, letter: Entry | DeadLetter, *, source: str) -> None:
        """Takes it in, or keeps it until there are more of `source`."""
        if self._waiting and (source != self._source or self._is_full):
            await self.finish()
        self._source = source
        self._waiting.append(letter)
        self._bytes += _size(letter)

    async def finish(self) -> None:
        """What waits is in the store when it returns."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        whole = [each for each in waiting if isinstance(each, DeadLetter)]
        entries = [each for each in waiting if not isinstance(each, DeadLetter)]
        if whole:
            by = Actor(self._actor, f"imported from {self._source}")
            new = await self._store.restore_whole(whole, by=by)
            missed = [letter.id for letter in whole if letter.id not in new]
            erased = len(await cast("ErasureStore", self._store).erased(missed)) if missed else 0
            self._count(len(new), len(whole), erased)
        if entries:
            recorded = await asyncio.gather(*(self._store.record(each) for each in entries))
            self._count(sum(what is Recorded.NEW for _, what in recorded), len(entries))

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) >= _BATCH or self._bytes >= _BATCH_BYTES

    def _count(self, new: int, of: int, erased: int = 0) -> None:
        done = self.done
        self.done = Imported(done.new + new, done.known + of - new - erased, done.erased + erased)


def _size(letter: Entry | DeadLetter) -> int:
    messages = [letter.message]
    if isinstance(letter, DeadLetter):
        messages += [revision.message for revision in letter.revisions]
    return sum(len(each.body or b"") + len(each.properties or b"") for each in messages)
