"""The desk's part about the broker's queues: see `redrive.actions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from redrive.access import Permission, fits
from redrive.standing import Standing
from redrive.transports.inspection import QueueFigures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.access import Scope
    from redrive.transports import Transport
    from redrive.transports.inspection import Inspector


class QueueOverview(QueueFigures, frozen=True, kw_only=True):
    """A queue of the broker. null: the broker does not tell."""

    letters: int = 0
    """Open letters of the queue: PENDING and QUARANTINED."""


class QueueActions(Standing):
    _transport: Transport
    _inspector: Inspector | None

    async def queues(self, named: Sequence[str] = ()) -> tuple[list[QueueOverview], str]:
        """These and what belongs to them, or all: by name, and why these may not be all there is to tell. Of a
        queue with letters that the broker does not tell of, the letters are told.
        """
        scope = await self._may(Permission.READ)
        letters = (await self._store.statistics(within=scope)).by_queue
        told, incomplete = [], "this process cannot look into the broker"
        if self._inspector is not None:
            figures = await self._inspector.figures(named, known=sorted(letters))
            told, incomplete = (
                [each for each in figures.queues if self._is_seen(each.name, scope)],
                figures.incomplete,
            )
        found = {each.name: QueueOverview(**asdict(each), letters=letters.get(each.name, 0)) for each in told}
        missing = {name: QueueOverview(name=name, letters=count) for name, count in letters.items()}
        missing = {name: each for name, each in missing.items() if not named or name in named}
        return [each for _, each in sorted((missing | found).items())], incomplete

    def _is_seen(self, name: str, scope: Scope) -> bool:
        """Its own name, or that of the queue beside which it lies, is within the scope."""
        if scope is None:
            return True
        names = self._transport.names
        homes = (name, names.home_of_dead(name), names.home_of_retry(name))
        return any(fits(home, each) for home in homes if home is not None for each in scope)
