"""The next letters of a run for one engine: claims and the run's cursor move in one transaction (T4, T5, T6, T17).

Engines of one run take one after the other: the run's row is locked. What was taken and not finished comes first.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import exists, select, update

from redrive.clock import new_id
from redrive.dead_letter import Actor
from redrive.letter_query import Place
from redrive.run import RunStatus, Taken, Waiting
from redrive.stores import sql_claiming
from redrive.stores.expressions import one_of
from redrive.stores.schema import claims, redrives, runs
from redrive.stores.sql_claiming import Candidate, Claiming
from redrive.stores.sql_runs_editing import NOT_EDITED, edited
from redrive.stores.sql_runs_plan import read
from redrive.stores.sql_runs_selection import Cursor, next_page
from redrive.stores.sql_selection import page_size

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.dead_letter import Claim
    from redrive.run import RunPlan
    from redrive.stores.expressions import Values

AHEAD = 10.0
"""Seconds: at a pace, no more is taken than can be sent within them, and nothing that has to wait for longer."""

NOT_PENDING = "not pending"
NOT_FOUND = "not found"
CAME_BACK_MEANWHILE = "came back meanwhile"

_MOST_PAGES = 20
"""That are looked at in one go while all of their letters are passed over."""


class _Pace(NamedTuple):
    """When what is taken now may be sent: all engines of the run together keep to its rate."""

    rate: float | None
    now: datetime
    begin: datetime

    @classmethod
    def of(cls, plan: RunPlan, run: Row[Any], now: datetime) -> _Pace:
        return cls(plan.rate, now, now if plan.rate is None or run.next_at is None else max(now, run.next_at))

    @property
    def begins_in(self) -> float:
        return (self.begin - self.now).total_seconds()

    @property
    def spacing(self) -> float:
        return 0.0 if self.rate is None else 1 / self.rate

    def bounded(self, size: int) -> int:
        return size if self.rate is None else min(size, max(1, int(self.rate * AHEAD)))

    def after(self, number: int) -> datetime | None:
        """When the next ones may."""
        return None if self.rate is None else self.begin + timedelta(seconds=number / self.rate)


class _Work(NamedTuple):
    run: Row[Any]
    plan: RunPlan
    claiming: Claiming


class _Over(NamedTuple):
    doubtful: list[Claim]
    """Whoever had them may have sent them."""
    unsent: list[Claim]
    """Let go before they were sent: as good as new ones."""

    @property
    def number(self) -> int:
        return len(self.doubtful) + len(self.unsent)


class _Looked(NamedTuple):
    claims: list[Claim]
    cursor: Cursor


def take(
    connection: Connection, run_id: str, *, owner: str, at_most: int, lease_until: datetime, now: datetime
) -> Taken:
    run = connection.execute(select(runs).where(runs.c.id == run_id).with_for_update()).one_or_none()
    if run is None or run.status != RunStatus.RUNNING:
        return Taken(waiting=Waiting.NOT_RUNNING)
    plan = read(run.plan)
    pace = _Pace.of(plan, run, now)
    if pace.begins_in > AHEAD:
        return Taken(waiting=Waiting.PACE, begins_in=pace.begins_in)
    size = pace.bounded(max(1, page_size(at_most)))
    claiming = Claiming(owner, lease_until, now, run.id, plan.target)
    over = _take_over(connection, claiming, size)
    further = _further(connection, _Work(run, plan, claiming), size - over.number)
    _move(connection, run, further, next_at=pace.after(over.number + len(further.claims)))
    found = (*over.doubtful, *over.unsent, *further.claims)
    if not found:
        return Taken(waiting=_why_none(connection, run, plan, further.cursor))
    return Taken(claims=found, taken_over=len(over.doubtful), begins_in=pace.begins_in, spacing=pace.spacing)


def _take_over(connection: Connection, claiming: Claiming, size: int) -> _Over:
    """T6 for claims of this run only: another engine had them, and did not finish."""
    expired = select(claims.c.letter_id, claims.c.unsent).where(
        claims.c.run_id == claiming.run_id, claims.c.lease_until <= claiming.now
    )
    rows = connection.execute(expired.order_by(claims.c.lease_until, claims.c.letter_id).limit(size))
    unsent = {row.letter_id: row.unsent for row in rows}
    if not unsent:
        return _Over([], [])
    found = sql_claiming.take_over(connection, sql_claiming.held(connection, list(unsent)), claiming)
    return _Over(
        [each for each in found if not unsent[each.letter_id]], [each for each in found if unsent[each.letter_id]]
    )


def _further(connection: Connection, work: _Work, size: int) -> _Looked:
    """T4 and T5 for the next letters of the selection."""
    run, plan = work.run, work.plan
    last = None if run.cursor_at is None else Place(run.cursor_at, run.cursor_id)
    looked = _Looked([], Cursor(run.cut_off, last, run.cursor_place, run.exhausted))
    room = min([size, *_rooms(plan, run)])
    for _ in range(_MOST_PAGES):
        if room <= 0 or looked.claims or looked.cursor.exhausted:
            break
        looked = _look(connection, work, looked.cursor, room)
    enough = plan.at_most is not None and run.taken + len(looked.claims) >= plan.at_most
    return looked._replace(cursor=looked.cursor._replace(exhausted=looked.cursor.exhausted or enough))


def _rooms(plan: RunPlan, run: Row[Any]) -> list[int]:
    """How many more may be taken: of all, and of the canary's step."""
    found = [] if plan.at_most is None else [plan.at_most - run.taken]
    if run.stage < len(plan.canary.steps):
        found.append(plan.canary.steps[run.stage] - run.taken)
    return found


def _look(connection: Connection, work: _Work, cursor: Cursor, room: int) -> _Looked:
    """One page: what can be claimed is, and all else of it is told as passed over."""
    run, plan, claiming = work
    page = next_page(connection, plan, cursor, room)
    rows = sql_claiming.held(connection, page.ids) if page.ids else []
    found = {row.id: row for row in rows}
    stale = _came_back(connection, rows, since=run.created_at)
    passed = {each: _obstacle(found.get(each), stale) for each in page.ids}
    fit = [Candidate.of(found[each]) for each, obstacle in passed.items() if obstacle is None]
    ready, unfit = edited(connection, plan.edit, fit, claiming, by=Actor(run.requested_by, plan.reason))
    passed |= dict.fromkeys(unfit, NOT_EDITED)
    _tell_passed(connection, {each: why for each, why in passed.items() if why}, found, claiming)
    reached = max((Place(row.created_at, row.id) for row in rows), key=_in_order, default=cursor.last)
    after = Cursor(cursor.cut_off, reached, page.place, page.is_last)
    return _Looked(sql_claiming.take(connection, ready, claiming), after)


def _in_order(place: Place) -> tuple[datetime, str]:
    return place.created_at, place.id


def _obstacle(letter: Row[Any] | None, stale: set[str]) -> str | None:
    if letter is None:
        return NOT_FOUND
    if not sql_claiming.is_claimable(letter):
        return NOT_PENDING
    return CAME_BACK_MEANWHILE if letter.id in stale else None


def _came_back(connection: Connection, rows: Sequence[Row[Any]], *, since: datetime) -> set[str]:
    """Letters that have failed once more since the run was made: nobody who asked for it has seen that."""
    ids = [row.id for row in rows if row.generation > 1]
    if not ids:
        return set()
    again = select(redrives.c.letter_id).where(
        one_of(redrives.c.letter_id, ids, connection.dialect.name),
        redrives.c.returned_as.is_not(None),
        redrives.c.outcome_at > since,
    )
    return set(connection.scalars(again))


def _tell_passed(
    connection: Connection, passed: dict[str, str], found: dict[str, Row[Any]], claiming: Claiming
) -> None:
    if passed:
        rows = [_passed_row(each, why, found.get(each), claiming) for each, why in passed.items()]
        sql_claiming.insert_rows(connection, (redrives, rows))


def _passed_row(letter_id: str, why: str, letter: Row[Any] | None, claiming: Claiming) -> Values:
    unknown: Values = {"letter_id": letter_id, "generation": 0, "revision": 0, "group_id": None, "target": None}
    known = unknown if letter is None else sql_claiming.redrive_row(letter, claiming, letter.revision)
    told: Values = {"redrive_id": new_id(), "run_id": claiming.run_id, "claimed_at": claiming.now}
    return {**known, **told, "outcome": why, "outcome_at": claiming.now}


def _move(connection: Connection, run: Row[Any], looked: _Looked, *, next_at: datetime | None) -> None:
    """The run's own row: how far it has come."""
    last, cursor = looked.cursor.last, looked.cursor
    values: Values = {
        "taken": runs.c.taken + len(looked.claims),
        "cursor_at": None if last is None else last.created_at,
        "cursor_id": None if last is None else last.id,
        "cursor_place": cursor.place,
        "exhausted": cursor.exhausted,
        "next_at": next_at,
    }
    connection.execute(update(runs).where(runs.c.id == run.id).values(values))


def _why_none(connection: Connection, run: Row[Any], plan: RunPlan, cursor: Cursor) -> Waiting | None:
    """None: letters were passed over, and there are more."""
    if cursor.exhausted:
        claimed = connection.scalar(select(exists().where(claims.c.run_id == run.id)))
        return Waiting.OTHER_HANDS if claimed else Waiting.NOTHING_LEFT
    return Waiting.CANARY if min([1, *_rooms(plan, run)]) <= 0 else None
