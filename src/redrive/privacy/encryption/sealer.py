"""Data keys that seal the values of letters, kept by a `DataKeys`.

1. `key_for` gives a data key that is durable and of which some uses are reserved. Only then is anything sealed:
   what was sealed with a key that a crash has undone could never be opened.
2. What is sealed with a key that somebody has just shredded is lost. So the transaction that keeps a sealed value
   makes sure that the data key is still there, and takes another if it is not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from redrive.privacy.encryption.envelope import MOST_USES

if TYPE_CHECKING:
    from datetime import date

    from redrive.privacy.encryption.data_keys import DataKeys
    from redrive.privacy.encryption.envelope import DataKey
    from redrive.privacy.encryption.key_ring import KeyRing

RESERVED = 2**16
"""Uses that a process reserves at once: a write for so many values, and few are lost when it ends."""
_TRIES = 8


class Sealer:
    """One per process and store."""

    def __init__(self, keys: DataKeys, ring: KeyRing) -> None:
        self._keys = keys
        self.ring = ring
        self._getting = asyncio.Lock()

    async def key_for(self, queue: str, day: date, *, uses: int = 1) -> DataKey:
        """Durable, and it may seal so many values. Usually at once, without asking anybody."""
        found = self.ring.sealing_key(queue, day, uses=uses)
        if found is not None:
            return found
        async with self._getting:  # those who wait together need one key, not one each
            return self.ring.sealing_key(queue, day, uses=uses) or await self._get(queue, day, uses)

    async def _get(self, queue: str, day: date, uses: int) -> DataKey:
        wanted = max(uses, RESERVED)
        if wanted > MOST_USES:
            raise ValueError("no data key seals so many values")
        turn = 0
        for _ in range(_TRIES):
            kept = await self._keys.current(queue, day)
            if kept is None or kept.turn < turn:
                made = await asyncio.to_thread(self.ring.new_key, queue, day, turn=turn)
                kept = await self._keys.add(made)
            if await self._keys.reserve(kept.id, wanted):
                return await asyncio.to_thread(self.ring.learn, kept, uses=wanted)
            self.ring.forget([kept.id])
            turn = kept.turn + 1  # used up; or shredded just now, and then the turn does no harm
        raise RuntimeError(f"no data key for {queue!r} could be had in {_TRIES} tries")
