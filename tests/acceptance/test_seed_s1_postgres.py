"""S1's validation and its five queries, unchanged, on PostgreSQL: its table is a view, its numbers are ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App
from redrive.access import local
from redrive.actions import Actions
from redrive.clock import SystemClock, new_id
from redrive.dead_letter import Status, Transition
from redrive.letter_query import LetterQuery
from redrive.search import parse
from redrive.stores import open_store
from redrive.testing.letters import a_failure, a_message, an_entry
from redrive.testing.store_case import ANN
from support.patience import until
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.dead_letter import Entry
    from redrive.stores import DeadLetterStore
    from support.postgres_server import PostgresServer

PENDING = """
-- 1. Eventos pendentes na DLQ
SELECT
id,
event_id,
source_id,
error_message,
created_at
FROM public.dlq_events
WHERE status = 'PENDING'
ORDER BY created_at DESC;
"""
TOP_ERRORS = """
-- 2. Top 10 erros mais comuns
SELECT
error_message,
COUNT(*) as occurrences
FROM public.dlq_events
WHERE status = 'PENDING'
GROUP BY error_message
ORDER BY occurrences DESC
LIMIT 10;
"""
RATE = """
-- 3. Taxa de erro por hora
SELECT
DATE_TRUNC('hour', created_at) as hour,
COUNT(*) as error_count
FROM public.dlq_events
WHERE created_at > CURRENT_DATE - INTERVAL '7 days'
GROUP BY hour
ORDER BY hour;
"""
BY_TYPE = """
-- 4. Eventos por tipo
SELECT
event_type,
COUNT(*) as total,
SUM(CASE WHEN status = 'PENDING' THEN 1 ELSE 0 END) as pending,
SUM(CASE WHEN status = 'RESOLVED' THEN 1 ELSE 0 END) as resolved
FROM public.dlq_events
GROUP BY event_type;
"""
TIME_TO_RESOLVE = """
-- 5. SLA de resolução (tempo médio até resolver)
SELECT
AVG(EXTRACT(EPOCH FROM (resolved_at - created_at)) / 3600) as avg_hours_to_resolve
FROM public.dlq_events
WHERE status = 'RESOLVED'
AND resolved_at IS NOT NULL;
"""

CPF = "Falha na validação: CPF inválido"
AGE = "Falha na validação: idade menor que 16 anos"


class Table:
    """`public.dlq_events`, as S1's dashboard sees it."""

    def __init__(self, postgres: PostgresServer, url: str) -> None:
        self._postgres = postgres
        self.url = url

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        return self._postgres.fetch(query, url=self.url)


@pytest.fixture
def table(postgres: PostgresServer, postgres_url: str) -> Table:
    postgres.execute(f"ALTER DATABASE {postgres_url.rpartition('/')[2]} SET TimeZone = 'UTC'")
    return Table(postgres, postgres_url)


# Queries de Análise


def _failed(event_type: str, error: str, ago: timedelta) -> Entry:
    at = datetime.now(UTC) - ago
    event = json.dumps({"eventType": event_type, "sourceId": new_id()[:8]}).encode()
    failure = a_failure(at=at, text=error)
    return an_entry(message=a_message(body=event), failures=(failure,), group=error, at=at)


async def _fill(store: DeadLetterStore) -> None:
    """Letters of two causes and three types, over a month, some resolved and some discarded."""
    ids = []
    for number in range(60):
        event_type = ("EMPLOYEE_CREATE", "EMPLOYEE_UPDATE", "EMPLOYEE_DELETE")[number % 3]
        error = CPF if number % 4 else AGE
        ago = timedelta(hours=7 * (number % 20), minutes=number) if number % 5 else timedelta(days=30)
        ids.append((await store.record(_failed(event_type, error, ago)))[0])
    await store.change(ids[::6], Transition.RESOLVE, by=ANN)
    await store.change(ids[1::6], Transition.DISCARD, by=ANN)


async def test_s1s_five_queries_run_unchanged_and_say_what_the_store_says(table: Table) -> None:
    store = open_store(table.url)
    await _fill(store)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    pending = await store.find(LetterQuery(status=Status.PENDING, limit=500))
    errors = await store.top_errors()
    rates = await store.error_rate(since=today - timedelta(days=7))
    types = await store.by_event_type()
    resolution = await store.time_to_resolve()
    await store.close()

    assert [row[1] for row in table.ask(PENDING)] == [each.message.id for each in pending]
    assert [count for _, count in table.ask(TOP_ERRORS)] == [each.pending for each in errors]
    assert {title.removeprefix("NoCustomer: ") for title in (each.title for each in errors)} == {CPF, AGE}
    hours = {each.hour.replace(tzinfo=None): each.letters for each in rates if each.letters}
    assert dict(table.ask(RATE)) == hours
    by_type = {each.event_type: (each.total, each.pending, each.resolved) for each in types}
    assert {row[0]: row[1:] for row in table.ask(BY_TYPE)} == by_type
    [(mean,)] = table.ask(TIME_TO_RESOLVE)
    assert resolution.resolved == 10
    assert float(mean) == pytest.approx(resolution.mean_hours, abs=1e-6)  # of an hour: milliseconds


async def test_s1s_five_queries_run_on_an_empty_table(table: Table) -> None:
    store = open_store(table.url)
    await store.statistics()
    await store.close()

    assert [table.ask(query) for query in (PENDING, TOP_ERRORS, RATE, BY_TYPE)] == [[]] * 4
    assert table.ask(TIME_TO_RESOLVE) == [(None,)]


# Validação


class InvalidEmployee(ValueError):
    pass


def employees(hired: list[str]) -> App:
    app = App("esocial")

    @app.handler("employee-create")
    def consume(event: dict[str, Any]) -> None:
        if len(event["cpf"]) != 11:
            raise InvalidEmployee(CPF)
        if event["age"] < 16:
            raise InvalidEmployee(AGE)
        hired.append(event["sourceId"])

    return app


def an_event(number: int) -> dict[str, Any]:
    invalid = {"cpf": "123", "age": 30} if number % 2 else {"cpf": "12345678901", "age": 15}
    return {"eventType": "EMPLOYEE_CREATE", "sourceId": f"{number}", **invalid}


async def _sent(shop: Workshop, number: int) -> None:
    for each in range(number):
        await shop.send("employee-create", an_event(each))
    await until(shop.empty)


async def test_s1_validation_1000_invalid_events_are_1000_letters(table: Table, tmp_path: Path) -> None:
    async with workshop(employees([]), tmp_path, store_url=table.url) as shop:
        await _sent(shop, 1000)

    assert table.ask("SELECT count(*), count(DISTINCT source_id) FROM public.dlq_events") == [(1000, 1000)]
    assert dict(table.ask(TOP_ERRORS)) == {CPF: 500, AGE: 500}
    assert table.ask(BY_TYPE) == [("EMPLOYEE_CREATE", 1000, 1000, 0)]


async def test_s1_validation_a_corrected_event_is_sent_again_with_success(table: Table, tmp_path: Path) -> None:
    hired: list[str] = []
    async with workshop(employees(hired), tmp_path, store_url=table.url) as shop:
        await _sent(shop, 2)
        [wrong] = await shop.letters(where=parse('"CPF inválido"', now=shop.clock.now()))
        desk = Actions(store=shop.store, transport=shop.transport, clock=SystemClock(), who=local("ana"))
        right = json.dumps(json.loads(wrong.message.payload or b"") | {"cpf": "12345678901"}).encode()
        await desk.revise(wrong.id, base=0, reason="CPF corrigido", payload=right)

        await desk.retry([wrong.id])
        await until(shop.empty)

    assert hired == ["1"]
    [(payload, resolved_at)] = table.ask(
        "SELECT event_payload->>'cpf', resolved_at FROM public.dlq_events WHERE status = 'RESOLVED'"
    )
    assert payload == "12345678901"
    assert resolved_at is not None
    assert dict(table.ask(TOP_ERRORS)) == {AGE: 1}


async def test_s1_validation_invalid_cpfs_of_the_last_month_are_found(table: Table) -> None:
    store = open_store(table.url)
    await _fill(store)
    await store.record(_failed("EMPLOYEE_CREATE", CPF, timedelta(days=40)))
    now = datetime.now(UTC)

    found = await store.count(LetterQuery(where=parse('"CPF inválido" age:<31d', now=now)))
    await store.close()

    [(number,)] = table.ask(
        "SELECT count(*) FROM public.dlq_events WHERE error_message LIKE '%CPF inválido%'"
        " AND created_at > CURRENT_TIMESTAMP - INTERVAL '31 days'"
    )
    assert found.number == number == 45
