"""Both stores keep the contract of accounts, and tell every change of them in the ledger."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from redrive.accounts import Purpose, Source
from redrive.clock import Clock
from redrive.errors import NotFound
from redrive.ledger import LedgerKey, LedgerQuery
from redrive.stores import DeadLetterStore
from redrive.stores.postgres import PostgresStore
from redrive.stores.schema_accounts import sessions
from redrive.stores.sqlite import SqliteStore
from redrive.testing import ManualClock
from redrive.testing.letters import NOON
from redrive.testing.store_case import ANN
from redrive.testing.store_contract_accounts import ADMIN, BOB, AccountContract, a_session, a_token, a_user


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "accounts.db"

    async def make() -> None:
        store = SqliteStore(f"sqlite:///{path}")
        await store.users()
        await store.close()

    asyncio.run(make())
    return path


class TestAccountsInSqlite(AccountContract):
    @pytest.fixture
    def location(self, tmp_path: Path, empty_file: Path) -> str:
        shutil.copy(empty_file, tmp_path / "accounts.db")
        return f"sqlite:///{tmp_path}/accounts.db"

    def open(self, location: str, clock: Clock) -> DeadLetterStore:
        return SqliteStore(location, clock=clock)


class TestAccountsInPostgres(AccountContract):
    @pytest.fixture
    def location(self, postgres_store_url: str) -> str:
        return postgres_store_url

    def open(self, location: str, clock: Clock) -> DeadLetterStore:
        return PostgresStore(location, clock=clock)


@pytest.fixture
async def store(tmp_path: Path, empty_file: Path) -> AsyncIterator[SqliteStore]:
    shutil.copy(empty_file, tmp_path / "accounts.db")
    opened = SqliteStore(
        f"sqlite:///{tmp_path}/accounts.db", clock=ManualClock(NOON), ledger_key=LedgerKey(b"k" * 32)
    )
    yield opened
    await opened.close()


async def test_every_change_is_one_row_of_the_ledger_and_its_repetition_is_none(store: SqliteStore) -> None:
    await store.add_code(b"c", Purpose.BOOTSTRAP, expires_at=NOON + timedelta(minutes=15))
    for _ in range(2):
        await store.redeem_bootstrap(b"c", a_session(source=Source.BOOTSTRAP, user="first start"), by=ANN)
        await store.add_token(a_token(), by=ANN)
        await store.revoke_token("abc", by=BOB)
        if await store.user("eve") is None:
            await store.add_user(a_user(), by=ANN)
            await store.add_user(a_user(), by=ANN)
        await store.set_grants("eve", ADMIN, by=ANN)
        await store.set_password("eve", "$argon2id$two", by=BOB)
        await store.set_disabled("eve", disabled=True, by=ANN)
    await store.set_disabled("eve", disabled=False, by=ANN)

    rows = sorted(await store.ledger(LedgerQuery(limit=50)), key=lambda row: row.seq)

    assert [(row.what, row.who, row.subject.kind, row.subject.ids) for row in rows] == [
        ("bootstrap code redeemed", "ann", "user", ("first start",)),
        ("token made", "ann", "token", ("abc",)),
        ("token revoked", "bob", "token", ("abc",)),
        ("user added", "ann", "user", ("eve",)),
        ("grants set", "ann", "user", ("eve",)),
        ("password set", "bob", "user", ("eve",)),
        ("user disabled", "ann", "user", ("eve",)),
        ("user enabled", "ann", "user", ("eve",)),
    ]
    assert (rows[4].before, rows[4].after) == (
        "operator:orders, operator:pay*, viewer:Ünïcode 'quoted' \\ queue",
        "admin",
    )
    told = str(rows)
    assert "argon2id" not in told
    assert "digest of" not in told


def _sessions(connection: Connection) -> list[dict[str, Any]]:
    return [row._asdict() for row in connection.execute(select(sessions))]


@pytest.mark.parametrize("change", ["password", "disabled"])
async def test_a_session_that_began_while_all_were_ended_is_over(store: SqliteStore, change: str) -> None:
    """Two transactions at once: one found the user as it was, the other ended the sessions that it saw."""
    await store.add_user(a_user(), by=ANN)
    await store.add_session(a_session())
    [row] = await store._read(_sessions)
    if change == "password":
        await store.set_password("eve", "$argon2id$two", by=ANN)
    else:
        await store.set_disabled("eve", disabled=True, by=ANN)
        await store.set_disabled("eve", disabled=False, by=ANN)

    await store._write(lambda connection: connection.execute(sessions.insert(), row))

    assert await store.session(b"s") is None


async def test_what_is_refused_leaves_no_row(store: SqliteStore) -> None:
    with pytest.raises(NotFound):
        await store.revoke_token("nobody's", by=ANN)

    assert await store.ledger(LedgerQuery(limit=50)) == []
