"""Seals what lies plain in an encrypted store, behind the work that goes on: letters from before encryption was
on, or of a process that does not know of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redrive.clock import Clock
    from redrive.stores.key_store import KeyStore

_REST = 3.0
_LONGEST_REST = 5.0


async def seal_behind(store: KeyStore, *, clock: Clock) -> int:
    """Along all letters once; how many were sealed. It rests for longer than each step took."""
    sealed, after = 0, ""
    while True:
        begun = clock.monotonic()
        step = await store.reseal(after)
        if step.after is None:
            return sealed
        sealed, after = sealed + step.sealed, step.after
        await clock.sleep(min(_LONGEST_REST, (clock.monotonic() - begun) * _REST))
