"""What the server says becomes our error with its remedy, whatever wraps it."""

from __future__ import annotations

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from redrive.errors import ConfigurationError, CorruptFile, RedriveError, Unreachable, UsageError
from redrive.stores.postgres_errors import explain, is_lost, is_out_of_date, is_transient
from redrive.stores.postgres_options import PostgresAddress

ADDRESS = PostgresAddress("postgresql://ann:hunter2@db.example/shop")


def from_server(state: str, text: str = "what the server says", detail: str = "a value") -> asyncpg.PostgresError:
    """As asyncpg makes it of the server's answer."""
    error = asyncpg.PostgresError.new({"C": state, "M": text, "D": detail, "S": "ERROR", "V": "ERROR"})
    assert isinstance(error, asyncpg.PostgresError)
    return error


def wrapped(error: BaseException) -> DBAPIError:
    """As it comes through SQLAlchemy: under a class of its own that has the driver's as its cause."""
    adapted = Exception("adapted")
    adapted.__cause__ = error
    return DBAPIError("INSERT", {"body": "a value"}, adapted, hide_parameters=True)


@pytest.mark.parametrize(
    ("state", "kind", "remedy"),
    [
        ("28P01", Unreachable, "password in store.url"),
        ("28000", Unreachable, "pg_hba.conf"),
        ("3D000", Unreachable, "CREATE DATABASE"),
        ("42501", Unreachable, "redrive db upgrade"),
        ("53100", Unreachable, "free some disk space"),
        ("53200", Unreachable, "short of memory"),
        ("53300", Unreachable, "store.pool_size"),
        ("57014", Unreachable, "store.statement_timeout"),
        ("55P03", Unreachable, "store.lock_timeout"),
        ("40001", Unreachable, "try again"),
        ("40P01", Unreachable, "try again"),
        ("25006", Unreachable, "primary"),
        ("57P01", Unreachable, "stopping or starting"),
        ("57P03", Unreachable, "stopping or starting"),
        ("08006", Unreachable, "network"),
        ("58030", Unreachable, "server's log"),
        ("42P01", Unreachable, "newer Redrive"),
        ("42703", Unreachable, "newer Redrive"),
        ("XX001", CorruptFile, "backup"),
        ("25P01", UsageError, "begin one"),
        ("23505", RedriveError, ""),
    ],
)
def test_each_answer_has_its_error_and_its_remedy(state: str, kind: type[RedriveError], remedy: str) -> None:
    for error in (from_server(state), wrapped(from_server(state))):
        explained = explain(error, ADDRESS)

        assert type(explained) is kind
        assert isinstance(explained, RedriveError)
        assert remedy in explained.remedy
        assert "a value" not in str(explained)
        assert "hunter2" not in str(explained)


def test_words_that_may_quote_a_value_are_not_told() -> None:
    explained = explain(from_server("22P02", 'invalid input syntax for type integer: "4711"'), ADDRESS)

    assert "4711" not in str(explained)
    assert "22P02" in str(explained)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (OSError(), "OSError"),
        (TimeoutError(), "did not answer in time"),
        (asyncpg.InterfaceError("connection is closed"), "broke"),
        (asyncpg.InternalClientError("unexpected"), "broke"),
    ],
)
def test_what_the_system_and_the_driver_say_is_unreachable(error: Exception, told: str) -> None:
    explained = explain(error, ADDRESS)

    assert isinstance(explained, Unreachable)
    assert told in str(explained)
    assert is_lost(error)
    assert is_lost(wrapped(error))
    assert not is_transient(error)


def test_an_error_of_somebody_else_stays_what_it_is() -> None:
    error = ValueError("ours")

    assert explain(error, ADDRESS) is error
    assert not is_lost(error)
    assert not is_transient(error)
    assert not is_out_of_date(error)


@pytest.mark.parametrize(
    ("state", "transient", "lost"),
    [
        ("40001", 1, 0),
        ("40P01", 1, 0),
        ("55P03", 1, 0),
        ("57P01", 0, 1),
        ("08003", 0, 1),
        ("57014", 0, 0),
        ("23505", 1, 0),
        ("23502", 0, 0),
    ],
)
def test_only_what_was_rolled_back_because_of_others_is_worth_another_try(
    state: str, transient: int, lost: int
) -> None:
    error = wrapped(from_server(state))

    assert (is_transient(error), is_lost(error)) == (bool(transient), bool(lost))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql://ann:hunter2@db.example:6432/shop?sslmode=require",
            "postgresql://ann:***@db.example:6432/shop",
        ),
        ("postgresql://ann:hun@ter2@db.example/shop", "postgresql://ann:***@db.example/shop"),
        ("postgresql://db.example/shop?password=hunter2", "postgresql://db.example/shop"),
    ],
)
def test_the_address_never_shows_a_password(url: str, shown: str) -> None:
    assert str(PostgresAddress(url)) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hun/ter2@db.example/shop",
        "postgresql://ann:hunter2@db.example:5432x/shop",
        "postgresql://ann:hunter2@db.example:99999/shop",
        "postgresql://ann:hunter2@one:5432,two:x/shop",
    ],
)
def test_what_is_no_port_is_told_before_the_driver_quotes_it(url: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        PostgresAddress(url)
    assert "hun" not in str(refusal.value)


@pytest.mark.parametrize("hosts", ["db.example", "[::1]", "[::1]:5432", "one:5432,two:5433", "one,two", ""])
def test_hosts_may_have_ports_and_may_be_several(hosts: str) -> None:
    assert PostgresAddress(f"postgresql://ann:hunter2@{hosts}/shop").database == "shop"
