"""The seam to the ledger: what a store writes down beside its changes, and gives back to be read and verified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.dead_letter import Actor
    from redrive.ledger import Deed, LedgerEntry, LedgerPage, LedgerQuery


class LedgerStore(Protocol):
    """A store that was opened with a key (`ledger_key`) writes one row for each call by which a person or a rule
    changed something, in the transaction of the change. What changed nothing writes none, and so does a repeated
    call. What an engine does letter by letter is in the letters' histories alone. Without a key there are no rows.
    """

    async def note(self, deed: Deed, *, by: Actor, at: datetime | None = None) -> None:
        """A row about what changes nothing in the store: a denial, a reveal, an export, a sign-in. Durable when it
        returns. Safe to repeat with the same `at`: a row of the same moment that says the same is the same one.
        None: now.
        """
        ...

    async def ledger(self, query: LedgerQuery) -> list[LedgerEntry]:
        """One page, as far as its rows can be read."""
        ...

    async def ledger_page(self, after: int, limit: int) -> LedgerPage:
        """The rows behind that number as they are stored, and the head of the same moment, to be verified."""
        ...
