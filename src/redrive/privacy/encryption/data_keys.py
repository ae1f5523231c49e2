"""Seam: where wrapped data keys are kept. One per queue and day, and a further one when it is used up."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Protocol

import msgspec

from redrive.privacy.encryption.envelope import MOST_USES, joined
from redrive.privacy.encryption.key_source import Wrapped

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_CONTEXT = b"redrive data key 1"


class WrappedKey(msgspec.Struct, frozen=True):
    """A data key as it is kept."""

    id: bytes
    queue: str
    day: date
    wrapped: Wrapped
    turn: int = 0
    """Counts the data keys of one queue and day, from 0."""

    @property
    def context(self) -> bytes:
        """What the wrapping is bound to: it unwraps as this data key of this queue and day alone."""
        queue = self.queue.encode("utf-8", "surrogatepass")
        return joined(_CONTEXT, self.id, queue, self.day.isoformat().encode(), b"%d" % self.turn)

    def rewrapped(self, wrapped: Wrapped) -> WrappedKey:
        return msgspec.structs.replace(self, wrapped=wrapped)


class DataKeys(Protocol):
    """Each method is one transaction, durable when it returns, and safe to repeat."""

    async def find(self, ids: Collection[bytes]) -> Mapping[bytes, WrappedKey]:
        """Those that are there. One that is not there any more was shredded."""

    async def current(self, queue: str, day: date) -> WrappedKey | None:
        """The one of the highest turn."""

    async def add(self, key: WrappedKey) -> WrappedKey:
        """The one of that queue, day and turn: this one, or another that somebody else has added before."""

    async def reserve(self, key_id: bytes, uses: int) -> bool:
        """Counts so many uses of the key, for all processes together. False, and nothing is counted, if there
        would be more than MOST_USES or the key is not there any more.
        """

    async def wrapped_by_others(self, kek_id: str, *, after: bytes, limit: int) -> Sequence[WrappedKey]:
        """Those that another KEK has wrapped, by their ids, behind that id."""

    async def rewrap(self, old: WrappedKey, new: WrappedKey) -> bool:
        """False, and nothing is changed, unless the key is there and wrapped as `old` says."""

    async def shred(self, queue: str | None, first: date, last: date) -> Sequence[bytes]:
        """Deletes those of the queue (None: of all) and of these days, both included; their ids."""


class MemoryDataKeys:
    """For tests, and for those who need no more than a process."""

    def __init__(self) -> None:
        self._kept: dict[bytes, WrappedKey] = {}
        self._uses: dict[bytes, int] = {}

    async def find(self, ids: Collection[bytes]) -> Mapping[bytes, WrappedKey]:
        return {each: self._kept[each] for each in ids if each in self._kept}

    async def current(self, queue: str, day: date) -> WrappedKey | None:
        own = [key for key in self._kept.values() if (key.queue, key.day) == (queue, day)]
        return max(own, key=lambda key: key.turn, default=None)

    async def add(self, key: WrappedKey) -> WrappedKey:
        for kept in self._kept.values():
            if (kept.queue, kept.day, kept.turn) == (key.queue, key.day, key.turn):
                return kept
        self._kept[key.id], self._uses[key.id] = key, 0
        return key

    async def reserve(self, key_id: bytes, uses: int) -> bool:
        if key_id not in self._kept or self._uses[key_id] + uses > MOST_USES:
            return False
        self._uses[key_id] += uses
        return True

    async def wrapped_by_others(self, kek_id: str, *, after: bytes, limit: int) -> Sequence[WrappedKey]:
        behind = sorted(key_id for key_id in self._kept if key_id > after)
        found = [self._kept[key_id] for key_id in behind]
        return [key for key in found if key.wrapped.kek_id != kek_id][:limit]

    async def rewrap(self, old: WrappedKey, new: WrappedKey) -> bool:
        if self._kept.get(old.id) != old:
            return False
        self._kept[old.id] = new
        return True

    async def shred(self, queue: str | None, first: date, last: date) -> Sequence[bytes]:
        gone = [key.id for key in self._kept.values() if queue in (None, key.queue) and first <= key.day <= last]
        for key_id in gone:
            del self._kept[key_id], self._uses[key_id]
        return gone
