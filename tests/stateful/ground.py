"""Where a machine's steps are made: a store, opened twice, a clock that stands still, and what the store holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from redrive.stores import open_store
from redrive.stores.schema import compatibility, counter_deltas, metadata
from redrive.stores.sql import SqlStore
from redrive.stores.sql_counters import fold
from redrive.testing.clock import ManualClock
from redrive.testing.letters import NOON

T = TypeVar("T")

LETTERS = "SELECT id, status, generation, revision, fence, redrive_id, refusals, deliveries, queue FROM letters"
CLAIMS = "SELECT letter_id, redrive_id, fence, owner, run_id, target FROM claims"
REDRIVES = (
    "SELECT redrive_id, letter_id, generation, revision, run_id, sent_at IS NOT NULL, outcome, returned_as"
    " FROM redrives"
)
RUNS = "SELECT id, status, total, taken, stage, exhausted FROM runs"
LINES = "SELECT id, letter_id, what, before, after FROM audit WHERE id > {} ORDER BY id"
COUNTED = "SELECT group_id, status, count(*) FROM letters GROUP BY group_id, status"
COUNTERS = (
    "SELECT group_id, status, letters FROM counter_deltas"
    " UNION ALL SELECT group_id, status, letters FROM totals JOIN facets ON facets.id = facet_id"
)


class Shown(NamedTuple):
    """Rows as they are in the database."""

    letters: list[tuple[Any, ...]]
    claims: list[tuple[Any, ...]]
    redrives: list[tuple[Any, ...]]
    runs: list[tuple[Any, ...]]
    lines: list[tuple[Any, ...]]
    counted: Counter[tuple[str, str]]
    """Letters by group and status, counted one by one."""
    counters: Counter[tuple[str, str]]
    """The same, as it is kept."""


@dataclass
class Ground:
    url: str

    def __post_init__(self) -> None:
        self.clock = ManualClock(NOON)
        self.steps = 0
        self.told: Counter[str] = Counter()
        """How often the store gave which answer: a machine that is never refused anything shows little."""
        self._last_line = 0
        self._loop = asyncio.new_event_loop()
        self.engines = self.run(self._opened())

    async def _opened(self) -> list[SqlStore]:
        return [open_store(self.url, clock=self.clock) for _ in range(2)]  # type: ignore[misc]  # both are on SQL

    @property
    def store(self) -> SqlStore:
        return self.engines[0]

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(step)

    def close(self) -> None:
        for store in self.engines:
            self.run(store.close())
        self.run(self._loop.shutdown_default_executor())
        self._loop.close()

    def empty(self) -> None:
        """As good as new, and cheaper. The counters last: deleting letters counts too."""
        names = [table.name for table in reversed(metadata.sorted_tables) if table is not compatibility]
        names.sort(key=counter_deltas.name.__eq__)

        def unit(connection: Connection) -> None:
            for name in names:
                connection.exec_driver_sql(f'DELETE FROM "{name}"')  # noqa: S608  names of ours

        self.run(self.store._write(unit))
        self._last_line = 0

    def fold(self) -> None:
        self.run(self.store._write(fold))

    def look(self) -> Shown:
        def unit(connection: Connection) -> Shown:
            def rows(statement: str) -> list[tuple[Any, ...]]:
                return [tuple(row) for row in connection.exec_driver_sql(statement)]

            lines, counted = rows(LINES.format(self._last_line)), rows(COUNTED)
            story = (rows(LETTERS), rows(CLAIMS), rows(REDRIVES), rows(RUNS), lines)
            return Shown(*story, counted=_added_up(counted), counters=_added_up(rows(COUNTERS)))

        shown = self.run(self.store._read(unit))
        self._last_line = shown.lines[-1][0] if shown.lines else self._last_line
        return shown


def _added_up(rows: list[tuple[Any, ...]]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for group, status, number in rows:
        found[group, status] += number
    return +found if min(found.values(), default=0) >= 0 else found
