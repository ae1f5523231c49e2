"""Both stores tell what a run would take, and how far they look for it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from redrive.clock import Clock
from redrive.preview import Endings
from redrive.stores import RunStore, sql_preview, sql_preview_letters, sql_preview_redrives
from redrive.stores.postgres import PostgresStore
from redrive.stores.sqlite import SqliteStore
from redrive.testing.letters import NOON, an_entry
from redrive.testing.store_case import ANN, sent
from redrive.testing.store_contract_preview import OverviewContract, asking, ten


class Bounds(OverviewContract):
    async def test_what_is_too_much_to_look_at_is_told_as_at_least(
        self, store: RunStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await ten(store)
        monkeypatch.setattr(sql_preview_letters, "WINDOW", 5)
        monkeypatch.setattr(sql_preview, "LOOKED_AT", 3)

        counted = await store.overview(asking("queue:orders"))
        walked = await store.overview(asking("attempts:<100"))
        searched = await store.overview(asking("customer"))

        assert (counted.count, counted.exact, counted.looked_at) == (7, True, 3)
        assert (counted.oldest, counted.newest) == (NOON, NOON + timedelta(hours=9))
        assert (walked.count, walked.exact, walked.newest) == (3, False, None)
        assert (searched.count, searched.exact) == (3, False)

    async def test_what_lies_behind_the_window_is_not_said_to_be_nothing(
        self, store: RunStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await ten(store)
        await store.record(an_entry(attempts=7, at=NOON + timedelta(days=1)))
        monkeypatch.setattr(sql_preview_letters, "WINDOW", 5)

        told = await store.overview(asking("attempts:7"))

        assert (told.count, told.exact) == (0, False)

    async def test_only_the_last_redrives_tell_how_it_went_last_time(
        self, store: RunStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sql_preview_redrives, "RECENT", 1)
        first, second, _ = [(await store.record(an_entry()))[0] for _ in range(3)]
        assert await store.confirm((await sent(store, first)).ticket, by=ANN)
        await sent(store, second)

        assert (await store.overview(asking())).earlier == Endings(without_word=1)


class TestSqlite(Bounds):
    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/letters.db"

    def open(self, location: str, clock: Clock) -> RunStore:
        return SqliteStore(location, clock=clock)


class TestPostgres(Bounds):
    @pytest.fixture
    def location(self, postgres_store_url: str) -> str:
        return postgres_store_url

    def open(self, location: str, clock: Clock) -> RunStore:
        return PostgresStore(location, clock=clock)
