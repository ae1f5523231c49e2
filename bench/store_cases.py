"""The questions of the benchmark `store`: what we are asked, and what S1's table is asked for the same answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bench import naive_schema
from bench.causes import causes
from bench.corpus import CUSTOMERS, DAYS, RARE_WORD
from bench.seeding import Seeded
from redrive.dead_letter import DeadLetter, Status
from redrive.letter_query import LetterQuery, Place
from redrive.search import parse
from redrive.statistics import HourlyRate
from redrive.stores.postgres import PostgresStore

DEEP = 100_000
PAGE = 50

Ask = Callable[[], Awaitable[Any]]
Told = Callable[[Any], Any]

S1 = "S1's table"
ON_VIEW = "S1's SQL on our view"
SHOWN = "SELECT id, event_id, source_id, error_message, created_at FROM public.dlq_events"
NEWEST = f"ORDER BY created_at DESC LIMIT {PAGE}"


@dataclass(frozen=True)
class Case:
    name: str
    ours: Ask
    naive: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """SQL and its values, by what it is called in the results."""
    under: float = 10.0
    """Milliseconds that our median should stay under."""
    times: float | None = None
    """How many times as fast as S1's we want to be."""
    flat: bool = False
    """Whether ten times the letters may not cost twice the time."""
    told: tuple[Told, Told] | None = None
    """What of our answer and of S1's rows must be equal."""


def letters_told(letters: Sequence[DeadLetter]) -> list[str]:
    return [letter.message.id for letter in letters]


PAGES: tuple[Told, Told] = (letters_told, lambda rows: [row["event_id"] for row in rows])
COUNTS: tuple[Told, Told] = (lambda count: count.number, lambda rows: rows[0][0])
HOURS: tuple[Told, Told] = (
    lambda hours: {each.hour.replace(tzinfo=None): each.letters for each in hours if each.letters},
    lambda rows: {row["hour"]: row["error_count"] for row in rows},
)
TYPES: tuple[Told, Told] = (
    lambda types: {each.event_type: (each.total, each.pending, each.resolved) for each in types},
    lambda rows: {row["event_type"]: (row["total"], row["pending"], row["resolved"]) for row in rows},
)
MEAN: tuple[Told, Told] = (lambda told: round(told.mean_hours, 3), lambda rows: round(float(rows[0][0]), 3))
STATUSES: tuple[Told, Told] = (
    lambda told: {status: number for status, number in told.by_status.items() if number},
    lambda rows: dict(rows),  # noqa: PLW0108  records are pairs, which mypy does not know
)


class Questions:
    """All cases on one seeded database."""

    def __init__(self, store: PostgresStore, seeded: Seeded) -> None:
        self._store = store
        self._now = seeded.now
        self._deep = min(DEEP, seeded.letters // 2)

    async def every(self) -> list[Case]:
        return [*self._five(), *self._counts(), *await self._lists(), *self._groups(), *self._searches()]

    def _five(self) -> list[Case]:
        """S1's, in its order, and the numbers of its metrics."""
        store, pending = self._store, LetterQuery(status=Status.PENDING, limit=PAGE)
        limited = f"{naive_schema.PENDING} LIMIT {PAGE}"
        usual: dict[str, Any] = {"times": 50, "flat": True}
        return [
            Case("1. pending, all rows from S1", self._find(pending), {S1: (naive_schema.PENDING,)}, under=5),
            Case("1. pending, LIMIT 50", self._find(pending), _both(limited), under=5, flat=True, told=PAGES),
            Case("2. top 10 errors", store.top_errors, _both(naive_schema.TOP_ERRORS), **usual),
            Case("3. per hour", self._per_hour, _both(naive_schema.PER_HOUR), told=HOURS, **usual),
            Case("4. by type", store.by_event_type, _both(naive_schema.BY_TYPE), told=TYPES, **usual),
            Case(
                "5. time to resolve",
                store.time_to_resolve,
                _both(naive_schema.TIME_TO_RESOLVE),
                told=MEAN,
                **usual,
            ),
            Case("statistics", store.statistics, {S1: (naive_schema.BY_STATUS,)}, told=STATUSES, flat=True),
        ]

    async def _per_hour(self) -> Sequence[HourlyRate]:
        midnight = self._now.replace(hour=0, minute=0, second=0, microsecond=0)
        return await self._store.error_rate(since=midnight - timedelta(days=7), until=self._now)

    def _counts(self) -> list[Case]:
        week = _plain(self._now - timedelta(days=7))
        cpf = ("error_message LIKE '%CPF inválido%' AND created_at > $1", _plain(self._now - timedelta(days=DAYS)))
        facets = ("kafka_topic = 'payments' AND status = 'PENDING' AND created_at > $1", week)
        payload = ("event_payload->>'channel' = 'app' AND status = 'PENDING'",)
        return [
            self._count(
                "CPF inválido, last month, by type", "type:InvalidCpf age:<30d", *cpf, times=50, flat=True
            ),
            self._count("CPF inválido, last month, by words", '"CPF inválido" age:<30d', *cpf),
            self._count("queue, status, last week", "queue:payments status:PENDING age:<7d", *facets, flat=True),
            self._count("data.channel and status", "data.channel:app status:PENDING", *payload),
        ]

    def _count(self, name: str, text: str, condition: str, *values: Any, **more: Any) -> Case:
        query = self._where(text)
        counted = f"SELECT count(*) FROM public.dlq_events WHERE {condition}"  # noqa: S608  texts of ours
        ask = (lambda: self._store.count(query), {S1: (counted, *values)})
        return Case(f"count: {name}", *ask, told=COUNTS, **more)

    async def _lists(self) -> list[Case]:
        pending = f"{SHOWN} WHERE status = 'PENDING' {NEWEST}"
        name, deep = f"list: PENDING, page at row {self._deep:,}", await self._deep_page()
        usual: dict[str, Any] = {"under": 5, "flat": True, "told": PAGES}
        return [
            Case(
                "list: all, first page", self._find(LetterQuery(limit=PAGE)), {S1: (f"{SHOWN} {NEWEST}",)}, **usual
            ),
            Case(name, self._find(deep), {S1: (f"{pending} OFFSET {self._deep}",)}, **usual),
        ]

    def _groups(self) -> list[Case]:
        store, cause = self._store, causes()[0]
        group_id = cause.fingerprint.id
        seen = "count(*), min(created_at), max(created_at) FROM public.dlq_events"
        top = f"SELECT error_message, {seen} GROUP BY error_message ORDER BY 2 DESC LIMIT {PAGE}"
        same = ("error_message = $1 AND kafka_topic = $2", cause.text(None), cause.queue)  # type: ignore[arg-type]
        return [
            Case("groups: first 50", lambda: store.groups(limit=PAGE), {S1: (top,)}, flat=True),
            Case(
                "groups: the largest",
                lambda: store.group(group_id),
                {S1: (f"SELECT {seen} WHERE {same[0]}", *same[1:])},
                flat=True,
                told=(lambda group: group.total, lambda rows: rows[0][0]),
            ),
            Case(
                "list: letters of that group",
                self._find(LetterQuery(group=group_id, limit=PAGE)),
                {S1: (f"{SHOWN} WHERE {same[0]} {NEWEST}", *same[1:])},
                under=5,
                flat=True,
                told=PAGES,
            ),
        ]

    def _searches(self) -> list[Case]:
        customer = str(100_000 + CUSTOMERS // 3)
        data = f"{SHOWN} WHERE event_payload #>> $1 = $2 {NEWEST}"
        words = f"{SHOWN} WHERE error_message ILIKE $1 OR event_payload::text ILIKE $1 {NEWEST}"
        found: dict[str, tuple[str, str, tuple[Any, ...]]] = {
            "data.customer.id": (f"data.customer.id:{customer}", data, (["customer", "id"], customer)),
            "data.channel (a quarter of all)": ("data.channel:app", data, (["channel"], "app")),
            "text: rare word": (RARE_WORD, words, (f"%{RARE_WORD}%",)),
            "text: frequent word": ("warehouse", words, ("%warehouse%",)),
            "text: phrase": ('"connection refused"', words, ("%connection refused%",)),
            "text: unknown word": ("xylophone", words, ("%xylophone%",)),
        }
        return [
            Case(name, self._find(self._where(text)), {S1: (sql, *values)}, under=50, told=PAGES)
            for name, (text, sql, values) in found.items()
        ]

    def _where(self, text: str) -> LetterQuery:
        return LetterQuery(where=parse(text, now=self._now), limit=PAGE)

    def _find(self, query: LetterQuery) -> Ask:
        return lambda: self._store.find(query)

    async def _deep_page(self) -> LetterQuery:
        """By walking there, page by page."""
        place: Place | None = None
        left = self._deep
        while left:
            query = LetterQuery(status=Status.PENDING, limit=min(left, 500), after=place)
            page = await self._store.find(query)
            place, left = Place.of(page[-1]), left - len(page)
        return LetterQuery(status=Status.PENDING, limit=PAGE, after=place)


def _both(sql: str) -> dict[str, tuple[Any, ...]]:
    """On S1's table, and on our view of it."""
    return {S1: (sql,), ON_VIEW: (naive_schema.on_view(sql),)}


def _plain(moment: datetime) -> datetime:
    """As S1's columns have it: UTC, without saying so."""
    return moment.replace(tzinfo=None)
