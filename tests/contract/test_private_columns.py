"""A store with privacy: what is masked is in no plain column, and letters are found by it all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from redrive.dead_letter import Status
from redrive.errors import ConfigurationError
from redrive.fingerprint import fingerprint
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.privacy.maskers import Maskers
from redrive.privacy.rules import MaskingRules
from redrive.run import RunPlan
from redrive.search import parse
from redrive.search_match import matches
from redrive.stores import DeadLetterStore, Store
from redrive.testing.letters import NOON, a_failure, a_message, an_entry
from redrive.testing.store_case import ANN, letter, returned, sent
from support.private_letters import Canary, canaries, letter_about, plain_store, private_store
from support.search_corpus import Asker, an_order, facts_of, seeded
from support.store_database import Database, FileDatabase, opened

DATA: dict[str, Any] = {
    "customer": {"cpf": "529.982.247-25", "email": "ana@example.com", "city": "Recife"},
    "note": "call 390.533.447-05 now",
    "n": 11144477735,
    "nested": [["x@y.com"]],
    "items": [{"mail": "a@b.com"}, {"mail": "c@d.com"}],
    "987.654.321-00": {"password": "of a key"},
}
HEADERS = (("x-token", "hunter2"), ("who", "bob@example.com"), ("who", 7), ("n", 11144477735))
OWN = [
    "529.982.247-25",
    '"529.982.247-25"',
    "52998224725",
    "data.customer.cpf:52998224725",
    "data.customer.cpf:529.982.247-25",
    "data.customer.cpf:52998224725,1",
    "data.customer.email:ana@example.com",
    "data.customer.email:ANA@example.com",
    "data.customer.city:Recife",
    'data.note:"call 390.533.447-05 now"',
    "data.n:11144477735",
    "data.nested:x@y.com",
    "data.items.mail:c@d.com",
    "data.items.1.mail:c@d.com",
    '"of a key"',
    "header.x-token:hunter2",
    "header.who:bob@example.com",
    "header.who:7",
    "header.n:11144477735",
    "hunter2",
    "bob@example.com",
    "390.533.447-05",
    "153.509.460-56",
    "inv*",
    '"cpf invalid"',
]
"""What finds the letter and no other."""
NOT_ITS_OWN = [
    "390.533.447-06",
    "529.982.247*",
    "data.customer.cpf:5299822472*",
    "data.customer.cpf:>1",
    "data.customer.email:bob@example.com",
    "data.email:ana@example.com",
    'data.note:"call 529.982.247-25 now"',
    "header.x-token:ana@example.com",
    "header.token:hunter2",
    "hunter",
    '"hunter2 of"',
]


def asking(text: str) -> LetterQuery:
    return LetterQuery(where=parse(text, now=NOON + timedelta(days=1)), limit=500)


async def found(store: DeadLetterStore, text: str) -> set[str]:
    return {each.id for each in await store.find(asking(text))}


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    async with private_store(database.url) as opened_store:
        yield opened_store


async def _recorded(store: DeadLetterStore) -> tuple[str, str]:
    """A letter with all of DATA, and another one."""
    message = Message.create(id="m", sent_at=NOON, queue="orders", data=DATA, headers=HEADERS)
    told = a_failure(text="CPF 153.509.460-56 invalid, password=abcdef")
    letter_id, _ = await store.record(an_entry(message=message, failures=(told,)))
    other = Message.create(id="o", sent_at=NOON, queue="orders", data={"customer": {"cpf": "111.222.333-96"}})
    other_id, _ = await store.record(an_entry(message=other))
    return letter_id, other_id


async def test_a_letter_is_found_by_what_is_masked_in_it_and_by_nothing_else(store: DeadLetterStore) -> None:
    letter_id, other_id = await _recorded(store)

    for text in OWN:
        assert await found(store, text) == {letter_id}, text
        assert await found(store, f"-{text}") == {other_id}, text
        assert (await store.count(asking(text))).number == 1, text
    for text in NOT_ITS_OWN:
        assert await found(store, text) == set(), text
        assert await found(store, f"-{text}") == {letter_id, other_id}, text


async def test_columns_and_lists_are_masked_and_the_story_is_exact(
    store: DeadLetterStore, database: Database
) -> None:
    letter_id, _ = await _recorded(store)

    [(text,)] = database.fetch(f"SELECT text FROM letters WHERE id = '{letter_id}'")  # noqa: S608  an id of ours
    failed = database.fetch(f"SELECT text FROM failures WHERE letter_id = '{letter_id}'")  # noqa: S608  likewise
    [listed] = await store.find(LetterQuery(ids=(letter_id,)))
    whole = await letter(store, letter_id)

    assert failed == [(text,)]
    assert text == listed.text == "CPF [cpf] invalid, password=[masked]"
    assert whole.text == whole.failures[-1].text == "CPF 153.509.460-56 invalid, password=abcdef"
    assert whole.message.data == DATA
    assert whole.message.headers == HEADERS


async def test_letters_of_one_cause_are_one_group_whose_title_is_masked(store: DeadLetterStore) -> None:
    for secret in ("abcdef", "ghijkl"):
        told = a_failure(text=f"no order for {secret}@example.com, see password=abcdef")
        cause = fingerprint(told, queue="orders")
        await store.record(replace(an_entry(failures=(told,)), fingerprint=cause))

    [group] = await store.groups()

    assert (group.id, group.total) == (cause.id, 2)
    assert "abcdef" in cause.title
    assert group.title == "NoCustomer: no order for <email>, see password=[masked]"


async def test_what_a_message_says_about_itself_is_masked_too(database: Database) -> None:
    rules = MaskingRules(fields=("correlation_id",), hidden=(("eventType",),))
    message = a_message(
        body=b'{"eventType": "person x", "correlationId": "c1"}', key=b"529.982.247-25", headers=(("a", "b"),)
    )
    async with private_store(database.url, Maskers(queues={"orders": rules})) as store:
        await store.record(an_entry(message=message, quarantine="no way to read 529.982.247-25"))
        history = (await letter(store, (await store.find(LetterQuery()))[0].id)).history

    facts = database.fetch("SELECT event_type, source_id, correlation_id, how FROM letters")
    assert facts == [("[masked]", "[cpf]", "[masked]", "no way to read [cpf]")]
    assert history[0].reason == "no way to read [cpf]"


async def test_each_of_200_letters_is_found_by_its_own_values_alone(store: DeadLetterStore) -> None:
    planted = canaries(300)
    owners: dict[str, set[str]] = {}
    for number in range(200):
        own = (planted[number], planted[(number * 7 + 1) % 300], planted[(number * 13 + 2) % 300])
        letter_id, _ = await store.record(letter_about(*own, identity=f"{number}"))
        for each in own:
            owners.setdefault(each.value, set()).add(letter_id)
    in_data = {planted[number].value: number for number in range(200)}

    for canary in planted[::3]:
        assert await found(store, f'"{canary.value}"') == owners.get(canary.value, set()), canary
        at = await found(store, f'data.customer.{canary.field}:"{canary.value}"')
        assert len(at) == (canary.value in in_data), canary
        assert at <= owners.get(canary.value, set()), canary


async def test_whatever_is_asked_letters_answer_as_they_are_shown(store: DeadLetterStore) -> None:
    """`search_match` over the letters with their masks is what a filter means; masked values come on top."""
    random, masker = seeded(17), Maskers().general
    ids = [(await store.record(an_order(random, number)))[0] for number in range(40)]
    shown = [masker.letter(await letter(store, each)) for each in ids]
    owners = dict.fromkeys((each.group_id for each in shown), None)
    facts = {each.id: facts_of(each, None) for each in shown}
    asker = Asker(seeded(1), shown, owners)

    for _ in range(60):
        filter_ = asker.filter()
        expected = {each.id for each in shown if matches(filter_, each, **facts[each.id])}
        assert {each.id for each in await store.find(LetterQuery(where=filter_, limit=500))} == expected, filter_


async def test_a_run_takes_letters_by_a_masked_value(store: Store) -> None:
    letter_id, _ = await _recorded(store)
    plan = RunPlan(selection=asking("data.customer.cpf:52998224725"), reason="test")

    run = await store.create_run(plan, by=ANN)
    taken = await store.take(run.id, owner="engine", at_most=10, lease=60)

    assert run.total == 1
    assert [each.letter_id for each in taken.claims] == [letter_id]


async def test_what_was_recorded_before_is_masked_and_found_when_it_is_indexed_anew(database: Database) -> None:
    planted = canaries(60, "before")
    async with opened(database) as plain:
        ids = [
            (await plain.record(letter_about(*planted[number : number + 3], identity=f"{number}")))[0]
            for number in range(0, 60, 3)
        ]
        await sent(plain, ids[0])
        assert await plain.index() == 20
        before = [await letter(plain, each) for each in ids]
    assert any(_plain(database, planted))

    async with private_store(database.url) as store:
        assert await store.search_backlog() == 0, "they are found, as they were indexed"
        assert await store.search_backlog(outdated=True) == 20
        assert await store.index(at_most=7) > 0
        left = await store.search_backlog(outdated=True)
        assert 0 < left < 20 + 7
    async with private_store(database.url) as store:
        while await store.index():
            pass
        assert await store.search_backlog(outdated=True) == 0
        assert [await letter(store, each) for each in ids] == before
        for number, letter_id in enumerate(ids):
            for canary in planted[number * 3 : number * 3 + 3]:
                assert await found(store, f'"{canary.value}"') == {letter_id}, canary

    assert _plain(database, planted) == []


async def test_an_older_version_at_work_beside_it_is_caught_up_with(database: Database) -> None:
    planted = canaries(6, "beside")
    async with opened(database) as older, private_store(database.url) as store:
        by_older, _ = await older.record(letter_about(*planted[:3], identity="by the older"))
        by_newer, _ = await store.record(letter_about(*planted[3:], identity="by the newer"))
        assert await older.index() == 2
        claim = await sent(older, by_newer)
        await older.record(returned(claim, failures=(a_failure(text=planted[5].in_a_text),)))
        while await store.index():
            pass

        assert _plain(database, planted) == []
        assert await found(store, f'"{planted[0].value}"') == {by_older}
        assert await found(store, f'"{planted[5].value}"') == {by_newer}
        assert (await letter(older, by_newer)).status is Status.PENDING


async def test_a_letter_that_somebody_is_changing_is_masked_later(postgres_url: str) -> None:
    """Whoever indexes waits for nobody, and forgets nobody."""
    one, other = canaries(2)
    async with plain_store(postgres_url) as plain, private_store(postgres_url) as store:
        held, _ = await plain.record(letter_about(one, one, one))
        await plain.record(letter_about(other, other, other))
        somebody = await asyncpg.connect(postgres_url)
        async with somebody.transaction():
            await somebody.execute("SELECT 1 FROM redrive.letters WHERE id = $1 FOR UPDATE", held)
            async with asyncio.timeout(20):
                assert await store.index() >= 1
            assert await store.search_backlog() == 1
            assert not await found(store, f'"{one.value}"')
        await somebody.close()

        while await store.index():
            pass
        assert await found(store, f'"{one.value}"') == {held}
        [listed] = await store.find(LetterQuery(ids=(held,)))
        assert one.value not in listed.text


async def test_a_process_with_another_search_key_is_told(database: Database) -> None:
    async with private_store(database.url, secret=b"one") as store:
        await _recorded(store)
        await store.index()
    async with private_store(database.url, secret=b"another") as store:
        with pytest.raises(ConfigurationError, match="another masking"):
            await found(store, "52998224725")
        await _recorded(store)
        with pytest.raises(ConfigurationError, match="another masking"):
            await store.index()


async def test_hashes_of_two_stores_have_nothing_in_common(database: Database, tmp_path: Path) -> None:
    tokens = []
    for each in (database, FileDatabase(tmp_path / "second.db")):
        async with private_store(each.url) as store:
            await _recorded(store)
            await store.index()
        words = " ".join(str(row[0]) for row in each.fetch("SELECT words FROM search_parts"))
        tokens.append({word.strip("'") for word in words.split() if word.strip("'").startswith("·h")})
    assert tokens[0]
    assert not tokens[0] & tokens[1]


def _plain(database: Database, planted: list[Canary]) -> list[str]:
    """Canaries in columns that should have none."""
    return [
        canary.value
        for statement in (
            "SELECT text, how, event_type, source_id, correlation_id FROM letters",
            "SELECT text FROM failures",
            "SELECT title FROM groups",
            "SELECT words, facts FROM search_parts",
        )
        for row in database.fetch(statement)
        for canary in planted
        if any(canary.value in str(each) for each in row)
    ]
