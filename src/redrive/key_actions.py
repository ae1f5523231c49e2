"""The desk's part about encryption: a new key takes over, days are shredded, letters are sealed anew."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, cast

from redrive.access import Permission
from redrive.letter_query import LetterQuery
from redrive.standing import Standing
from redrive.stores.key_store import whole_days

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from redrive.privacy.encryption.rotation import Rotated
    from redrive.stores.key_store import KeyStore


_BEFORE = timedelta(microseconds=1)


class KeyActions(Standing):
    @cached_property
    def _keys(self) -> KeyStore:
        return cast("KeyStore", self._runs)  # every driver of ours is one

    async def key_usage(self) -> Mapping[str, int]:
        """How many data keys each key wraps, by its id."""
        await self._may_everywhere(Permission.ADMINISTER)
        return await self._keys.key_usage()

    async def rotate_keys(self, reason: str = "", *, on_progress: Callable[[int], None] | None = None) -> Rotated:
        """The current key wraps every data key. What cannot be wrapped again is told."""
        await self._may_everywhere(Permission.ADMINISTER)
        return await self._keys.rewrap_keys(by=self._by(reason), on_progress=on_progress)

    async def count_of_days(self, queue: str | None, first: date, last: date) -> int:
        """Letters of the queue (None: of all) that were recorded on these days, in UTC."""
        await self._may_everywhere(Permission.ADMINISTER)
        begin, end = whole_days(first, last)
        these = LetterQuery(queue=queue, created_after=begin - _BEFORE, created_before=end)
        return (await self._store.count(these)).number

    async def shred(self, queue: str | None, first: date, last: date, reason: str) -> int:
        """How many data keys were destroyed. What those letters held is gone for good."""
        await self._may_everywhere(Permission.ADMINISTER)
        return await self._keys.shred(queue, first, last, by=self._because(reason))

    async def reseal(self, *, everything: bool = False, on_progress: Callable[[int], None] | None = None) -> int:
        """How many letters were sealed: those that were plain; with `everything` all, by new data keys."""
        await self._may_everywhere(Permission.ADMINISTER)
        former = frozenset(await self._keys.retire_keys()) if everything else frozenset()
        sealed, after = 0, ""
        while True:
            step = await self._keys.reseal(after, former=former)
            if step.after is None:
                return sealed
            sealed, after = sealed + step.sealed, step.after
            if on_progress is not None:
                on_progress(step.looked_at)
