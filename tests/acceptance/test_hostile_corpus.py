"""F26, K12, SD5, GUARANTEES 2: whatever a producer sends fails, is stored, is shown and goes back, byte for byte,
on every store.
"""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC
from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redrive import wiring
from redrive.access import local
from redrive.actions import Actions
from redrive.app import App
from redrive.clock import SystemClock
from redrive.control import OURS, strip
from redrive.dead_letter import DeadLetter, Status
from redrive.errors import Permanent
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.message import Message
from redrive.redriving import redriven
from redrive.secret_url import SecretUrl
from redrive.settings import BrokerSettings, JournalSettings, Settings, SpoolSettings, StoreSettings
from redrive.stores import DeadLetterStore, open_store
from redrive.transports import Delivery, Names, Transport, open_transport
from support.dead_letters import dead
from support.desk import Desk
from support.hostile import QUEUE, corpus, exactly

STORES = ("sqlite", "postgresql")
CORPUS = corpus()
CASES = [pytest.param(number, id=each.name) for number, each in enumerate(CORPUS)]
RAW_CONTROL = re.compile(r"(?!\n)[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What could move a cursor, forge a line or turn the direction of writing."""


class Journey(NamedTuple):
    """One message of the corpus, the letter it became, and what arrived when that was sent back."""

    sent: Message
    letter: DeadLetter
    arrived: Delivery


class Travelled(NamedTuple):
    desk: Desk
    journeys: list[Journey]


Voyages = Callable[[str], Travelled]


@pytest.fixture(scope="module")
def voyages(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Voyages:
    """The whole corpus, once by store: sent, failed in a handler, stored, redriven, received."""

    @cache
    def voyage(store: str) -> Travelled:
        url = request.getfixturevalue("postgres").new_database() if store == "postgresql" else None
        desk = Desk(tmp_path_factory.mktemp("hostile"), store_url=url)
        return Travelled(desk, asyncio.run(_travel(desk)))

    return voyage


@pytest.fixture(scope="module", params=STORES)
def travelled(request: pytest.FixtureRequest, voyages: Voyages) -> Travelled:
    return voyages(request.param)


@pytest.fixture(scope="module")
def travelled_on_files(voyages: Voyages) -> Travelled:
    return voyages("sqlite")


async def _travel(desk: Desk) -> list[Journey]:
    await _send_and_fail(desk)
    async with desk.opened() as (store, transport):
        letters = await _letters(store)
        actions = Actions(store=store, transport=transport, clock=SystemClock(), who=local("test"))
        outcomes = await actions.retry([letter.id for letter in letters])
        assert {str(outcome.result) for outcome in outcomes} == {"sent"}
        arrived = [await _receive(transport) for _ in letters]
    by_id = {delivery.message.id: delivery for delivery in arrived}
    found = {letter.message.id: letter for letter in letters}
    return [Journey(each.message, found[each.message.id], by_id[each.message.id]) for each in CORPUS]


async def _send_and_fail(desk: Desk) -> None:
    app = App("hostile")

    @app.handler(QUEUE)
    def refuse(message: Message) -> None:
        """Fails with a text that is as hostile as the message."""
        raise Permanent((message.body or b"").decode("utf-8", "surrogateescape")[:1000])

    folder = desk.folder
    options = Settings(
        broker=BrokerSettings(url=SecretUrl(f"embedded:///{folder}/redrive-broker.db")),
        store=StoreSettings(url=SecretUrl(desk.store_url)),
        spool=SpoolSettings(folder=folder / "spool"),
        journal=JournalSettings(path=folder / "journal.db"),
    )
    async with wiring.worker(app, options) as worker:
        for each in CORPUS:
            await app.transport.send(each.message, queue=QUEUE)
        await worker.run(drain=True)


async def _letters(store: DeadLetterStore) -> list[DeadLetter]:
    query, letters = LetterQuery(limit=MAX_PAGE), []
    while page := await store.find(query):
        for each in page:
            letter = await store.get(each.id)
            assert letter is not None
            letters.append(letter)
        query = LetterQuery(limit=MAX_PAGE, after=Place.of(page[-1]))
    return letters


async def _receive(transport: Transport) -> Delivery:
    receiving = transport.receive(QUEUE, prefetch=1)
    delivery = await anext(receiving)
    await transport.ack(delivery)
    await receiving.aclose()
    return delivery


def carried(message: Message) -> dict[str, Any]:
    """Everything of a message that has to survive."""
    return {
        "id": message.id,
        "queue": message.queue,
        "source": message.source,
        "sent_at": message.sent_at,
        "key": message.key,
        "body": message.body,
        "headers": exactly(message.headers),
        "properties": message.properties,
    }


def without_ticket(message: Message) -> dict[str, Any]:
    return carried(message.with_headers(strip(message.headers)))


def test_the_corpus_has_at_least_two_hundred_messages_of_different_names_and_ids() -> None:
    assert len(CORPUS) >= 200
    assert len({each.name for each in CORPUS}) == len({each.message.id for each in CORPUS}) == len(CORPUS)


def test_there_is_one_letter_for_each_message(travelled: Travelled) -> None:
    assert len({journey.letter.id for journey in travelled.journeys}) == len(CORPUS)


@pytest.mark.parametrize("number", CASES)
def test_it_is_stored_byte_for_byte(number: int, travelled: Travelled) -> None:
    sent, letter, _ = travelled.journeys[number]

    assert letter.status is Status.PENDING
    assert carried(letter.message) == carried(sent)
    assert carried(letter.revisions[0].message) == carried(sent)


@pytest.mark.parametrize("number", CASES)
def test_it_is_redriven_byte_for_byte(number: int, travelled: Travelled) -> None:
    sent, letter, arrived = travelled.journeys[number]

    assert without_ticket(arrived.message) == without_ticket(sent)
    ours = [(name, value) for name, value in arrived.message.headers if name in OURS]
    assert [name for name, _ in ours] == [
        "x-redrive-generation",
        "x-redrive-id",
        "x-redrive-letter",
        "x-redrive-sig",
    ]
    assert dict(ours)["x-redrive-letter"] == letter.id


@pytest.mark.parametrize("number", CASES)
def test_it_can_be_shown_and_draws_nothing_on_the_terminal(number: int, travelled_on_files: Travelled) -> None:
    assert_shown(number, travelled_on_files)


@pytest.mark.parametrize("number", CASES[::20])
def test_it_is_shown_the_same_by_every_store(number: int, travelled: Travelled) -> None:
    assert_shown(number, travelled)


def assert_shown(number: int, travelled: Travelled) -> None:
    desk, letter = travelled.desk, travelled.journeys[number].letter
    page = desk.redrive("show", letter.id, "--reveal", "to look")
    record = desk.redrive("show", letter.id, "--reveal", "to look", "--output", "json")

    assert (page.code, record.code) == (0, 0), page.err + record.err
    assert letter.id in page.out
    assert not RAW_CONTROL.search(page.out + page.err)
    assert not RAW_CONTROL.search(record.out)
    assert json.loads(record.out)["id"] == letter.id


@pytest.mark.parametrize("number", [CASES[0], *CASES[30:40]])
def test_its_body_can_be_written_out_as_it_is(number: int, travelled_on_files: Travelled) -> None:
    sent, letter, _ = travelled_on_files.journeys[number]

    assert travelled_on_files.desk.redrive("show", letter.id, "--body", "--reveal", "to look").raw == (
        sent.body or b""
    )


@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_the_list_of_all_draws_nothing_on_the_terminal(output: str, travelled: Travelled) -> None:
    listed = travelled.desk.redrive("list", "--limit", "500", "--output", output)

    assert listed.code == 0, listed.err
    assert not RAW_CONTROL.search(listed.out)
    missing = [journey.letter.id for journey in travelled.journeys if journey.letter.id[:8] not in listed.out]
    assert missing == []


def test_the_list_of_all_as_csv_has_one_row_for_each_and_no_formula(travelled: Travelled) -> None:
    listed = travelled.desk.redrive("list", "--limit", "500", "--output", "csv")

    _, *rows = csv.reader(io.StringIO(listed.out, newline=""))
    assert listed.code == 0, listed.err
    assert len(rows) == len(CORPUS)
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []


def test_the_groups_and_the_statistics_of_all_draw_nothing_on_the_terminal(travelled: Travelled) -> None:
    for command in ("groups", "stats"):
        told = travelled.desk.redrive(command)
        assert told.code == 0, told.err
        assert not RAW_CONTROL.search(told.out)


@pytest.mark.parametrize("whole", [[], ["--whole"]])
def test_the_export_of_all_is_exact_and_draws_nothing_on_the_terminal(
    whole: list[str], travelled_on_files: Travelled
) -> None:
    exported = travelled_on_files.desk.redrive("export", "--unmasked", "to look", *whole)
    records = {record["id"]: record["message"] for record in map(json.loads, exported.out.splitlines())}

    assert exported.code == 0, exported.err
    assert not RAW_CONTROL.search(exported.out)
    for sent, letter, _ in travelled_on_files.journeys:
        record = records[letter.id]
        assert _decoded(record, "body") == sent.body
        assert _decoded(record, "key") == sent.key
        assert record["id"] == sent.id
        assert [name for name, _ in record["headers"]] == [name for name, _ in sent.headers]


def test_the_export_of_all_as_csv_has_one_row_for_each_and_no_formula(travelled_on_files: Travelled) -> None:
    before = csv.field_size_limit(64 * 1024 * 1024)
    exported = travelled_on_files.desk.redrive("export", "--unmasked", "to look", "--output", "csv")
    _, *rows = csv.reader(io.StringIO(exported.out, newline=""))
    csv.field_size_limit(before)

    assert exported.code == 0, exported.err
    assert len(rows) == len(CORPUS)
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []


def _decoded(record: dict[str, Any], name: str) -> bytes | None:
    value: str | None = record[name]
    if value is None:
        return None
    return value.encode() if record[f"{name}_encoding"] == "utf-8" else base64.b64decode(value)


# A thousand more

_text = st.text(st.characters(exclude_categories=()), max_size=20)
_moments = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0))  # UTC has no folds
_plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.binary(max_size=20)
    | _text
    | _moments
)
_value = st.recursive(
    _plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3)
)
_messages = st.builds(
    Message,
    id=_text,
    queue=_text,
    body=st.none() | st.binary(max_size=200) | _text.map(lambda text: text.encode("utf-8", "surrogatepass")),
    sent_at=_moments,
    headers=st.lists(st.tuples(_text, _value), max_size=5).map(tuple),
    key=st.none() | st.binary(max_size=20),
    source=st.none() | _text,
)


class House:
    """A store and a broker that stay open for a thousand messages."""

    def __init__(self, store: DeadLetterStore, transport: Transport) -> None:
        self.store = store
        self.transport = transport

    async def travel(self, message: Message) -> Journey:
        await self.transport.send(message, queue=QUEUE)
        received = await _receive(self.transport)
        letter_id, _ = await self.store.record(dead(received.message))
        letter = await self.store.get(letter_id)
        (claim,) = await self.store.claim([letter_id], owner="test", lease=60)
        await self.transport.send(redriven(claim, await self.store.signing_key()), queue=QUEUE)
        assert letter is not None
        return Journey(received.message, letter, await _receive(self.transport))

    async def close(self) -> None:
        await self.transport.close()
        await self.store.close()


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="module", params=STORES)
def house(runner: asyncio.Runner, request: pytest.FixtureRequest) -> Iterator[House]:
    url = "sqlite:///:memory:"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").new_database()

    async def build() -> House:
        return House(open_store(url), open_transport("embedded:///:memory:", names=Names()))

    built = runner.run(build())
    yield built
    runner.run(built.close())


@settings(max_examples=1000, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(message=_messages)
def test_a_thousand_generated_messages_are_stored_and_redriven_byte_for_byte(
    message: Message, house: House, runner: asyncio.Runner
) -> None:
    received, letter, arrived = runner.run(house.travel(message))

    assert carried(received) == carried(message)
    assert carried(letter.message) == carried(message)
    assert without_ticket(arrived.message) == without_ticket(message)
