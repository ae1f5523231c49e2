"""The seam to erasures: who asked for one, who approved it, and the letters that it takes away for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from redrive.dead_letter import Actor, Status
    from redrive.erasure import Erasure


class ErasureStore(Protocol):
    """Every change is a row of the ledger in its own transaction."""

    async def erasure_key(self) -> bytes:
        """What whom it is about is hashed with: made once per store."""
        ...

    async def request_erasure(
        self, subject: frozenset[str], *, found: int, expires_at: datetime, by: Actor
    ) -> Erasure: ...

    async def erasure(self, erasure_id: str) -> Erasure | None: ...

    async def erasures(self, *, limit: int = 50) -> list[Erasure]:
        """The newest first."""
        ...

    async def approve_erasure(self, erasure_id: str, *, by: Actor) -> Erasure:
        """Refused unless it is REQUESTED, not too old, and of somebody else; one that is APPROVED is given back as
        it is, for whoever goes on with it.
        """
        ...

    async def reject_erasure(self, erasure_id: str, *, by: Actor) -> Erasure:
        """Refused unless it is REQUESTED."""
        ...

    async def erase(self, erasure_id: str, letter_ids: Sequence[str], *, by: Actor) -> Mapping[str, Status]:
        """The letters are gone with everything of them, whatever their status, but one that is being sent
        (REDRIVING). Of their histories the lines stay without what people wrote, and one more that is the
        tombstone; whoever imports such a letter again is not heard. One that is not here, but in an archive, gets
        its tombstone too. Refused unless the erasure is APPROVED. Gives the ids that were not removed, with their
        status.
        """
        ...

    async def erased(self, letter_ids: Sequence[str]) -> AbstractSet[str]:
        """Those of them that have a tombstone."""
        ...

    async def end_erasure(self, erasure_id: str, *, by: Actor) -> Erasure:
        """DONE, if it was APPROVED. Safe to repeat."""
        ...
