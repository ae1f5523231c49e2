"""What the settings say about checkpoints of the ledger, for `redrive serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive import ledger_checking
from redrive.ledger_checkpoints import CheckpointFile
from redrive.wiring import ledger_key

if TYPE_CHECKING:
    from redrive.clock import Clock
    from redrive.settings import Settings
    from redrive.stores.ledger_store import LedgerStore


async def keep_checkpoints(settings: Settings, store: LedgerStore, clock: Clock) -> None:
    """Signs one whenever it is due, until it is cancelled. Returns at once if the settings name no file."""
    path = settings.audit.checkpoints
    if path is not None:
        await ledger_checking.keep_checkpoints(store, CheckpointFile(path, ledger_key(settings)), clock)
