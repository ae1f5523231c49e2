"""The command line on a PostgreSQL, for tests that run on both stores."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from redrive.dead_letter import Actor, Status, Transition
from redrive.stores import open_store
from redrive.testing.clock import ManualClock
from support.dead_letters import dead
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.stores import DeadLetterStore

_MADE_BY = {
    Status.RESOLVED: Transition.RESOLVE,
    Status.DISCARDED: Transition.DISCARD,
    Status.QUARANTINED: Transition.QUARANTINE,
}


class ServerDesk(Desk):
    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._url = url
        (folder / "redrive.toml").write_text(f'[store]\nurl = "{url}"\n')

    def store(self, **options: Any) -> DeadLetterStore:
        return open_store(self._url, **options)


def settled(
    desk: Desk, number: int, status: Status = Status.RESOLVED, *, days: float = 100, queue: str = "orders"
) -> list[str]:
    """The ids of so many letters that came into that status so long ago."""
    return asyncio.run(_settled(desk, number, status, timedelta(days=days), queue))


async def _settled(desk: Desk, number: int, status: Status, age: timedelta, queue: str) -> list[str]:
    store = desk.store(clock=ManualClock(datetime.now(UTC) - age))
    try:
        ids = [(await store.record(dead(age=age, queue=queue)))[0] for _ in range(number)]
        if status is Status.REDRIVING:
            await store.claim(ids, owner="engine", lease=60.0)
        elif status is not Status.PENDING:
            assert await store.change(ids, _MADE_BY[status], by=Actor("ann", "test")) == {}
        return ids
    finally:
        await store.close()
