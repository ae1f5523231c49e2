"""Runs in the database itself: several processes at one run, what the tables forbid, what outlives a letter."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from redrive.run import Run
from redrive.stores import RunStore
from redrive.stores.upgrade import check
from redrive.testing.store_case import ANN, place
from redrive.testing.store_runs import BOB, a_plan, an_approval, every_claim, recorded, running, send
from support.store_database import Database, opened

ENGINE = """
import asyncio, sys
from redrive.dead_letter import Actor, Transition
from redrive.run import Settled
from redrive.stores import open_store

async def main(url, run, name):
    store = open_store(url)
    print("ready", flush=True)
    sys.stdin.readline()
    while claims := (await store.take(run, owner=name, at_most=7, lease=60)).claims:
        settled = [Settled(claim, Transition.SENT) for claim in claims]
        assert await store.settle_together(settled, by=Actor(name)) == len(claims)
        print(*(claim.letter_id for claim in claims), flush=True)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


@asynccontextmanager
async def store_of_runs(database: Database) -> AsyncIterator[RunStore]:
    async with opened(database) as store:
        yield cast("RunStore", store)


async def _run(store: RunStore, run_id: str) -> Run:
    found = await store.run(run_id)
    assert found is not None
    return found


def _engines(url: str, run: str, number: int) -> list[list[str]]:
    """The letters that each process took."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    engines: list[Any] = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", ENGINE, url, run, f"e{each}"], text=True, **pipes)
        for each in range(number)
    ]
    for engine in engines:
        assert engine.stdout.readline() == "ready\n"
    for engine in engines:
        engine.stdin.write("go\n")
        engine.stdin.flush()
    ended = [engine.communicate(timeout=60) for engine in engines]
    assert [told for _, told in ended] == [""] * number
    return [said.split() for said, _ in ended]


async def test_processes_at_one_run_take_all_letters_and_none_twice(database: Database) -> None:
    async with store_of_runs(database) as store:
        ids = await recorded(store, 200)
        run = await running(store)

        shares = await asyncio.to_thread(_engines, database.url, run, 3)

        assert sorted(each for share in shares for each in share) == sorted(ids)
        found = await _run(store, run)
        assert (found.progress.taken, found.progress.sent, found.exhausted) == (200, 200, True)
        assert (await store.count(LetterQuery(status=Status.REDRIVEN))).number == 200
    assert check(database.url).healthy


async def test_the_tables_themselves_refuse_that_somebody_approves_what_they_asked_for(database: Database) -> None:
    async with store_of_runs(database) as store:
        run = await store.create_run(a_plan(), by=BOB, approval=an_approval(a_plan(), 0))

        with pytest.raises(Exception, match="ck_runs_approver"):
            database.fetch("UPDATE runs SET approved_by = requested_by, status = 'RUNNING'")

        assert await store.run(run.id) == run


async def test_a_letter_that_is_deleted_by_whomever_leaves_its_redrives_of_runs_and_no_others(
    database: Database,
) -> None:
    async with store_of_runs(database) as store:
        alone = await place(store, Status.RESOLVED)
        await recorded(store, 1)
        run = await running(store)
        [claim] = await every_claim(store, run)
        await send(store, [claim])
        await store.confirm(claim.ticket, by=ANN)

        assert await store.purge([alone.id, claim.letter_id], by=ANN) == {}

        assert database.fetch("SELECT letter_id FROM redrives") == [(claim.letter_id,)]
        assert (await _run(store, run)).progress.confirmed == 1
    assert check(database.url).healthy
