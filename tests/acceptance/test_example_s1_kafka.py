"""S1 as a whole, by examples/kafka_employees: a thousand wrong events between right ones, from a plain producer,
are a thousand letters in PostgreSQL; S1's queries tell their numbers, S1's endpoints decide about them.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import httpx2
import pytest
from confluent_kafka import Producer

from redrive.transports.kafka.lags import Lags
from support.desk import Desk
from support.patience import until_now
from support.serving import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import KafkaError
    from confluent_kafka import Message as Record

    from support.kafka_server import KafkaServer
    from support.postgres_server import PostgresServer
    from support.serving import Served

EXAMPLES = Path(__file__).parents[2] / "examples"
TOPICS = ("employee-create", "employee-update", "employee-delete")
PARTITIONS = 3
QUERIES = (EXAMPLES / "kafka_employees_queries.sql").read_text().split(";")[:5]
PENDING, TOP_ERRORS, RATE, BY_TYPE, TIME_TO_RESOLVE = QUERIES


# What is produced.


class Event(NamedTuple):
    topic: str
    number: int
    payload: bytes | None
    error: str | None = None
    """What its letter says; None: it is right."""

    @property
    def employee(self) -> str:
        return f"E{self.number:04}"

    @property
    def correlation(self) -> str:
        return str(UUID(int=self.number))

    @property
    def type(self) -> str:
        """As S1's table has it: what is no event has its topic instead."""
        try:
            return str(json.loads(self.payload or b"")["eventType"])
        except (ValueError, TypeError):
            return self.topic


RIGHT: dict[str, dict[str, Any]] = {
    "employee-create": {"cpf": "529.982.247-25", "name": "Ana", "bornOn": "1990-05-17", "hiredOn": "2026-01-05"},
    "employee-update": {"cpf": "52998224725", "name": "Ana Maria"},
    "employee-delete": {"dismissedOn": "2026-06-30"},
}


def payload(topic: str, number: int, **fields: Any) -> bytes:
    """A right event, but for these fields."""
    told = {
        "eventId": f"evt-{number:04}",
        "eventType": topic.upper().replace("-", "_"),
        "employeeId": f"E{number:04}",
        "correlationId": str(UUID(int=number)),
    }
    whole = told | RIGHT[topic] | fields
    return json.dumps({name: value for name, value in whole.items() if value is not None}).encode()


def invalid(*wrong: str) -> str:
    return "Falha na validação: " + "; ".join(wrong)


WRONG_CPF, TOO_YOUNG = "CPF inválido", "idade menor que 16 anos"
DATES, UNKNOWN = invalid("datas inconsistentes"), "Funcionário desconhecido"
TRUNCATED, NO_BODY = "Input data was truncated", "the message has no body, and the handler asks for bytes"
Change = dict[str, Any] | bytes | None
CUT: Change = b'{"eventId": "evt-1", "cpf": '
WRONG: list[tuple[int, str, Change, str]] = [
    (200, "employee-create", {"cpf": "529.982.247-26"}, invalid(WRONG_CPF)),
    (150, "employee-create", {"bornOn": "2010-01-06"}, invalid(TOO_YOUNG)),
    (80, "employee-create", {"bornOn": "2026-01-06"}, DATES),
    (53, "employee-create", {"cpf": "111.111.111-11", "bornOn": "2015-03-01"}, invalid(WRONG_CPF, TOO_YOUNG)),
    (41, "employee-create", {"hiredOn": "2026-02-30"}, "Invalid RFC3339 encoded date - at `$.hiredOn`"),
    (29, "employee-create", {"cpf": None}, "Object missing required field `cpf`"),
    (7, "employee-create", b"[]", "Expected `object`, got `array`"),
    (110, "employee-create", CUT, TRUNCATED),
    (121, "employee-update", {"cpf": "12345678901"}, invalid(WRONG_CPF)),
    (79, "employee-update", {"name": " "}, invalid("nome vazio")),
    (55, "employee-update", CUT, TRUNCATED),
    (10, "employee-update", {}, UNKNOWN),
    (20, "employee-delete", {"employeeId": "S0", "dismissedOn": "2019-12-31"}, DATES),
    (20, "employee-delete", CUT, TRUNCATED),
    (15, "employee-delete", {}, UNKNOWN),
    (10, "employee-delete", None, NO_BODY),
]
STAFF = [f"S{number}" for number in range(21)]
"""Who was hired before."""


def wrong_events() -> list[Event]:
    kinds = [each for each in WRONG for _ in range(each[0])]
    return [
        Event(topic, number, payload(topic, number, **change) if isinstance(change, dict) else change, error)
        for number, (_, topic, change, error) in enumerate(kinds)
    ]


def right_events() -> list[Event]:
    """Thirty are hired, ten of the staff have a new name, ten others leave."""
    hired = [Event("employee-create", number, payload("employee-create", number)) for number in range(1000, 1030)]
    changed = [
        Event(topic, 1030 + place, payload(topic, 1030 + place, employeeId=STAFF[1 + place]))
        for place, topic in enumerate(["employee-update"] * 10 + ["employee-delete"] * 10)
    ]
    return hired + changed


Place = tuple[str, int, int]


def produce(kafka: KafkaServer, events: list[Event]) -> dict[Place, Event]:
    """Where each of them lies, by what the broker has confirmed."""
    placed: dict[Place, Event] = {}
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 5})
    for each in events:
        producer.produce(
            each.topic,
            each.payload,
            key=each.employee,
            headers=[("correlation-id", each.correlation.encode())],
            on_delivery=_noting(each, placed),
        )
    assert producer.flush(60) == 0
    return placed


def _noting(event: Event, placed: dict[Place, Event]) -> Callable[[KafkaError | None, Record], None]:
    def note(error: KafkaError | None, record: Record) -> None:
        assert error is None
        place = record.topic(), record.partition(), record.offset()
        placed[place] = event  # type: ignore[index]  # they are there once it is delivered

    return note


# The example, on the tests' own Kafka and PostgreSQL.


class Service:
    def __init__(self, folder: Path, kafka: KafkaServer, postgres: PostgresServer, url: str) -> None:
        self.desk, self._postgres, self._url = Desk(folder), postgres, url
        shutil.copy(EXAMPLES / "kafka_employees.py", folder)
        settings = (EXAMPLES / "kafka_employees.toml").read_text()
        for written, instead in (("kafka://localhost:9092", kafka.url), ("postgresql://localhost/esocial", url)):
            assert written in settings
            settings = settings.replace(written, instead)
        (folder / "redrive.toml").write_text(settings)

    def run(self, *arguments: str) -> str:
        ended = self.desk.process(*arguments, EMPLOYEES_URL=self._url)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def work(self) -> None:
        self.run("work", "kafka_employees:app", "--drain")

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        return self._postgres.fetch(query, url=self._url)

    def show(self, letter_id: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.run("show", letter_id, "--output", "json"))
        return told


@pytest.fixture
def service(tmp_path: Path, kafka: KafkaServer, postgres: PostgresServer, postgres_url: str) -> Iterator[Service]:
    """Its topics have S1's own names: a broker that has such ones already is left alone."""
    assert not set(TOPICS) & set(kafka.topics())
    postgres.execute(f"ALTER DATABASE {postgres_url.rpartition('/')[2]} SET TimeZone = 'UTC'")
    service = Service(tmp_path, kafka, postgres, postgres_url)
    service.ask((EXAMPLES / "kafka_employees.sql").read_text())
    for each in STAFF:
        service.ask(f"INSERT INTO employees VALUES ('{each}', '52998224725', 'Rui', '2020-01-01')")  # noqa: S608  the test's own
    service.run("setup", "kafka_employees:app", "--yes")
    yield service
    for topic in kafka.topics():
        if topic.startswith(TOPICS):
            kafka.drop_topic(topic)


class Client:
    """S1's endpoints, and those beside them."""

    def __init__(self, served: Served) -> None:
        headers = {"authorization": f"Bearer {served.token}"}
        self.http = httpx2.Client(base_url=f"{served.url}/api/v1", headers=headers, timeout=60)

    def close(self) -> None:
        self.http.close()

    def asked(self, method: str, path: str, *, status: int, **more: Any) -> httpx2.Response:
        answer = self.http.request(method, path, **more)
        assert answer.status_code == status, answer.text
        return answer

    def pending(self) -> dict[str, str]:
        """Ids of letters by ids of messages: every page of S1's list."""
        found: list[dict[str, Any]] = []
        link = "?status=PENDING&limit=400"
        while link:
            page = self.asked("GET", f"/validation/dlq{link}", status=200)
            found += page.json()
            link = page.headers.get("link", "").partition(">")[0].lstrip("<")
        by_message = {each["sourceId"]: each["id"] for each in found}
        assert len(by_message) == len(found)
        return by_message

    def correct_and_retry(self, letter_id: str, right: bytes) -> None:
        etag = self.asked("GET", f"/dlq/{letter_id}", status=200).headers["etag"]
        edit = {"payload": right.decode(), "reason": "CPF corrigido"}
        self.asked("POST", f"/dlq/{letter_id}/revisions", status=201, json=edit, headers={"if-match": etag})
        self.asked("POST", f"/dlq/{letter_id}/retry", status=202)
        until_now(lambda: self.status(letter_id) == "REDRIVEN")

    def status(self, letter_id: str) -> str:
        return str(self.asked("GET", f"/dlq/{letter_id}", status=200).json()["status"])


# What must be so.


def test_s1_a_thousand_wrong_events_are_a_thousand_letters_to_ask_about_and_to_decide(
    service: Service, kafka: KafkaServer
) -> None:
    events = wrong_events() + right_events()
    random.Random(8).shuffle(events)  # noqa: S311  for order, not for secrets
    placed = produce(kafka, events)
    assert len(placed) == 1050

    service.work()

    wrong = {place: each for place, each in placed.items() if each.error is not None}
    _letters_are(service, wrong)
    assert not any(_lags(kafka).values())
    _right_ones_are_done(service)
    _queries_tell(service, wrong)
    _decided(service, wrong)


def _lags(kafka: KafkaServer) -> dict[tuple[str, int], int]:
    """What the group has not committed, by partition."""
    return asyncio.run(Lags(kafka.admin(), within=30).of("esocial", dict.fromkeys(TOPICS, PARTITIONS), {}))


def _letters_are(service: Service, wrong: dict[Place, Event]) -> None:
    """One for each wrong event, and each says whose it is."""
    rows = service.ask(
        "SELECT kafka_topic, kafka_partition, kafka_offset, source_id, correlation_id, error_message, retry_count"
        " FROM public.dlq_events"
    )
    assert len(rows) == len(wrong) == 1000
    assert {row[:3]: row[3:] for row in rows} == {
        place: (each.employee, each.correlation, each.error, 3 if each.error == UNKNOWN else 1)
        for place, each in wrong.items()
    }
    assert {topic for topic, _, _ in wrong} == set(TOPICS)


def _right_ones_are_done(service: Service) -> None:
    assert service.ask("SELECT count(*) FROM employees WHERE id LIKE 'E%'") == [(30,)]
    assert service.ask("SELECT count(*) FROM employees WHERE name = 'Ana Maria'") == [(10,)]
    assert service.ask("SELECT count(*) FROM employees WHERE dismissed_on = '2026-06-30'") == [(10,)]


def _queries_tell(service: Service, pending: dict[Place, Event], *, resolved: tuple[str, ...] = ()) -> None:
    """S1's first four, by what was produced: these are pending, of these types some are resolved."""
    rows = service.ask(PENDING)
    assert Counter(source for _, _, source, _, _ in rows) == Counter(each.employee for each in pending.values())
    assert [row[4] for row in rows] == sorted((row[4] for row in rows), reverse=True)
    errors = Counter(each.error for each in pending.values())
    assert service.ask(TOP_ERRORS) == errors.most_common(10)
    types = Counter(each.type for each in pending.values())
    told = {each: (pending, done) for each, _, pending, done in service.ask(BY_TYPE)}
    assert told == {each: (types[each], resolved.count(each)) for each in types}
    hours = service.ask(RATE)
    assert sum(count for _, count in hours) == sum(total for _, total, _, _ in service.ask(BY_TYPE)) == 1000
    [(now,)] = service.ask("SELECT CURRENT_TIMESTAMP::timestamp")
    assert all(now - timedelta(hours=2) < hour <= now for hour, _ in hours)


def _decided(service: Service, wrong: dict[Place, Event]) -> None:
    """One is corrected and sent again, one is resolved, one discarded."""
    assert service.ask(TIME_TO_RESOLVE) == [(None,)]
    with serving(service.desk) as served, closing(Client(served)) as client:
        ids = client.pending()
        assert len(ids) == 1000
        corrected, solved, useless = (_first(wrong, error) for error in (invalid(WRONG_CPF), UNKNOWN, TRUNCATED))
        letters = {place: ids["-".join(map(str, place))] for place in (corrected, solved, useless)}
        _shown(service, letters[useless], useless, wrong[useless])
        again = wrong[corrected]
        client.correct_and_retry(letters[corrected], payload(again.topic, again.number))
        client.asked("PUT", f"/validation/dlq/{letters[solved]}/resolve?resolvedBy=ana", status=200)
        client.asked("DELETE", f"/validation/dlq/{letters[useless]}", status=204)
        service.work()
        assert [client.status(each) for each in letters.values()] == ["RESOLVED", "RESOLVED", "DISCARDED"]
    assert service.ask(f"SELECT cpf FROM employees WHERE id = '{again.employee}'") == [("529.982.247-25",)]  # noqa: S608  the test's own
    left = {place: each for place, each in wrong.items() if place not in letters}
    _queries_tell(service, left, resolved=(again.type, wrong[solved].type))
    _resolved_within(service, [letters[corrected], letters[solved]])


def _first(wrong: dict[Place, Event], error: str) -> Place:
    return min(place for place, each in wrong.items() if each.error == error)


def _shown(service: Service, letter_id: str, place: Place, event: Event) -> None:
    told = service.show(letter_id)
    topic, partition, offset = place
    kept = told["kafka"]
    assert (kept["topic"], kept["partition"], kept["offset"]) == (topic, partition, offset)
    assert (kept["partitions"], kept["group"]) == (PARTITIONS, "esocial")
    assert told["correlation_id"] == event.correlation
    page = service.run("show", letter_id)
    assert f"Kafka topic {topic}, partition {partition}, offset {offset}, read by group esocial" in page
    assert f"correlation   {event.correlation}" in page


def _resolved_within(service: Service, resolved: list[str]) -> None:
    told = [service.show(each) for each in resolved]
    took = [
        datetime.fromisoformat(each["changed_at"]) - datetime.fromisoformat(each["created_at"]) for each in told
    ]
    [(hours,)] = service.ask(TIME_TO_RESOLVE)
    assert float(hours) == pytest.approx(sum(took, timedelta()) / len(took) / timedelta(hours=1), abs=1e-6)
