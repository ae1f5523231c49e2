"""Which denials are written down: each kind once a minute, so that whoever is denied cannot fill the ledger."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redrive.clock import Clock

_ONCE_IN = 60.0
_MOST = 10_000


class Denials:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        """When each was written down last, the longest ago first."""

    def is_due(self, who: str, token: str, permission: str) -> bool:
        """Whether this one is to be written down, which it then is."""
        now, key = self._clock.monotonic(), (who, token, permission)
        last = self._told.get(key)
        if last is not None and now - last < _ONCE_IN:
            return False
        self._told[key] = now
        self._told.move_to_end(key)
        if len(self._told) > _MOST:
            self._told.popitem(last=False)
        return True
