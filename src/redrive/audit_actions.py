"""The desk's part about the ledger: reading it, verifying it, signing checkpoints of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.access import Permission
from redrive.ledger import LedgerQuery
from redrive.standing import Standing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from redrive.clock import Clock
    from redrive.ledger import LedgerEntry, LedgerKey
    from redrive.ledger_checking import Verified
    from redrive.ledger_checkpoints import Checkpoint
    from redrive.stores import RunStore

_PAGE = 500


class AuditActions(Standing):
    _runs: RunStore
    _clock: Clock

    async def ledger(self, query: LedgerQuery) -> list[LedgerEntry]:
        """One page, newest first. The next one is `before` its last row."""
        await self._may_everywhere(Permission.AUDIT)
        return await self._runs.ledger(query)

    async def whole_ledger(self, query: LedgerQuery | None = None) -> AsyncGenerator[LedgerEntry]:
        """Every row that the query selects, in their order from behind `after` on, whatever it says of `limit` and
        `before`.
        """
        await self._may_everywhere(Permission.AUDIT)
        wanted = query or LedgerQuery()
        page = msgspec.structs.replace(wanted, limit=_PAGE, before=None, after=wanted.after or 0)
        while found := await self._runs.ledger(page):
            for entry in found:
                yield entry
            page = msgspec.structs.replace(page, after=found[-1].seq)

    async def ledger_length(self) -> int:
        """About: others may write meanwhile."""
        await self._may_everywhere(Permission.AUDIT)
        newest = await self._runs.ledger(LedgerQuery(limit=1))
        return newest[0].seq if newest else 0

    async def verify_ledger(
        self,
        keys: Sequence[LedgerKey],
        checkpoints: Sequence[Path],
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> Verified:
        """Whether it is what was written, as far as these keys and checkpoints tell. Changes nothing."""
        from redrive.ledger_checking import verify  # noqa: PLC0415  only those who verify load what it needs

        await self._may_everywhere(Permission.AUDIT)
        return await verify(self._runs, keys, checkpoints, on_progress=on_progress)

    async def sign_checkpoint(self, key: LedgerKey, path: Path, *, anyway: bool = False) -> Checkpoint | None:
        """None if nothing happened since the last one. Refused if what happened is not as it was written."""
        from redrive.ledger_checking import sign  # noqa: PLC0415  as above
        from redrive.ledger_checkpoints import CheckpointFile  # noqa: PLC0415  as above

        await self._may_everywhere(Permission.AUDIT)
        return await sign(self._runs, CheckpointFile(path, key), self._clock, anyway=anyway)
