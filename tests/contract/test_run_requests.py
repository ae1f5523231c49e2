"""A run that is asked for twice, because nobody heard the answer, is one run."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from redrive.dead_letter import Status
from redrive.editing import Set, json_value
from redrive.errors import Refused, UsageError
from redrive.letter_query import LetterQuery
from redrive.run import RunChange, RunPlan, RunStatus
from redrive.search import parse
from redrive.stores import open_store
from redrive.testing.letters import NOON
from redrive.testing.store_case import ANN
from redrive.testing.store_runs import BOB, a_plan, every_claim, recorded, running, send
from support.cut_commit import CutCommit
from support.opened_postgres import opened as opened_postgres
from support.store_database import Database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.stores import RunStore


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[RunStore]:
    store = open_store(database.url)
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize("reaches_server", [True, False])
async def test_a_run_whose_commit_is_cut_off_is_made_once(
    postgres_store_url: str, *, reaches_server: bool
) -> None:
    async with CutCommit(postgres_store_url) as line, opened_postgres(line.url) as store:
        await recorded(store, 3)
        line.cut("INSERT INTO runs", reaches_server=reaches_server)

        made = await store.create_run(a_plan(), by=BOB)

        assert line.cuts == 1
        assert [run.id for run in await store.runs()] == [made.id]
        assert [each.what for each in await store.run_history(made.id)] == ["requested"]
        assert len(await every_claim(store, made.id)) == 3


async def test_the_same_key_is_the_same_run_whatever_became_of_it(database: Database) -> None:
    async with opened(database) as store, opened(database) as other:
        await recorded(store, 2)
        made = await store.create_run(a_plan(), by=BOB, key="nightly 17")
        await send(store, await every_claim(store, made.id))
        await store.change_run(made.id, RunChange.FINISH, by=ANN)
        await recorded(store, 1)

        again = await other.create_run(a_plan(), by=ANN, key="nightly 17")

        assert (again.id, again.status, again.total, again.requested_by) == (made.id, RunStatus.DONE, 2, "bob")
        found = await other.keyed_run("nightly 17")
        assert found is not None
        assert found.id == made.id
        assert await other.keyed_run("nightly 18") is None
        assert (await other.create_run(a_plan(), by=ANN, key="nightly 18")).id != made.id
        assert len(await store.runs()) == 2


async def test_runs_without_a_key_are_each_their_own(database: Database) -> None:
    async with opened(database) as store:
        assert await running(store) != await running(store)


async def test_many_who_ask_at_once_by_one_key_get_one_run(database: Database) -> None:
    async with opened(database) as store, opened(database) as other:
        stores: list[RunStore] = [store, other] * 5
        made = await asyncio.gather(*(each.create_run(a_plan(), by=BOB, key="once") for each in stores))

        assert len({run.id for run in made}) == len(await store.runs()) == 1


@pytest.mark.parametrize(
    "other",
    [
        a_plan(queue="orders"),
        a_plan(ids=("0" * 36,)),
        replace(a_plan(), target="elsewhere"),
        replace(a_plan(), to_origin=True),
        replace(a_plan(), quarantined=True, reason="seen"),
        replace(a_plan(), edit=(Set(path="a", value=json_value(1)),)),
    ],
    ids=["queue", "letters", "target", "origin", "quarantined", "edit"],
)
async def test_another_request_by_the_same_key_is_refused(database: Database, other: RunPlan) -> None:
    async with opened(database) as store:
        made = await store.create_run(a_plan(), by=BOB, key="nightly")

        with pytest.raises(Refused, match=made.id):
            await store.create_run(other, by=BOB, key="nightly")

        assert len(await store.runs()) == 1


async def test_a_filter_by_age_is_the_same_request_a_minute_later(database: Database) -> None:
    def plan(minutes: int, text: str = "age:>2d queue:orders") -> RunPlan:
        now = NOON + timedelta(minutes=minutes)
        return RunPlan(selection=LetterQuery(where=parse(text, now=now), created_before=now), at_most=minutes + 1)

    async with opened(database) as store:
        made = await store.create_run(plan(0), by=BOB, key="nightly")

        assert (await store.create_run(plan(1), by=BOB, key="nightly")).id == made.id
        with pytest.raises(Refused):
            await store.create_run(plan(0, "age:<2d queue:orders"), by=BOB, key="nightly")


@pytest.mark.parametrize("key", ["", " ", "a\nb", "k" * 201, "\ud800"])
async def test_a_key_is_a_short_text_on_one_line(database: Database, key: str) -> None:
    async with opened(database) as store:
        with pytest.raises(UsageError):
            await store.create_run(a_plan(status=Status.PENDING), by=BOB, key=key)
