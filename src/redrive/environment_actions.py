"""The desk's part about the environment: production is not staging, and a store belongs to one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.access import Permission
from redrive.standing import Standing

if TYPE_CHECKING:
    from redrive.stores import RunStore

_PRODUCTION = frozenset({"production", "prod", "live"})


def is_production(environment: str) -> bool:
    return environment.strip().lower() in _PRODUCTION


class EnvironmentActions(Standing):
    _runs: RunStore

    async def environment(self) -> str:
        """Which one the store belongs to, for everybody who is known here; empty: none yet."""
        return await self._runs.environment()

    async def rename_environment(self, environment: str, reason: str) -> str:
        """What it was before. Processes whose settings say another one are refused when they open it next."""
        await self._may_everywhere(Permission.ADMINISTER)
        return await self._runs.rename_environment(environment.strip(), by=self._because(reason))
