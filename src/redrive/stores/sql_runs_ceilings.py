"""Ceilings of queues: all runs that send to a queue keep to its ceiling together.

A queue has a row that says when it may get something more. Whoever takes letters for it locks the row and
reserves the time that they need, so what is sent within some seconds is never more than the ceiling allows. A run
that finds all time near enough taken asks for the next, and the others leave it that for a moment: none starves.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from redrive.stores.expressions import insert_into
from redrive.stores.schema import paced_queues

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.run import RunPlan

PATIENCE = timedelta(seconds=3)
"""How long time is kept for a run that asked: its engines look every second, unless they died."""


class Ceilings:
    """For one run that takes letters now. The rows are locked until the transaction ends."""

    def __init__(self, connection: Connection, run_id: str, plan: RunPlan, now: datetime) -> None:
        self._connection = connection
        self._run_id = run_id
        self._ceilings = plan.ceilings
        self._now = now
        self._rows = self._locked() if plan.ceilings else ()

    def _locked(self) -> Sequence[Row[Any]]:
        query = select(paced_queues).where(paced_queues.c.queue.in_(sorted(self._ceilings)))
        query = query.order_by(paced_queues.c.queue).with_for_update()  # everybody locks in this order
        found = self._connection.execute(query).all()
        if len(found) == len(self._ceilings):
            return found
        insert = insert_into(paced_queues, self._connection.dialect.name).on_conflict_do_nothing()
        rows = [{"queue": queue, "next_at": self._now} for queue in sorted(self._ceilings)]
        self._connection.execute(insert, rows)
        return self._connection.execute(query).all()

    @property
    def free_at(self) -> datetime:
        taken: list[datetime] = [row.next_at for row in self._rows]
        return max([self._now, *taken])

    @property
    def promised(self) -> bool:
        """Whether another run has asked for the next time, and may still come for it."""
        return any(row.asked_by not in {None, self._run_id} and self._is_fresh(row) for row in self._rows)

    def ask(self, *, ahead: float) -> None:
        """The next time is for this run, where there is none within so many seconds and no other has asked."""
        latest = self._now + timedelta(seconds=ahead)
        taken = [row for row in self._rows if row.next_at > latest]
        queues = [row.queue for row in taken if row.asked_by == self._run_id or not self._is_fresh(row)]
        if queues:
            mine = update(paced_queues).where(paced_queues.c.queue.in_(queues))
            self._connection.execute(mine.values(asked_by=self._run_id, asked_at=self._now))

    def reserve(self, begin: datetime, number: int) -> None:
        """So many letters are sent from then on."""
        for row in self._rows:
            until = begin + timedelta(seconds=number / self._ceilings[row.queue]) if number else row.next_at
            mine = update(paced_queues).where(paced_queues.c.queue == row.queue)
            self._connection.execute(mine.values(next_at=until, asked_by=None, asked_at=None))

    def _is_fresh(self, row: Row[Any]) -> bool:
        return row.asked_at is not None and bool(self._now - row.asked_at < PATIENCE)
