"""The next letters of a run for one engine: claims and the run's cursor move in one transaction (T4, T5, T6, T17).

Engines of one run take one after the other: the run's row is locked. What was taken and not finished comes first.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace
from sqlalchemy import Integer, bindparam, exists, select, update

from redrive.clock import new_id
from redrive.letter_query import Place
from redrive.run import PassedOver, RunStatus, Taken, Waiting
from redrive.stores import sql_claiming
from redrive.stores.expressions import one_of
from redrive.stores.schema import claims, letters, redrives, run_lanes, runs
from redrive.stores.sql_claiming import Claiming
from redrive.stores.sql_runs_ceilings import Ceilings
from redrive.stores.sql_runs_editing import edited
from redrive.stores.sql_runs_lanes import Lanes
from redrive.stores.sql_runs_plan import read
from redrive.stores.sql_runs_quarantine import claimable
from redrive.stores.sql_runs_selection import Cursor, next_page
from redrive.stores.sql_selection import page_size

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.dead_letter import Claim
    from redrive.run import RunPlan
    from redrive.stores.expressions import Values
    from redrive.stores.sql_claiming import Candidate
    from redrive.stores.sql_runs_lanes import Following

AHEAD = 10.0
"""Seconds: at a pace, no more is taken than can be sent within them, and nothing that has to wait for longer."""

_LOOKED_AT = 4
"""Times as many claims as are wanted: some may have to wait for others of their lane."""
_MOST_PAGES = 20
"""That are looked at in one go while all of their letters are passed over."""


class _Pace(NamedTuple):
    """When what is taken now may be sent: all engines of the run together keep to its rate."""

    rate: float | None
    now: datetime
    begin: datetime

    @classmethod
    def of(cls, plan: RunPlan, run: Row[Any], now: datetime, free_at: datetime) -> _Pace:
        due = now if plan.rate is None or run.next_at is None else run.next_at
        return cls(plan.rate, now, max(now, due, free_at))

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
    lanes: Lanes

    @property
    def unedited(self) -> _Work:
        return self._replace(plan=replace(self.plan, edit=(), schema=""))


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


# Made once: a take asks a dozen questions, and to make one costs more than to ask it.
_RUN = select(runs).where(runs.c.id == bindparam("run_id")).with_for_update()
_EXPIRED = (
    select(claims.c.letter_id, claims.c.unsent, letters.c.lane)
    .join(letters, letters.c.id == claims.c.letter_id)
    .where(claims.c.run_id == bindparam("run_id"), claims.c.lease_until <= bindparam("now"))
    .order_by(claims.c.letter_id)
    .limit(bindparam("size", type_=Integer))
)
_MOVE = update(runs).where(runs.c.id == bindparam("run_id")).values(taken=runs.c.taken + bindparam("more"))


def take(
    connection: Connection, run_id: str, *, owner: str, at_most: int, lease_until: datetime, now: datetime
) -> Taken:
    run = connection.execute(_RUN, {"run_id": run_id}).one_or_none()
    if run is None or run.status != RunStatus.RUNNING:
        return Taken(waiting=Waiting.NOT_RUNNING)
    plan = read(run.plan)
    ceilings = Ceilings(connection, run.id, plan, now)
    pace = _Pace.of(plan, run, now, ceilings.free_at)
    if pace.begins_in > AHEAD or ceilings.promised:
        ceilings.ask(ahead=AHEAD)
        return Taken(waiting=Waiting.PACE, begins_in=pace.begins_in)
    size = pace.bounded(max(1, page_size(at_most)))
    claiming = Claiming(owner, lease_until, now, run.id, plan.target)
    work = _Work(run, plan, claiming, Lanes(connection, run, plan, now))
    over = _take_over(connection, work, size)
    further = _further(connection, work, size - over.number)
    number = over.number + len(further.claims)
    _move(connection, run, further, next_at=pace.after(number))
    ceilings.reserve(pace.begin, number)
    found = (*over.doubtful, *over.unsent, *further.claims)
    if not found:
        return Taken(waiting=_why_none(connection, run, plan, further.cursor))
    return Taken(claims=found, taken_over=len(over.doubtful), begins_in=pace.begins_in, spacing=pace.spacing)


def _take_over(connection: Connection, work: _Work, size: int) -> _Over:
    """T6 for claims of this run only: another engine had them, and did not finish."""
    claiming = work.claiming
    wanted = {"run_id": claiming.run_id, "now": claiming.now, "size": size * _LOOKED_AT}
    rows: Sequence[Any] = connection.execute(_EXPIRED, wanted).all()
    unsent = {row.letter_id: row.unsent for row in work.lanes.in_turn(rows)[:size]}
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
        if room <= 0 or looked.claims or looked.cursor.exhausted or work.lanes.full:
            break
        looked = _look(connection, work, looked.cursor, room)
    in_lanes = _work_through(connection, work, room - len(looked.claims))
    looked = looked._replace(claims=looked.claims + in_lanes)
    enough = plan.at_most is not None and run.taken + len(looked.claims) >= plan.at_most
    return looked._replace(cursor=looked.cursor._replace(exhausted=looked.cursor.exhausted or enough))


def _rooms(plan: RunPlan, run: Row[Any]) -> list[int]:
    """How many more may be taken: of all, and of the canary's step."""
    found = [] if plan.at_most is None else [plan.at_most - run.taken]
    if run.stage < len(plan.canary.steps):
        found.append(plan.canary.steps[run.stage] - run.taken)
    return found


def _look(connection: Connection, work: _Work, cursor: Cursor, room: int) -> _Looked:
    """One page: what can be claimed is, what is in a lane has its turn there, all else is told as passed over."""
    run, plan, claiming, lanes = work
    page = next_page(connection, plan, cursor, room)
    rows = sql_claiming.held(connection, page.ids) if page.ids else []
    found = {row.id: row for row in rows}
    stale = _came_back(connection, rows, since=run.created_at)
    able = claimable(connection, run, plan, rows)
    readable = sql_claiming.readable_of(connection, rows)
    passed = {each: _obstacle(found.get(each), stale, able, readable) for each in page.ids}
    good = [found[each] for each, obstacle in passed.items() if obstacle is None]
    lanes.enter({row.lane for row in good if row.lane is not None})
    fit = [readable[row.id] for row in good if row.lane is None]
    ready, unfit = edited(connection, run, plan, fit, claiming)
    passed |= unfit
    _tell_passed(connection, {each: why for each, why in passed.items() if why}, found, claiming)
    reached = max((Place(row.created_at, row.id) for row in rows), key=_in_order, default=cursor.last)
    after = Cursor(cursor.cut_off, reached, page.place, page.is_last)
    return _Looked(sql_claiming.take(connection, ready, claiming), after)


def _work_through(connection: Connection, work: _Work, room: int) -> list[Claim]:
    """The next letters of the run's lanes, each lane's in their order."""
    lanes = work.lanes
    found: list[Claim] = []
    for lane in lanes.oldest_looks():
        if lane.blocked:
            left = lanes.blocked(lane)
            rows = sql_claiming.held(connection, left) if left else []
            _tell_passed(
                connection, dict.fromkeys(left, PassedOver.BLOCKED), {row.id: row for row in rows}, work.claiming
            )
        elif len(found) < room:
            following = lanes.following(lane, _in_one_go(work, room - len(found)))
            claimed = _follow(connection, work, following) if following.ids else []
            if following.ids and not claimed:
                lanes.block(lane)
            found += claimed
    return found


def _in_one_go(work: _Work, room: int) -> int:
    """Of one lane: one that `edited` may pass over keeps the others behind it."""
    may_be_passed = work.plan.edit or work.plan.schema or work.run.approval_digest is not None
    return 1 if may_be_passed else room


def _follow(connection: Connection, work: _Work, following: Following) -> list[Claim]:
    """As many of them as can be claimed without leaving one out."""
    rows = {row.id: row for row in sql_claiming.held(connection, following.ids)}
    own = [row for row in rows.values() if row.id in following.own]
    stale = _came_back(connection, own, since=work.run.created_at)
    able = claimable(connection, work.run, work.plan, list(rows.values()))
    readable = sql_claiming.readable_of(connection, list(rows.values()))
    fit: list[Candidate] = []
    for each in following.ids:
        if _obstacle(rows.get(each), stale, able, readable) is not None:
            break
        fit.append(readable[each])
    bare = work if following.own.issuperset(following.ids[:1]) else work.unedited
    ready, unfit = edited(connection, work.run, bare.plan, fit, work.claiming)
    _tell_passed(connection, unfit, rows, work.claiming)
    return sql_claiming.take(connection, ready, work.claiming)


def _in_order(place: Place) -> tuple[datetime, str]:
    return place.created_at, place.id


def _obstacle(letter: Row[Any] | None, stale: set[str], able: set[str], readable: Container[str]) -> str | None:
    if letter is None:
        return PassedOver.NOT_FOUND
    if letter.id not in able:
        return PassedOver.NOT_PENDING
    if letter.id not in readable:
        return PassedOver.UNREADABLE
    return PassedOver.CAME_BACK_MEANWHILE if letter.id in stale else None


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
        "run_id": run.id,
        "more": len(looked.claims),
        "cursor_at": None if last is None else last.created_at,
        "cursor_id": None if last is None else last.id,
        "cursor_place": cursor.place,
        "exhausted": cursor.exhausted,
        "next_at": next_at,
    }
    connection.execute(_MOVE, values)


def _why_none(connection: Connection, run: Row[Any], plan: RunPlan, cursor: Cursor) -> Waiting | None:
    """None: letters were passed over, and there are more."""
    in_lanes = connection.scalar(select(exists().where(run_lanes.c.run_id == run.id)))
    if cursor.exhausted and not (in_lanes and _wanted(plan, run)):
        claimed = connection.scalar(select(exists().where(claims.c.run_id == run.id)))
        return Waiting.OTHER_HANDS if claimed else Waiting.NOTHING_LEFT
    if min([1, *_rooms(plan, run)]) <= 0:
        return Waiting.CANARY
    return Waiting.ORDER if in_lanes else None


def _wanted(plan: RunPlan, run: Row[Any]) -> bool:
    """Whether the run wants any more."""
    return plan.at_most is None or run.taken < plan.at_most
