"""The seam to the encryption of a store: its data keys, and what they have sealed."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import date

    from redrive.dead_letter import Actor
    from redrive.privacy.encryption.rotation import Rotated


class Resealed(NamedTuple):
    """How far one step of a walk along all letters came."""

    after: str | None
    """The last letter that was looked at; None: there are no more."""
    looked_at: int = 0
    sealed: int = 0
    """Letters of which something was sealed anew."""


class KeyStore(Protocol):
    """A store that was opened with `encryption` seals and opens what letters hold. Without it, what is sealed
    cannot be read here, and all else goes on.
    """

    async def key_usage(self) -> Mapping[str, int]:
        """How many data keys of the store each key wraps, by the ids of those keys."""
        ...

    async def rewrap_keys(self, *, by: Actor, on_progress: Callable[[int], None] | None = None) -> Rotated:
        """Every data key is wrapped by the current key, while others read and write. Safe to repeat."""
        ...

    async def shred(self, queue: str | None, first: date, last: date, *, by: Actor) -> int:
        """Destroys the data keys of letters of that queue (None: of all) that were recorded on these days, both
        included and in UTC; how many. What they held can never be read again, is not sent and not found any more.
        """
        ...

    async def retire_keys(self) -> Collection[bytes]:
        """From now on every queue and day has another data key; the ids of those before."""
        ...

    async def reseal(self, after: str, *, former: Collection[bytes] = ()) -> Resealed:
        """Of the next letters behind `after`: what is plain, and what one of the `former` data keys has sealed, is
        sealed by the current one. What cannot be read stays as it is. Safe to repeat.
        """
        ...


def whole_days(first: date, last: date) -> tuple[datetime, datetime]:
    """From the beginning of the first to the end of the last, in UTC: the days that data keys are of."""
    return datetime.combine(first, time(), UTC), datetime.combine(last, time(), UTC) + timedelta(days=1)
