"""A run's letters whose order is kept: of each lane the next ones are taken when all before them are settled.

A run works a lane through to its end. It takes the letters of its selection, and what is parked behind them
along, also what is parked while it runs: else the key would never be free again. It stops at a letter that is dead
and not its own to send, or that it has sent and that came back: what is left of its selection is told as blocked.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, bindparam, delete, select, update

from redrive.dead_letter import Status, Transition
from redrive.ordering import PARKED
from redrive.stores import sql_lanes
from redrive.stores.expressions import insert_into, one_of
from redrive.stores.schema import IN_LANES, letters, redrives, run_lanes
from redrive.stores.sql_audit import HAPPENED
from redrive.stores.sql_runs_selection import selected

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Row

    from redrive.run import RunPlan

MOST = 500
"""Lanes that a run works through at a time; it looks for further letters when there are fewer."""
AT_ONCE = 50
"""Lanes that are looked at by one take."""
_TOLD_AT_ONCE = 500
_GIVEN_BACK = HAPPENED[Transition.UNCLAIM]
_ON_THEIR_WAY = {str(Status.REDRIVING), str(Status.REDRIVEN)}


class Following(NamedTuple):
    """The next letters of a lane that may be sent now, in their order."""

    ids: list[str]
    own: set[str]
    """Those of them that the run was made for. The others are parked behind these, and go as they are."""


_of_run = select(run_lanes).where(run_lanes.c.run_id == bindparam("run_id"))
_LONGEST_AGO = _of_run.order_by(run_lanes.c.looked_at, run_lanes.c.lane).limit(MOST)


class Lanes:
    """Of one run, whose row is locked."""

    def __init__(self, connection: Connection, run: Row[Any], plan: RunPlan, now: datetime) -> None:
        self._connection = connection
        self._run = run
        self._plan = plan
        self._now = now
        self._rows = connection.execute(_LONGEST_AGO, {"run_id": run.id}).all()

    @property
    def full(self) -> bool:
        return len(self._rows) >= MOST

    def enter(self, lanes: Collection[str]) -> None:
        """The run has letters in them."""
        new = set(lanes) - {row.lane for row in self._rows}
        if not new:
            return
        insert = insert_into(run_lanes, self._connection.dialect.name).on_conflict_do_nothing()
        values = {"run_id": self._run.id, "looked_at": self._now, "blocked": False, "told_to": ""}
        self._connection.execute(insert, [{"lane": lane, **values} for lane in sorted(new)])
        of_run = select(run_lanes).where(run_lanes.c.run_id == self._run.id, run_lanes.c.lane.in_(new))
        self._rows = [*self._rows, *self._connection.execute(of_run.order_by(run_lanes.c.lane))]

    def oldest_looks(self) -> Sequence[Row[Any]]:
        """The lanes that nobody has looked at for the longest time."""
        return self._rows[:AT_ONCE]

    def following(self, lane: Row[Any], room: int) -> Following:
        """What may be sent of it now. Nothing: it is at its end, waits, or is blocked, as its row says then."""
        rows = sql_lanes.first_open(self._connection, lane.lane, room)
        if not rows:
            self._leave(lane)
            return Following([], set())
        ids = [row.id for row in rows]
        own = selected(self._connection, self._plan, self._run.cut_off, ids)
        found = self._sendable(rows, own, self._tried(ids))
        if found or self._waits(rows[0]):
            self._change(lane, looked_at=self._now)
        else:
            self.block(lane)
        return Following(found, own)

    def blocked(self, lane: Row[Any]) -> list[str]:
        """Letters of the selection that will not be sent, and that nobody has told so far."""
        mine = and_(letters.c.lane == lane.lane, IN_LANES, letters.c.id > lane.told_to)
        query = select(letters.c.id, letters.c.status).where(mine).order_by(letters.c.id).limit(_TOLD_AT_ONCE)
        statuses = {row.id: row.status for row in self._connection.execute(query)}
        ids = list(statuses)
        if len(ids) < _TOLD_AT_ONCE:
            self._leave(lane)
        else:
            self._change(lane, told_to=ids[-1], looked_at=self._now)
        own = selected(self._connection, self._plan, self._run.cut_off, ids) - self._tried(ids)
        return [each for each in ids if each in own and statuses[each] in self._claimable]

    def in_turn(self, claimed: Sequence[Row[Any]]) -> list[Row[Any]]:
        """Those of the claims, each with its letter's lane and in the order of letters, that have nothing before
        them that is on its way in other hands, and of which word may still come.
        """
        by_lane: dict[str, list[str]] = {}
        for row in claimed:
            if row.lane is not None:
                by_lane.setdefault(row.lane, []).append(row.letter_id)
        kept = {letter_id for lane, ids in by_lane.items() for letter_id in self._kept_back(lane, ids)}
        return [row for row in claimed if row.letter_id not in kept]

    def _kept_back(self, lane: str, ids: list[str]) -> list[str]:
        for first in sql_lanes.first_open(self._connection, lane, len(ids)):
            if first.id not in ids:
                return [each for each in ids if each > first.id] if self._waits(first) else []
        return []

    def block(self, lane: Row[Any]) -> None:
        self._change(lane, blocked=True)

    def _sendable(self, rows: Sequence[Row[Any]], own: set[str], tried: set[str]) -> list[str]:
        found: list[str] = []
        for row in rows:
            mine = row.id in own or row.type == PARKED
            if row.status not in self._claimable or row.id in tried or not mine:
                break
            found.append(row.id)
        return found

    @property
    def _claimable(self) -> set[str]:
        return {str(Status.PENDING), *([str(Status.QUARANTINED)] if self._plan.quarantined else [])}

    def _waits(self, first: Row[Any]) -> bool:
        """Whether word of it may still come."""
        patience = timedelta(seconds=self._plan.canary.wait)
        return first.status in _ON_THEIR_WAY and self._now - first.changed_at <= patience

    def _tried(self, ids: Sequence[str]) -> set[str]:
        """Those that the run has had in hand, and not given back unsent."""
        mine = one_of(redrives.c.letter_id, ids, self._connection.dialect.name)
        sent = redrives.c.outcome.is_distinct_from(_GIVEN_BACK)
        query = select(redrives.c.letter_id).where(mine, redrives.c.run_id == self._run.id, sent)
        return set(self._connection.scalars(query))

    def _change(self, lane: Row[Any], **values: Any) -> None:
        self._connection.execute(update(run_lanes).where(self._one(lane)).values(values))

    def _leave(self, lane: Row[Any]) -> None:
        self._connection.execute(delete(run_lanes).where(self._one(lane)))

    def _one(self, lane: Row[Any]) -> ColumnElement[bool]:
        return and_(run_lanes.c.run_id == self._run.id, run_lanes.c.lane == lane.lane)


def leave_all(connection: Connection, run_id: str) -> None:
    """The run has ended."""
    connection.execute(delete(run_lanes).where(run_lanes.c.run_id == run_id))
