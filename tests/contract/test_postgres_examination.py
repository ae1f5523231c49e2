"""The doctor's look at a real PostgreSQL: each setting that loses letters, made real on a server of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from redrive.errors import Unreachable
from redrive.finding import Finding, FindingLevel
from redrive.stores.postgres_options import PostgresOptions
from redrive.stores.postgres_questions import QUESTIONS, _ages, _replication, _slots, _version
from redrive.stores.upgrade import examine, upgrade
from support import postgres_server
from support.patience import until_now
from support.postgres_server import PrivatePostgres

OPTIONS = PostgresOptions()
WITHIN = 30.0
IN_MEMORY = "postgres-in-memory"  # where the servers of the tests are


@pytest.fixture(scope="module")
def server() -> Iterator[PrivatePostgres]:
    found = postgres_server.own()
    yield found
    found.clean_up()


@pytest.fixture
def url(server: PrivatePostgres) -> Iterator[str]:
    """Of a store."""
    made = server.new_database()
    upgrade(made)
    yield made
    server.drop_database(made)


def database_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}"))


@contextmanager
def set_on(server: PrivatePostgres, **settings: str) -> Iterator[None]:
    """For the whole server, as an administrator does it."""
    shown = {name: server.fetch(f"SHOW {name}")[0][0] for name in settings}
    for name, value in settings.items():
        server.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    _reload(server, settings)
    try:
        yield
    finally:
        for name in settings:
            server.execute(f"ALTER SYSTEM RESET {name}")
        _reload(server, shown)


def _reload(server: PrivatePostgres, expected: dict[str, str]) -> None:
    server.execute("SELECT pg_reload_conf()")
    until_now(lambda: all(server.fetch(f"SHOW {name}") == [(value,)] for name, value in expected.items()))


def told(found: list[Finding]) -> dict[str, FindingLevel]:
    return {
        each.check: each.level for each in found if each.level is not FindingLevel.OK and each.check != IN_MEMORY
    }


def said(found: list[Finding], check: str) -> str:
    [one] = [each.what for each in found if each.check == check]
    return one


def test_a_server_as_it_should_be_has_nothing_to_tell_but_where_its_folder_is(url: str) -> None:
    found = examine(url, within=WITHIN)
    assert told(found) == {}
    assert {each.check for each in found} <= {"postgres", IN_MEMORY}


def test_a_server_that_does_not_sync_or_writes_half_pages(server: PrivatePostgres, url: str) -> None:
    with set_on(server, fsync="off", full_page_writes="off"):
        assert told(examine(url, within=WITHIN)) == {
            "fsync": FindingLevel.PROBLEM,
            "full-page-writes": FindingLevel.PROBLEM,
        }
    assert told(examine(url, within=WITHIN)) == {}


class TestSynchronousCommit:
    def test_off_for_the_server(self, server: PrivatePostgres, url: str) -> None:
        with set_on(server, synchronous_commit="off"):
            found = examine(url, within=WITHIN)
        assert told(found) == {"synchronous-commit": FindingLevel.PROBLEM}
        assert "off for the whole server" in said(found, "synchronous-commit")

    def test_off_for_the_database(self, server: PrivatePostgres, url: str) -> None:
        server.execute(f"ALTER DATABASE {database_of(url)} SET synchronous_commit = off")
        found = examine(url, within=WITHIN)
        assert told(found) == {"synchronous-commit": FindingLevel.PROBLEM}
        assert "off for this database" in said(found, "synchronous-commit")

    @pytest.mark.parametrize("where", ["", "IN DATABASE"])
    def test_off_for_the_role(self, server: PrivatePostgres, url: str, where: str) -> None:
        server.execute("CREATE ROLE hasty LOGIN")
        inside = f"{where} {database_of(url)}" if where else ""
        server.execute(f"ALTER ROLE hasty {inside} SET synchronous_commit = off")
        try:
            found = examine(as_role(url, "hasty"), within=WITHIN)
            assert told(found)["synchronous-commit"] is FindingLevel.PROBLEM
            assert "off for this role" in said(found, "synchronous-commit")
            # Somebody else is told too, for workers may come as that role.
            found = examine(url, within=WITHIN)
            assert told(found) == {"synchronous-commit": FindingLevel.WARN}
            assert "role 'hasty'" in said(found, "synchronous-commit")
        finally:
            server.execute(f"ALTER ROLE hasty {inside} RESET synchronous_commit")
            server.execute("DROP ROLE hasty")


class TestWhoTakesNoWrites:
    def test_a_database_that_is_read_only_by_default(self, server: PrivatePostgres, url: str) -> None:
        server.execute(f"ALTER DATABASE {database_of(url)} SET default_transaction_read_only = on")
        assert told(examine(url, within=WITHIN)) == {"read-only": FindingLevel.PROBLEM}

    def test_a_standby(self) -> None:
        class Standby(PrivatePostgres):
            def follow(self) -> None:
                """From its next start on."""
                self.stop()
                (self.data / "standby.signal").touch()
                self._settings["hot_standby"] = "on"
                self.start()

            def _is_ready(self, pid: int) -> bool:
                written = self.data / "postmaster.pid"
                lines = written.read_text().splitlines() if written.exists() else []
                return super()._is_ready(pid) or (len(lines) > 7 and lines[7].strip() == "standby")

        server = Standby()
        try:
            url = server.new_database()
            upgrade(url)
            server.follow()
            found = examine(url, within=WITHIN)
            assert told(found)["standby"] is FindingLevel.PROBLEM
            assert "standby" in said(found, "standby")
        finally:
            server.clean_up()


def test_an_unlogged_table_of_ours(server: PrivatePostgres, url: str) -> None:
    server.execute("ALTER TABLE redrive.redrive_compatibility SET UNLOGGED", url=url)
    server.execute("CREATE UNLOGGED TABLE public.somebody_elses (id int)", url=url)
    found = examine(url, within=WITHIN)
    assert told(found) == {"unlogged": FindingLevel.PROBLEM}
    assert "redrive.redrive_compatibility" in said(found, "unlogged")


def test_autovacuum_off_for_the_server_or_for_a_table_of_ours(server: PrivatePostgres, url: str) -> None:
    with set_on(server, autovacuum="off"):
        assert told(examine(url, within=WITHIN)) == {"autovacuum": FindingLevel.WARN}
    server.execute("ALTER TABLE redrive.letters SET (autovacuum_enabled = false)", url=url)
    found = examine(url, within=WITHIN)
    assert told(found) == {"autovacuum": FindingLevel.WARN}
    assert "redrive.letters" in said(found, "autovacuum")


def test_limits_of_the_server_that_are_shorter_than_ours(server: PrivatePostgres, url: str) -> None:
    server.execute(f"ALTER DATABASE {database_of(url)} SET statement_timeout = '10s'")
    assert told(examine(url, within=WITHIN)) == {"statement-timeout": FindingLevel.WARN}
    assert told(examine(url, within=WITHIN, statement_timeout=5.0)) == {}


def test_a_role_with_fewer_connections_than_a_process_takes(server: PrivatePostgres, url: str) -> None:
    server.execute(f"ALTER DATABASE {database_of(url)} CONNECTION LIMIT 4")
    found = examine(url, within=WITHIN)
    assert told(found) == {"connections": FindingLevel.WARN}
    assert "this database may have 4 connections" in said(found, "connections")
    assert told(examine(url, within=WITHIN, pool_size=4)) == {}


async def test_a_server_whose_connections_are_nearly_used_up() -> None:
    server = postgres_server.own({"max_connections": "13", "superuser_reserved_connections": "3"})
    held: list[asyncpg.Connection] = []
    try:
        url = server.new_database()
        assert told(examine(url, within=WITHIN, pool_size=8)) == {}
        held += [await asyncpg.connect(url) for _ in range(5)]
        assert told(await asyncio.to_thread(examine, url, within=WITHIN, pool_size=8)) == {
            "connections": FindingLevel.WARN
        }
        held += [await asyncpg.connect(url) for _ in range(4)]
        assert told(await asyncio.to_thread(examine, url, within=WITHIN)) == {"connections": FindingLevel.PROBLEM}
    finally:
        for connection in held:
            connection.terminate()
        server.clean_up()


def test_a_synchronous_standby_that_is_not_there(server: PrivatePostgres, url: str) -> None:
    with set_on(server, synchronous_standby_names="nobody"):
        assert told(examine(url, within=WITHIN)) == {"standbys": FindingLevel.PROBLEM}


def test_a_plain_role_is_told_what_it_may_not_ask(server: PrivatePostgres, url: str) -> None:
    server.execute("CREATE ROLE plain LOGIN")
    try:
        found = examine(as_role(url, "plain"), within=WITHIN)
        assert told(found) == {"postgres-space": FindingLevel.UNKNOWN}
        assert all(each.remedy for each in found if each.level is FindingLevel.UNKNOWN)
    finally:
        server.execute("DROP ROLE plain")


def test_what_is_not_answered_in_time_is_told_question_by_question(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.stores.postgres_examination._EACH", 1e-9)
    found = told(examine(url, within=WITHIN))
    assert found.keys() == {each.check for each in QUESTIONS} | {"standbys", "replication-slot", "postgres-space"}
    assert set(found.values()) == {FindingLevel.UNKNOWN}


def test_a_server_that_is_away_is_unreachable(server: PrivatePostgres, unused_tcp_port: int) -> None:
    away = urlsplit(server.url())._replace(netloc=f"redrive@127.0.0.1:{unused_tcp_port}").geturl()
    with pytest.raises(Unreachable):
        examine(away, within=WITHIN)


class TestWhatNoTestCanMakeReal:
    """A gigabyte of log, two thousand million transactions and old releases: judged by numbers alone."""

    def levels(self, found: Iterator[Finding]) -> list[FindingLevel]:
        return [each.level for each in found]

    @pytest.mark.parametrize(
        ("transactions", "multixacts", "levels"),
        [
            (200_000_000, 0, []),
            (400_000_000, 0, [FindingLevel.WARN]),
            (0, 500_000_000, [FindingLevel.WARN]),
            (1_600_000_000, 0, [FindingLevel.PROBLEM]),
        ],
    )
    def test_wraparound(self, transactions: int, multixacts: int, levels: list[FindingLevel]) -> None:
        assert self.levels(_ages([(transactions, multixacts, 200_000_000)], OPTIONS)) == levels

    def test_releases(self) -> None:
        assert self.levels(_version([(130_014, "13.14")], OPTIONS)) == [FindingLevel.WARN]
        assert self.levels(_version([(140_000, "14.0")], OPTIONS)) == []

    def test_standbys_and_slots(self) -> None:
        assert self.levels(_replication([(True, 1, 1, 0)], OPTIONS)) == []
        assert self.levels(_replication([(False, 0, 1, 2**30 + 1)], OPTIONS)) == [FindingLevel.WARN]
        assert self.levels(_replication([(False, 0, 1, None)], OPTIONS)) == []
        assert self.levels(_slots([("old", 2**30 + 1), ("new", 5), ("none", None)], OPTIONS)) == [
            FindingLevel.WARN
        ]
