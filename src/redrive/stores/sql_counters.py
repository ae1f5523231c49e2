"""How many letters there are, by group, queue, handler, kind, type, status and hour: exact at every commit.

Triggers on `letters` write deltas (schema.py); `fold` adds them up. Whoever reads takes both, in one transaction.
Fold is the only writer of the sums, so nobody who records or changes letters ever waits for a counter.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    delete,
    exists,
    func,
    literal,
    literal_column,
    select,
    text,
    type_coerce,
    union_all,
    update,
)

from redrive.stores.columns import escape, microseconds
from redrive.stores.expressions import earlier, insert_into, later, lots
from redrive.stores.schema import counter_deltas, counters, days, facets, groups, letters, rates, totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Row, Subquery, Table

    from redrive.stores.expressions import Values

    Facet = tuple[str, ...]
    """The values of FACET."""
    Span = tuple[int | None, int | None]
    """From the first on, before the second; None: without end."""
    Matching = Callable[[Any], Iterable[ColumnElement[bool]]]
    """Conditions on the columns named in FACET and on `status`, by whatever they are found under."""

FOLDED_AT_ONCE = 5000

HOUR = 3_600_000_000
"""In microseconds. The hour of a moment is how many whole ones have passed since 1970."""
DAY = 24 * HOUR

_YEAR_ONE_HOURS = 17_259_888  # before 1970; a whole number of days

FACET = ("group_id", "queue", "handler", "kind", "type", "short_type", "event_type")


@cache
def totals_now() -> Subquery:
    """Every facet with its letters per status. A facet may come in several rows, some of them negative."""
    folded = select(*_folded(totals), totals.c.letters, totals.c.resolve_ms)
    fresh = select(*_fresh(), counter_deltas.c.letters, counter_deltas.c.resolve_ms)
    return union_all(folded.join(facets, facets.c.id == totals.c.facet_id), fresh).subquery("totals_now")


def hours_now(*, since: int | None = None, until: int | None = None) -> Subquery:
    """As `totals_now`, by the hour in which the letters failed: from `since`, before `until`."""
    fresh = select(*_fresh(), counter_deltas.c.hour, counter_deltas.c.letters)
    folded = select(*_folded(counters), counters.c.hour, counters.c.letters)
    return union_all(
        folded.join(facets, facets.c.id == counters.c.facet_id).where(*_within(counters.c.hour, since, until)),
        fresh.where(*_within(counter_deltas.c.hour, since, until)),
    ).subquery("hours_now")


def days_now(*, since: int | None = None, until: int | None = None) -> Subquery:
    """As `hours_now`, with days since 1970, in UTC: a month is thirty numbers, not seven hundred."""
    first, last = None if since is None else since * 24, None if until is None else until * 24
    # Hours before 1970 round down, and division does not: so it is done from the year 1 on.
    day = (counter_deltas.c.hour + _YEAR_ONE_HOURS) // literal_column("24", BigInteger) - _YEAR_ONE_HOURS // 24
    return union_all(
        select(*_folded(days), days.c.day, days.c.letters)
        .join(facets, facets.c.id == days.c.facet_id)
        .where(*_within(days.c.day, since, until)),
        select(*_fresh(), day.label("day"), counter_deltas.c.letters).where(
            *_within(counter_deltas.c.hour, first, last)
        ),
    ).subquery("days_now")


def first_hour(connection: Connection, matching: Matching) -> int | None:
    """In which the oldest of the letters that match failed."""
    day = _first(connection, days_now(), "day", matching)
    if day is None:
        return None
    return _first(connection, hours_now(since=day * 24, until=(day + 1) * 24), "hour", matching)


def _first(connection: Connection, counted: Subquery, unit: str, matching: Matching) -> int | None:
    column = counted.c[unit]
    used = select(column).where(*matching(counted.c)).group_by(column)
    first: int | None = connection.scalar(used.having(func.sum(counted.c.letters) > 0).order_by(column).limit(1))
    return first


def rates_now(*, since: int | None = None, until: int | None = None) -> Subquery:
    """All letters by the hour in which they failed, whatever they are."""
    deltas = counter_deltas.c
    return union_all(
        select(rates.c.hour, rates.c.letters).where(*_within(rates.c.hour, since, until)),
        select(deltas.hour, deltas.letters).where(*_within(deltas.hour, since, until)),
    ).subquery("rates_now")


def _folded(table: Table) -> list[ColumnElement[Any]]:
    return [*(facets.c[name] for name in FACET), table.c.status]


def _fresh() -> list[ColumnElement[Any]]:
    return [counter_deltas.c[name] for name in (*FACET, "status")]


def _within(hour: ColumnElement[int], since: int | None, until: int | None) -> Iterator[ColumnElement[bool]]:
    if since is not None:
        yield hour >= since
    if until is not None:
        yield hour < until


def fold(connection: Connection) -> int:
    """Adds up deltas, and how many it took; 0 too if another process is at it. Safe to repeat at any time."""
    if not alone(connection):
        return 0
    oldest = select(counter_deltas.c.id).order_by(counter_deltas.c.id).limit(FOLDED_AT_ONCE)
    taken = delete(counter_deltas).where(counter_deltas.c.id.in_(oldest.scalar_subquery()))
    facet = [counter_deltas.c[name] for name in FACET]
    rest = [column for column in counter_deltas.c if column.name not in FACET]
    rows = connection.execute(taken.returning(*facet, *rest)).all()
    if rows:
        ids = _facet_ids(connection, {tuple(row[: len(FACET)]) for row in rows})
        _add(connection, rows, ids)
        _see(connection, rows)
    return len(rows)


def alone(connection: Connection) -> bool:
    """Deltas may be added up by one process at a time; on SQLite every writer is alone."""
    if connection.dialect.name != "postgresql":
        return True
    return bool(connection.scalar(text(f"SELECT pg_try_advisory_xact_lock({_LOCK})")))


def wait_for_fold(connection: Connection) -> None:
    """Until whoever folds has ended. Nobody folds, nor gets through here, until this transaction has ended too."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))


_LOCK = "hashtextextended('redrive fold ' || current_schema(), 0)"


def _facet_ids(connection: Connection, wanted: Iterable[Facet]) -> dict[Facet, int]:
    by_digest = {_digest(facet): facet for facet in wanted}
    known = _known(connection, by_digest)
    new: list[Values] = [
        {"digest": digest, **dict(zip(FACET, facet, strict=True))}
        for digest, facet in by_digest.items()
        if digest not in known
    ]
    if new:
        connection.execute(facets.insert(), new)
        known |= _known(connection, [each["digest"] for each in new])
    return {facet: known[digest] for digest, facet in by_digest.items()}


def _known(connection: Connection, digests: Iterable[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for lot in lots(digests):
        rows = connection.execute(select(facets.c.digest, facets.c.id).where(facets.c.digest.in_(lot)))
        found |= {row.digest: row.id for row in rows}
    return found


def _digest(facet: Facet) -> bytes:
    texts = [escape(each).encode() for each in facet]
    return hashlib.sha256(b"".join(b"%d:%b" % (len(each), each) for each in texts)).digest()


def _add(connection: Connection, rows: Sequence[Row[Any]], ids: dict[Facet, int]) -> None:
    by_hour: dict[tuple[int, str, int], int] = defaultdict(int)
    overall: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        facet_id = ids[tuple(row[: len(FACET)])]
        by_hour[facet_id, row.status, row.hour] += row.letters
        total = overall[facet_id, row.status]
        total[0] += row.letters
        total[1] += row.resolve_ms
    by_day: dict[tuple[int, str, int], int] = defaultdict(int)
    rate: dict[int, int] = defaultdict(int)
    for (facet_id, status, hour), number in by_hour.items():
        by_day[facet_id, status, hour // 24] += number
        rate[hour] += number
    upsert(connection, counters, ("facet_id", "status", "hour"), ("letters",), _rows(by_hour))
    upsert(connection, days, ("facet_id", "status", "day"), ("letters",), _rows(by_day))
    hours = [(hour, number) for hour, number in sorted(rate.items()) if number]
    upsert(connection, rates, ("hour",), ("letters",), hours)
    connection.execute(delete(rates).where(rates.c.letters == 0))
    whole = [(*key, *sums) for key, sums in sorted(overall.items()) if any(sums)]
    upsert(connection, totals, ("facet_id", "status"), ("letters", "resolve_ms"), whole)
    _tidy(connection, sorted({facet_id for facet_id, _ in overall}))


def _rows(sums: dict[tuple[int, str, int], int]) -> list[tuple[Any, ...]]:
    return [(*key, number) for key, number in sorted(sums.items()) if number]


def upsert(
    connection: Connection, table: Table, key: Sequence[str], sums: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Adds to the sums of each key; one that is new begins with them."""
    new = insert_into(table, connection.dialect.name)
    add = new.on_conflict_do_update(
        index_elements=[table.c[name] for name in key],
        set_={name: table.c[name] + new.excluded[name] for name in sums},
    )
    if rows:
        connection.execute(add, [dict(zip((*key, *sums), row, strict=True)) for row in rows])


def _tidy(connection: Connection, facet_ids: list[int]) -> None:
    """What counts nothing any more is not kept: causes come and go for years."""
    for lot in lots(facet_ids):
        for table in (counters, days, totals):
            connection.execute(delete(table).where(table.c.facet_id.in_(lot), table.c.letters == 0))
        used = [exists().where(table.c.facet_id == facets.c.id) for table in (counters, days, totals)]
        connection.execute(delete(facets).where(facets.c.id.in_(lot), *(~each for each in used)))


def _see(connection: Connection, rows: Sequence[Row[Any]]) -> None:
    """When a group was seen first and last."""
    seen: dict[str, list[Any]] = {}
    for row in rows:
        if row.last_seen is not None:
            span = seen.setdefault(row.group_id, [row.first_seen, row.last_seen])
            span[:] = min(span[0], row.first_seen), max(span[1], row.last_seen)
    for group_id, (first, last) in sorted(seen.items()):
        connection.execute(
            update(groups)
            .where(groups.c.id == group_id)
            .values(first_seen=earlier(groups.c.first_seen, first), last_seen=later(groups.c.last_seen, last))
        )


def miscounted(connection: Connection) -> Iterator[str]:
    """What the counters say that the letters do not, one line each; nothing, if all is well."""
    hour = _hour_of_letter()
    # Hours before 1970 round down, and division does not: so days are compared by the hour they begin with.
    day = (hour + _YEAR_ONE_HOURS) // literal_column("24", BigInteger)
    told_days = select(*_folded(days), (days.c.day + _YEAR_ONE_HOURS // 24).label("day"), days.c.letters).join(
        facets
    )
    fresh_day = (counter_deltas.c.hour + _YEAR_ONE_HOURS) // literal_column("24", BigInteger)
    fresh_days = select(*_fresh(), fresh_day.label("day"), counter_deltas.c.letters)
    facet = {name: column.label(name) for name, column in as_facets().items()}
    for name, told, real in (
        ("totals", totals_now(), facet),
        ("counters", hours_now(), facet | {"hour": hour.label("hour")}),
        ("days", union_all(told_days, fresh_days).subquery(), facet | {"day": day.label("day")}),
        ("rates", rates_now(), {"hour": hour.label("hour")}),
    ):
        both = union_all(
            select(*real.values(), literal(1).label("letters")).select_from(letters),
            select(*(told.c[key] for key in real), -told.c.letters),
        ).subquery()
        wrong = select(*(both.c[key] for key in real)).group_by(*(both.c[key] for key in real))
        wrong = wrong.having(func.sum(both.c.letters) != 0)
        number = connection.scalar(select(func.count()).select_from(wrong.subquery())) or 0
        if number:
            example = connection.execute(wrong.limit(1)).one()
            yield f"{number} numbers of {name} are not those of the letters, for example of {example[0]}"


def _hour_of_letter() -> ColumnElement[int]:
    # As the triggers have it: division rounds towards zero, so it is done from the year 1 on.
    since_year_one = type_coerce(letters.c.created_at, BigInteger) + _YEAR_ONE_HOURS * HOUR
    return since_year_one // literal_column(str(HOUR), BigInteger) - _YEAR_ONE_HOURS


def count(connection: Connection, matching: Matching, since: datetime | None, until: datetime | None) -> int:
    """The letters that match and failed at `since` or later and before `until`: whole days and hours from the
    counters, what is left at the edges from the letters themselves.
    """
    counted, edges = counted_in(since, until)
    number = sum(_sum(connection, each, matching) for each in counted)
    return number + sum(_in_letters(connection, matching, *edge) for edge in edges)


def counted_in(since: datetime | None, until: datetime | None) -> tuple[list[Subquery], list[Span]]:
    """Where the letters of a span are counted, and the edges of it, in microseconds, that only letters tell."""
    if since is None and until is None:
        return [totals_now()], []
    spans: list[Span] = [
        (None if since is None else microseconds(since), None if until is None else microseconds(until))
    ]
    found: list[Subquery] = []
    for counted, unit in ((days_now, DAY), (hours_now, HOUR)):
        left: list[Span] = []
        for span in spans:
            whole, edges = _whole(span, unit)
            left += edges
            if whole is not None:
                found.append(counted(since=whole[0], until=whole[1]))
        spans = left
    return found, spans


def _whole(span: Span, unit: int) -> tuple[Span | None, list[Span]]:
    """The whole units in a span, and what is left of it."""
    since, until = span
    first = None if since is None else -(-since // unit)
    last = None if until is None else until // unit
    if first is not None and last is not None and first >= last:
        return None, [span]
    edges: list[Span] = []
    if first is not None and since != first * unit:
        edges.append((since, first * unit))
    if last is not None and until != last * unit:
        edges.append((last * unit, until))
    return (first, last), edges


def _sum(connection: Connection, counted: Subquery, matching: Matching) -> int:
    number = func.coalesce(func.sum(counted.c.letters), 0)
    return int(connection.scalar(select(number).where(*matching(counted.c))) or 0)


def _in_letters(connection: Connection, matching: Matching, since: int | None, until: int | None) -> int:
    conditions = [*matching(as_facets()), *failed_within(since, until)]
    return connection.scalar(select(func.count()).select_from(letters).where(*conditions)) or 0


def failed_within(since: int | None, until: int | None) -> Iterator[ColumnElement[bool]]:
    """Of letters, in microseconds."""
    return _within(type_coerce(letters.c.created_at, BigInteger), since, until)


def as_facets() -> dict[str, ColumnElement[Any]]:
    """The columns of a letter under the names that its facet has."""
    own: dict[str, ColumnElement[Any]] = {name: letters.c[name] for name in (*FACET, "status")}
    return own | {"event_type": func.coalesce(letters.c.event_type, letters.c.queue)}
