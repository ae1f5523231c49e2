"""Every store keeps the ledger; among processes, through a kill, and off the path of recording."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, cast

import pytest
from sqlalchemy import Engine, event

from redrive.clock import Clock
from redrive.dead_letter import Status, Transition
from redrive.ledger import TOKEN, Deed, LedgerKey, Subject
from redrive.ledger_verifying import Fault
from redrive.stores import RunStore, open_store
from redrive.stores.postgres import PostgresStore
from redrive.stores.sqlite import SqliteStore
from redrive.testing.letters import an_entry
from redrive.testing.store_case import ANN, letter, place
from redrive.testing.store_contract_ledger import KEY, LedgerContract, entries, findings
from redrive.testing.store_runs import recorded
from support.cut_commit import CutCommit
from support.opened_postgres import opened as opened_postgres
from support.store_database import Database


class TestLedgerInAFile(LedgerContract):
    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/letters.db"

    def open(self, location: str, clock: Clock) -> RunStore:
        return SqliteStore(location, clock=clock, ledger_key=KEY)


class TestLedgerInMemory(LedgerContract):
    shared = False

    @pytest.fixture
    def location(self) -> str:
        return "sqlite:///:memory:"

    def open(self, location: str, clock: Clock) -> RunStore:
        return SqliteStore(location, clock=clock, ledger_key=KEY)


class TestLedgerOnPostgres(LedgerContract):
    @pytest.fixture
    def location(self, postgres_store_url: str) -> str:
        return postgres_store_url

    def open(self, location: str, clock: Clock) -> RunStore:
        return PostgresStore(location, clock=clock, ledger_key=KEY)


CHANGE = """
import asyncio, sys
from redrive.dead_letter import Actor, Transition
from redrive.ledger import LedgerKey
from redrive.stores import open_store

async def main(url, name, *ids):
    store = open_store(url, ledger_key=LedgerKey(b"a secret of at least 32 characters"))
    await store.signing_key()
    print("ready", flush=True)
    sys.stdin.readline()
    for each in ids:
        await store.change([each], Transition.DISCARD, by=Actor(name))
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def changing(url: str, name: str, ids: list[str], faults: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", CHANGE, url, name, *ids]
    pipe = subprocess.PIPE
    environ = {**os.environ, "REDRIVE_FAULTS": faults}
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environ)


def opened(database: Database, key: LedgerKey | None = KEY) -> RunStore:
    return open_store(database.url, ledger_key=key)


async def test_two_processes_writing_at_once_leave_no_gap(database: Database) -> None:
    store = opened(database)
    ids = await recorded(store, 60)
    # Some are left to each, so that both write even where one of them is much quicker.
    both = [changing(database.url, "one", ids[:50]), changing(database.url, "two", ids[:9:-1])]
    for each in both:
        assert cast("IO[str]", each.stdout).readline() == "ready\n"

    done = await asyncio.gather(*(asyncio.to_thread(each.communicate, "\n", 60) for each in both))

    assert [(each.returncode, err) for each, (_, err) in zip(both, done, strict=True)] == [(0, "")] * 2
    rows = await entries(store)
    assert [each.seq for each in rows] == list(range(1, 61))
    assert sorted(each.subject.ids for each in rows) == sorted((each,) for each in ids)
    assert {each.who for each in rows} == {"one", "two"}
    assert await findings(store) == []
    await store.close()


@pytest.mark.parametrize(("point", "there"), [("store.before_commit", 0), ("store.after_commit", 1)])
async def test_killed_beside_the_commit_the_change_and_its_row_are_both_there_or_none(
    database: Database, point: str, there: int
) -> None:
    store = opened(database)
    letter_id = (await place(store, Status.PENDING)).id
    await store.signing_key()  # so that its first commit is the change's
    killed = changing(database.url, "one", [letter_id], faults=f"{point}=kill9")

    await asyncio.to_thread(killed.communicate, "\n", 60)

    assert killed.returncode == -9
    assert (await letter(store, letter_id)).status is (Status.DISCARDED if there else Status.PENDING)
    assert len(await entries(store)) == there
    assert await findings(store) == []
    again = changing(database.url, "one", [letter_id])
    assert await asyncio.to_thread(again.communicate, "\n", 60) == ("ready\n", "")
    assert [each.seq for each in await entries(store)] == [1]
    await store.close()


@pytest.mark.parametrize("reaches_server", [True, False])
async def test_what_is_noted_by_a_commit_that_is_cut_off_is_there_once(
    postgres_store_url: str, *, reaches_server: bool
) -> None:
    async with CutCommit(postgres_store_url) as line, opened_postgres(line.url, ledger_key=KEY) as store:
        await store.runs()
        line.cut("INSERT INTO ledger", reaches_server=reaches_server)

        await store.note(Deed(what="denied", subject=Subject(TOKEN), allowed=False), by=ANN)

        assert line.cuts == 1
        assert [each.what for each in await entries(store)] == ["denied"]
        assert await findings(store) == []


async def test_recording_does_not_touch_the_ledger(database: Database) -> None:
    store = opened(database)
    await store.runs()
    said: list[str] = []
    listen = lambda *given: said.append(given[2])  # noqa: E731  it has to be taken away again
    event.listen(Engine, "before_cursor_execute", listen)
    try:
        letter_id, _ = await store.record(an_entry("it"))
        await store.record(an_entry("it"))
        await store.record_together([an_entry(str(number)) for number in range(3)])
        recording, said[:] = [*said], []
        await store.change([letter_id], Transition.DISCARD, by=ANN)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    await store.close()

    assert recording
    assert not [each for each in recording if "ledger" in each]
    assert [each for each in said if "ledger" in each]


async def test_rows_by_several_keys_are_verified_by_all_of_them(database: Database) -> None:
    new = LedgerKey(b"another secret of 32 characters.")
    first, second = opened(database), opened(database, new)
    await first.note(Deed(what="first", subject=Subject(TOKEN)), by=ANN)
    await second.note(Deed(what="second", subject=Subject(TOKEN)), by=ANN)

    assert [each.what for each in await entries(first)] == ["first", "key changed", "second"]
    assert await findings(first, KEY, new) == []
    assert [each.fault for each in await findings(first, KEY)] == [Fault.UNKNOWN_KEY]
    assert [each.fault for each in await findings(first, new)] == [Fault.UNKNOWN_KEY]
    for store in (first, second):
        await store.close()


async def test_without_a_key_there_are_no_rows(database: Database) -> None:
    store = opened(database, None)
    letter_id = (await place(store, Status.PENDING)).id
    await store.change([letter_id], Transition.DISCARD, by=ANN)
    assert await entries(store) == []
    assert await findings(store) == []
    await store.close()
