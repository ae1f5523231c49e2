"""S1's table as a view: made, made anew, never in anybody's way, and true to the letters."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import asyncpg
import msgspec
import pytest

from redrive.dead_letter import Status
from redrive.failure import Failure, Frame, Raised
from redrive.kafka_origin import MAGIC, Origin, properties_of
from redrive.message import Message
from redrive.stores import dlq_view, dlq_view_sql, open_store
from redrive.stores.upgrade import check, upgrade
from redrive.testing.letters import NOON, a_failure, a_message, an_entry
from redrive.testing.store_case import ANN, letter, place
from support.hostile import corpus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from redrive.stores import DeadLetterStore
    from support.postgres_server import PostgresServer

COLUMNS = {
    "id": "bigint",
    "event_id": "text",
    "event_type": "text",
    "source_table": "text",
    "source_id": "text",
    "event_payload": "jsonb",
    "error_message": "text",
    "stack_trace": "text",
    "retry_count": "integer",
    "max_retries": "integer",
    "status": "text",
    "created_at": "timestamp without time zone",
    "last_retry_at": "timestamp without time zone",
    "resolved_at": "timestamp without time zone",
    "resolved_by": "text",
    "kafka_offset": "bigint",
    "kafka_partition": "integer",
    "kafka_topic": "text",
    "correlation_id": "text",
}
"""S1's, in its order; texts without its limits (SD5), and S3's correlation ids, which are no UUIDs."""


class Server:
    """The test's database, from the outside."""

    def __init__(self, postgres: PostgresServer, url: str) -> None:
        self._postgres = postgres
        self.url = url

    def fetch(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._postgres.fetch(statement, *values, url=self.url)

    def views(self) -> list[str]:
        rows = self.fetch(
            "SELECT schemaname || '.' || viewname FROM pg_views"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
        )
        return [name for (name,) in rows]

    def row(self, columns: str = "*", view: str = "public.dlq_events") -> tuple[Any, ...]:
        [row] = self.fetch(f"SELECT {columns} FROM {view}")  # noqa: S608  the test's own
        return row


@pytest.fixture
def server(postgres: PostgresServer, postgres_url: str) -> Server:
    return Server(postgres, postgres_url)


@asynccontextmanager
async def opened(server: Server, **options: Any) -> AsyncIterator[DeadLetterStore]:
    store = open_store(server.url, **options)
    try:
        yield store
    finally:
        await store.close()


def test_the_view_has_s1s_columns_in_s1s_order(server: Server) -> None:
    upgrade(server.url)

    found = server.fetch(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = 'dlq_events' ORDER BY ordinal_position"
    )

    assert list(found) == list(COLUMNS.items())
    assert check(server.url).problems == ()


async def test_opening_a_store_is_enough_to_make_it(server: Server) -> None:
    async with opened(server, view=None) as store:
        await store.record(an_entry())
        assert server.views() == []

    async with opened(server) as store:
        await store.statistics()

    assert server.views() == ["public.dlq_events"]
    assert check(server.url, view=None).problems == ()


def test_another_name_makes_another_view_and_upgrade_drops_the_old_one(server: Server) -> None:
    server.fetch("CREATE SCHEMA reports")
    upgrade(server.url)
    upgrade(server.url, view="reports.DeadEvents")
    assert server.views() == ["reports.DeadEvents"]

    upgrade(server.url, view=None)

    assert server.views() == []


async def test_a_changed_definition_makes_it_anew_and_what_was_granted_stays(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(server.url)
    server.fetch("GRANT SELECT ON public.dlq_events TO PUBLIC")
    view = dlq_view_sql._VIEW

    monkeypatch.setattr(
        dlq_view_sql, "_VIEW", view.replace("letter.correlation_id\n", "letter.correlation_id, 1 AS extra\n")
    )
    async with opened(server) as store:
        await store.record(an_entry())
    assert server.row("extra") == (1,)
    granted = "SELECT has_table_privilege('public', 'public.dlq_events', 'SELECT')"
    assert server.fetch(granted) == [(True,)]

    monkeypatch.setattr(dlq_view_sql, "_VIEW", view.replace("letter.correlation_id\n", "1 AS one\n"))
    assert any("not up to date" in problem for problem in check(server.url).problems)
    upgrade(server.url)
    assert server.row("one") == (1,)
    assert check(server.url).problems == ()


@pytest.mark.parametrize("kind", ["TABLE", "VIEW", "MATERIALIZED VIEW", "SEQUENCE"])
async def test_what_is_not_ours_is_never_touched_and_told(server: Server, kind: str) -> None:
    content = "" if kind == "SEQUENCE" else "AS SELECT 17 AS mine"
    server.fetch(f"CREATE {kind} public.dlq_events {content}")

    async with opened(server) as store:
        letter_id, _ = await store.record(an_entry())
        assert (await letter(store, letter_id)).id == letter_id
    upgrade(server.url)
    upgrade(server.url, view=None)

    [problem] = check(server.url).problems
    assert "public.dlq_events is not our view and is left alone" in problem
    assert 'store.view another name, or "none"' in problem
    if kind != "SEQUENCE":
        assert server.row() == (17,)
    assert check(server.url, view=None).problems == ()


async def test_the_view_of_another_schemas_letters_is_not_ours(server: Server) -> None:
    upgrade(server.url)

    async with opened(server, schema="second") as store:
        await store.record(an_entry())

    assert server.fetch("SELECT count(*) FROM public.dlq_events") == [(0,)]
    [problem] = check(server.url, schema="second").problems
    assert "not our view" in problem


@pytest.fixture
def clerk(server: Server) -> Iterator[str]:
    """The URL of a role that may make a schema of its own here, and nothing else."""
    name = server.url.rpartition("/")[2]
    server.fetch(f"CREATE ROLE clerk_of_{name} LOGIN")
    server.fetch(f"GRANT CREATE ON DATABASE {name} TO clerk_of_{name}")
    parts = urlsplit(server.url)
    yield parts._replace(netloc=f"clerk_of_{name}@{parts.hostname}:{parts.port}").geturl()
    server.fetch(f"DROP OWNED BY clerk_of_{name} CASCADE")
    server.fetch(f"DROP ROLE clerk_of_{name}")


async def test_a_role_that_may_not_create_it_works_without_it(server: Server, clerk: str) -> None:
    server.fetch("CREATE SCHEMA locked")
    store = open_store(clerk, view="locked.dlq_events")
    await store.record(an_entry())
    await store.close()

    [refused] = check(clerk, view="locked.dlq_events").problems
    [missing] = check(clerk, view="nowhere.dlq_events").problems

    assert f'GRANT CREATE ON SCHEMA "locked" TO "{urlsplit(clerk).username}"' in refused
    assert "there is no schema nowhere" in missing
    assert server.views() == []


async def test_who_may_select_from_it_needs_no_right_on_our_schema(
    server: Server, clerk: str, postgres: PostgresServer
) -> None:
    async with opened(server) as store:
        await store.record(an_entry())
    server.fetch(f"GRANT SELECT ON public.dlq_events TO {urlsplit(clerk).username}")

    [row] = postgres.fetch("SELECT event_payload, stack_trace FROM public.dlq_events", url=clerk)

    assert None not in row
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        postgres.fetch("SELECT id FROM redrive.letters", url=clerk)


async def test_what_others_built_on_it_keeps_nobody_from_opening(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(server.url)
    server.fetch("CREATE VIEW public.mine AS SELECT id FROM public.dlq_events")
    monkeypatch.setattr(dlq_view_sql, "_VIEW", dlq_view_sql._VIEW.replace("AS event_id", "AS other_id"))

    async with opened(server) as store:
        await store.record(an_entry())

    assert server.fetch("SELECT count(*) FROM public.mine") == [(1,)]
    assert any("not up to date" in problem for problem in check(server.url).problems)


async def test_it_is_read_only_and_says_what_to_use_instead(server: Server) -> None:
    async with opened(server) as store:
        await place(store, Status.RESOLVED)

    for statement in (
        "DELETE FROM public.dlq_events WHERE status = 'RESOLVED'",
        "UPDATE public.dlq_events SET status = 'RESOLVED'",
        "INSERT INTO public.dlq_events (event_id) VALUES ('x')",
    ):
        with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError, match="read-only") as refusal:
            server.fetch(statement)
        assert "redrive" in (refusal.value.hint or "")
    assert server.row("status") == ("RESOLVED",)


async def test_a_row_says_what_its_letter_says(server: Server) -> None:
    body = b'{"event_type": "EMPLOYEE_HIRED", "source_id": 4711, "correlation_id": "abc", "cpf": "123"}'
    message = a_message(body=body, source="employees")
    failures = tuple(a_failure(number, at=NOON + timedelta(minutes=number)) for number in (1, 2, 3))
    entry = an_entry(message=message, failures=failures, at=NOON + timedelta(minutes=3))
    async with opened(server) as store:
        placed = await place(store, Status.RESOLVED, entry)
        told = await letter(store, placed.id)

    [row] = server.fetch("SELECT to_jsonb(row) FROM (SELECT * FROM public.dlq_events) AS row")
    found = json.loads(row[0])

    expected = {
        "id": 1,
        "event_id": message.id,
        "event_type": "EMPLOYEE_HIRED",
        "source_table": "employees",
        "source_id": "4711",
        "event_payload": json.loads(body),
        "error_message": "order 17 has no customer",
        "stack_trace": failures[-1].trace,
        "retry_count": 3,
        "max_retries": 3,
        "status": "RESOLVED",
        "resolved_by": ANN.name,
        "kafka_offset": None,
        "kafka_partition": None,
        "kafka_topic": None,
        "correlation_id": "abc",
    }
    assert {name: found[name] for name in expected} == expected
    times = server.row("created_at, last_retry_at, resolved_at")
    naive = [each.replace(tzinfo=None) for each in (told.created_at, told.last_attempt_at, told.changed_at)]
    assert list(times) == naive


NOWHERE = (None, None, None)
_LONG = "t" * 249
ORIGINS: dict[bytes, tuple[Any, ...]] = {
    properties_of(Origin("employee-create", 2, 17, 6, 1_700_000_000_000, "esocial")): ("employee-create", 2, 17),
    properties_of(Origin("employee-create", 0, 128)): ("employee-create", 0, 128),
    properties_of(Origin(_LONG, 255, 65_535)): (_LONG, 255, 65_535),
    properties_of(Origin("t" * 32, 65_536, 2**32)): ("t" * 32, 65_536, 2**32),
    properties_of(Origin("\u00e1", 2**31 - 1, 2**63 - 1)): ("\u00e1", 2**31 - 1, 2**63 - 1),
    properties_of(Origin("t", 2**31, 2**64 - 1)): ("t", None, None),
    properties_of(Origin("t", -1, -1)): ("t", None, None),
    properties_of(Origin("\0", 1, 1)): (None, 1, 1),
    MAGIC + msgspec.msgpack.encode([1, "a", "b"]): NOWHERE,
    MAGIC + msgspec.msgpack.encode(["t"]): ("t", None, None),
    MAGIC + b"\x93\xd9": NOWHERE,
    MAGIC: NOWHERE,
    b"": NOWHERE,
    b"amqp\x00" + msgspec.msgpack.encode(["t", 1, 1]): NOWHERE,
}


async def test_a_row_says_where_in_kafka_its_message_was_first_read_and_is_never_an_error(server: Server) -> None:
    async with opened(server) as store:
        for number, properties in enumerate(ORIGINS):
            message = a_message(id=f"{number}", properties=properties)
            await store.record(an_entry(message=message, identity=f"{number}"))

    found = {
        int(number): tuple(place)
        for number, *place in server.fetch(
            "SELECT event_id, kafka_topic, kafka_partition, kafka_offset FROM public.dlq_events"
        )
    }

    assert found == dict(enumerate(ORIGINS.values()))


async def test_times_are_those_of_the_session(server: Server) -> None:
    async with opened(server) as store:
        await store.record(an_entry())

    server.fetch("ALTER DATABASE " + server.url.rpartition("/")[2] + " SET TimeZone = 'America/Sao_Paulo'")

    assert server.row("created_at") == ((NOON - timedelta(hours=3)).replace(tzinfo=None),)
    assert server.row("created_at::timestamptz = '2026-01-01 12:00:00+00'") == (True,)


PAYLOADS: dict[bytes | None, Any] = {
    None: None,
    b"": None,
    b"no JSON": None,
    b"\xff\xfe": None,
    b'{"a": "\\u0000"}': None,
    b'{"a": "\\ud800"}': None,
    b"[" * 100_000: None,
    b"17": 17,
    b'{"a": 1e400}': "too big for Python to compare",
    b'{"data": 1}': {"data": 1},
}


async def test_a_payload_is_the_event_or_nothing_and_never_an_error(server: Server) -> None:
    ours = Message.create(id="ours", sent_at=NOON, queue="orders", data={"cpf": "123"}, metadata={"a": 1})
    async with opened(server) as store:
        for number, body in enumerate(PAYLOADS):
            await store.record(an_entry(message=a_message(id=f"{number}", body=body)))
        await store.record(an_entry(message=ours))

    found = dict(server.fetch("SELECT event_id, event_payload::text FROM public.dlq_events"))

    assert json.loads(found.pop("ours")) == {"cpf": "123"}
    for number, (body, expected) in enumerate(PAYLOADS.items()):
        if body == b'{"a": 1e400}':
            assert found[str(number)].startswith('{"a": 1000')
        else:
            assert (None if found[str(number)] is None else json.loads(found[str(number)])) == expected


async def test_an_edited_payload_is_shown_as_it_is_now(server: Server) -> None:
    async with opened(server) as store:
        letter_id, _ = await store.record(an_entry(message=a_message(body=b'{"cpf": "wrong"}')))
        await store.revise(letter_id, a_message(body=b'{"cpf": "right"}'), base=0, by=ANN)

    assert json.loads(server.row("event_payload")[0]) == {"cpf": "right"}


def _traced(*chain: Raised) -> Failure:
    return msgspec.structs.replace(a_failure(), chain=chain)


_FRAMES = (Frame("a.py", 1, "f", "f()", own=True), Frame("b.py", 2, "g", "", own=False))


@pytest.mark.parametrize(
    "failure",
    [
        a_failure(),
        _traced(Raised("ValueError", "", ())),
        _traced(Raised("ValueError", "two\nlines", _FRAMES)),
        _traced(*(Raised("E", link, _FRAMES, link) for link in ("cause", "context", "member", "nonsense", ""))),
        _traced(Raised('E"%s\\', "100% \\n \\u0041 'quoted' \U0001f600", (Frame('"', 1, "%L", "\t%", own=True),))),
    ],
)
async def test_a_stack_trace_is_the_one_that_people_read(server: Server, failure: Failure) -> None:
    async with opened(server) as store:
        await store.record(an_entry(failures=(failure,)))

    assert server.row("stack_trace") == (failure.trace,)


async def test_a_nul_in_a_stack_trace_is_shown_as_its_symbol(server: Server) -> None:
    failure = _traced(Raised("E", "a\x00\x00b \\u0000 \\\x00 \\\\\x00", ()))
    async with opened(server) as store:
        await store.record(an_entry(failures=(failure,)))

    assert server.row("stack_trace") == (failure.trace.replace("\x00", "\u2400"),)


async def test_a_failure_in_another_form_has_no_trace_here(server: Server) -> None:
    async with opened(server) as store:
        letter_id, _ = await store.record(an_entry())
        former = msgspec.msgpack.encode(a_failure())
        server.fetch("UPDATE redrive.failures SET told = $1", former)
        assert (await letter(store, letter_id)).failures == (a_failure(),)

    assert server.row("stack_trace") == (None,)


async def test_the_hostile_corpus_can_be_selected(server: Server) -> None:
    messages = [each.message for each in corpus()]
    async with opened(server) as store:
        for message in messages:
            await store.record(an_entry(message=message))

    [(number, payloads)] = server.fetch(
        "SELECT count(*), count(event_payload) FROM (SELECT * FROM public.dlq_events) AS rows"
        " WHERE length(rows::text) > 0"
    )

    assert number == len(messages)
    assert 0 < payloads < number


def test_a_name_is_read_into_its_parts() -> None:
    assert dlq_view.ViewName.read("public.dlq_events").sql == '"public"."dlq_events"'
