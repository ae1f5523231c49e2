"""An older and a newer Redrive on one store: what was there before, what only adds, and what breaks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from redrive.control import RedriveTicket
from redrive.dead_letter import Recorded, Status, Transition
from redrive.errors import Unreachable
from redrive.letter_query import LetterQuery
from redrive.stores import schema
from redrive.stores.upgrade import MIGRATIONS, check, upgrade
from redrive.testing.letters import a_message, an_entry
from redrive.testing.store_case import ANN, claimed, letter, place
from support.store_database import Database, opened, upgraded

NEXT = "9001"
"""The version of a Redrive to come."""


ADDS = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9001", "{head}"

def upgrade():
    op.add_column("letters", sa.Column("colour", sa.Text(), nullable=True))
    op.create_table("paints", sa.Column("id", sa.Integer(), primary_key=True))
    op.execute("UPDATE letters SET colour = 'red'")
"""
BREAKS = """
from alembic import op

revision, down_revision = "9001", "{head}"

def upgrade():
    op.alter_column("letters", "queue", new_column_name="basket")
    op.execute("UPDATE redrive_compatibility SET oldest = '9001'")
"""


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The migrations of a Redrive that is one version further, and has only added something."""
    return _newer(tmp_path, ADDS)


@pytest.fixture
def breaking(tmp_path: Path) -> Path:
    return _newer(tmp_path, BREAKS)


def _newer(folder: Path, migration: str) -> Path:
    copy = folder / "migrations"
    shutil.copytree(MIGRATIONS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "versions" / f"{NEXT}_paint.py").write_text(migration.replace("{head}", schema.HEAD))
    return copy


@pytest.mark.parametrize("statements", [1, 2, 3, 4])
async def test_letters_survive_an_upgrade_that_is_killed_and_then_completed(
    database: Database, newer: Path, statements: int
) -> None:
    async with opened(database) as store:
        placed = await place(store, Status.REDRIVEN)
        before = await letter(store, placed.id)

    assert upgraded(database.url, newer, NEXT, killed_after=statements) == -9
    assert check(database.url).current == schema.HEAD
    async with opened(database) as store:
        assert await letter(store, placed.id) == before

    assert upgraded(database.url, newer, NEXT) == 0
    assert database.fetch("SELECT colour FROM letters") == [("red",)]
    assert database.fetch("SELECT version_num FROM redrive_version") == [(NEXT,)]


async def test_an_older_redrive_works_on_where_a_newer_one_has_only_added_something(
    database: Database, newer: Path
) -> None:
    async with opened(database) as running:
        placed = await place(running, Status.PENDING)

        assert upgraded(database.url, newer, NEXT) == 0

        async with opened(database) as fresh:
            for store in (running, fresh):
                assert (await store.record(an_entry()))[1] is Recorded.NEW
                assert (await letter(store, placed.id)).status is Status.PENDING
            assert await running.change([placed.id], Transition.DISCARD, by=ANN) == {}
            assert len(await fresh.find(LetterQuery())) == 3
    assert upgrade(database.url) == NEXT
    assert check(database.url).healthy
    assert check(database.url).current == NEXT


async def test_an_older_redrive_refuses_politely_where_a_newer_one_has_broken_with_it(
    database: Database, breaking: Path
) -> None:
    async with opened(database) as running:
        placed = await place(running, Status.PENDING)

        assert upgraded(database.url, breaking, NEXT) == 0

        async with opened(database) as fresh:
            for attempt in (fresh.record(an_entry()), fresh.get(placed.id), fresh.statistics()):
                with pytest.raises(Unreachable, match=f"newer Redrive: its schema is {NEXT}") as refusal:
                    await attempt
                assert "install that version" in refusal.value.remedy
        for attempt in (running.record(an_entry()), running.get(placed.id)):
            with pytest.raises(Unreachable, match=r"newer Redrive|letters") as refusal:
                await attempt
            assert refusal.value.remedy
    with pytest.raises(Unreachable, match="newer"):
        upgrade(database.url)
    [problem] = check(database.url).problems
    assert "newer Redrive" in problem
    assert database.fetch("SELECT count(*) FROM letters") == [(1,)]


FIRST = {
    "letters": {
        "id": "'{id}'",
        "identity": "'{id}'",
        "message_id": "'{id}'",
        "message_queue": "'orders'",
        "sent_at": "1767268800000000",
        "queue": "'orders'",
        "handler": "'charge'",
        "status": "'{status}'",
        "kind": "'permanent'",
        "type": "'shop.NoCustomer'",
        "short_type": "'NoCustomer'",
        "text": "'no customer'",
        "group_id": "'group'",
        "generation": "1",
        "revision": "0",
        "fence": "0",
        "refusals": "0",
        "deliveries": "1",
        "delivered_at": "1767268800000000",
        "attempts": "1",
        "created_at": "1767268800000000",
        "first_attempt_at": "1767268800000000",
        "last_attempt_at": "1767268800000000",
        "changed_at": "1767268860000000",
    },
    "revisions": {
        "letter_id": "'{id}'",
        "number": "0",
        "headers": "{headers}",
        "by": "'consumer'",
        "reason": "''",
        "at": "1767268800000000",
    },
}
"""Rows as the first version wrote them."""


def _insert(table: str, columns: dict[str, str], **values: str) -> str:
    names, told = ", ".join(f'"{name}"' for name in columns), ", ".join(columns.values())
    return f"INSERT INTO {table} ({names}) VALUES ({told.format(**values)})"  # noqa: S608  ours


async def test_letters_of_the_first_version_are_counted_and_found_by_this_one(
    database: Database, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    shutil.copytree(MIGRATIONS, first, ignore=shutil.ignore_patterns("__pycache__", "000[2-9]*", "001*"))
    assert upgraded(database.url, first, "0001") == 0
    headers = "X''" if database.url.startswith("sqlite") else "''"
    for number, status in enumerate(("PENDING", "PENDING", "RESOLVED")):
        for table, columns in FIRST.items():
            database.fetch(_insert(table, columns, id=f"letter-{number}", status=status, headers=headers))
    group = {"id": "'group'", "title": "'NoCustomer'", "queue": "'orders'", "handler": "'charge'"}
    seen = {
        "first_seen": "1767268800000000",
        "last_seen": "1767268800000000",
        "total": "3",
        "example": "'letter-2'",
    }
    database.fetch(_insert("groups", group | seen))

    async with opened(database) as store:
        counted = await store.statistics()
        assert (counted.total, counted.by_status["PENDING"], counted.by_status["RESOLVED"]) == (3, 2, 1)
        assert [(each.id, each.total, each.pending) for each in await store.groups()] == [("group", 3, 2)]
        assert {each.id for each in await store.find(LetterQuery(queue="orders"))} == {
            f"letter-{number}" for number in range(3)
        }
    assert check(database.url).problems == ()


def _edited_by_one_that_knows_no_properties(database: Database) -> None:
    columns = '"number", "body", "headers", "key", "by", "reason", "at"'
    kept = '1, "body", "headers", "key", \'ann\', \'because\', "at"'
    database.fetch(f"INSERT INTO revisions (letter_id, {columns}) SELECT letter_id, {kept} FROM revisions")  # noqa: S608  ours
    database.fetch("UPDATE letters SET revision = 1")


async def test_what_an_older_redrive_edits_keeps_the_properties_it_does_not_know(database: Database) -> None:
    message = a_message(properties=b"\x00p")
    async with opened(database) as store:
        letter_id, _ = await store.record(an_entry(message=message))
        _edited_by_one_that_knows_no_properties(database)

        found = await letter(store, letter_id)
        assert [found.message, *(each.message for each in found.revisions)] == [message] * 3
        assert (await claimed(store, letter_id)).message == message


async def test_letters_of_before_there_were_properties_have_none_and_are_sent_as_they_are(
    database: Database, tmp_path: Path
) -> None:
    former = tmp_path / "former"
    shutil.copytree(MIGRATIONS, former, ignore=shutil.ignore_patterns("__pycache__", "000[5-9]*", "001*"))
    assert upgraded(database.url, former, "0004") == 0
    headers = "X''" if database.url.startswith("sqlite") else "''"
    for table, columns in FIRST.items():
        database.fetch(_insert(table, columns, id="letter-1", status="PENDING", headers=headers))

    async with opened(database) as store:
        assert (await letter(store, "letter-1")).message.properties is None
        assert (await claimed(store, "letter-1")).message.properties is None


async def test_redrives_of_before_there_were_runs_still_decide(database: Database, tmp_path: Path) -> None:
    former = tmp_path / "former"
    shutil.copytree(MIGRATIONS, former, ignore=shutil.ignore_patterns("__pycache__", "000[6-9]*", "001*"))
    assert upgraded(database.url, former, "0005") == 0
    headers = "X''" if database.url.startswith("sqlite") else "''"
    redrive = {"redrive_id": "'redrive-1'", "letter_id": "'{id}'", "generation": "1", "revision": "0"}
    times = {"claimed_at": "1767268800000000", "sent_at": "1767268860000000"}
    for table, columns in (FIRST | {"redrives": redrive | times}).items():
        database.fetch(_insert(table, columns, id="letter-1", status="REDRIVEN", headers=headers))
    database.fetch("UPDATE letters SET redrive_id = 'redrive-1'")

    async with opened(database) as store:
        assert await store.confirm(RedriveTicket("redrive-1", "letter-1", 1, "orders"), by=ANN)

        assert (await letter(store, "letter-1")).status is Status.RESOLVED
        kept = "SELECT letter_id, sent_at, outcome, run_id FROM redrives"
        assert database.fetch(kept) == [("letter-1", 1767268860000000, "confirmed", None)]
        assert await store.purge(["letter-1"], by=ANN) == {}
        assert database.fetch(kept) == []


async def test_redrives_are_counted_on_from_what_the_version_before_told(
    database: Database, tmp_path: Path
) -> None:
    former = tmp_path / "former"
    newer = {path.name for path in (MIGRATIONS / "versions").glob("0*.py") if path.name > "0015"}
    shutil.copytree(MIGRATIONS, former, ignore=shutil.ignore_patterns("__pycache__", *newer))
    assert upgraded(database.url, former, "0014") == 0
    told = "(queue, before, after, took, number, took_ms) VALUES"
    for row in ("'REDRIVING', 'REDRIVEN', 0, 4, 0", "'REDRIVEN', 'RESOLVED', 60, 2, 0", "'', 'PENDING', 0, 5, 0"):
        database.fetch(f"INSERT INTO transitions {told} ('orders', {row})")
    database.fetch(f"INSERT INTO transition_deltas {told} ('orders', 'REDRIVING', 'REDRIVEN', 0, 1, 0)")
    database.fetch(f"INSERT INTO transition_deltas {told} ('orders', 'REDRIVING', 'PENDING', 0, 7, 0)")

    async with opened(database) as store:
        counted = {each.outcome: each.number for each in (await store.numbers()).redrives}
        assert counted == {"sent": 5, "confirmed": 2, "not_sent": 7}
        await place(store, Status.REDRIVEN)
    async with opened(database) as store:  # whoever closed it has added up what was new
        assert database.fetch("SELECT count(*) FROM redrive_deltas") == [(0,)]
        counted = {each.outcome: each.number for each in (await store.numbers()).redrives}
        assert counted == {"sent": 6, "confirmed": 2, "not_sent": 7}
