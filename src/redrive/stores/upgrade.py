"""Migrations, run by Alembic without an ini file, and a look at a database's health (`redrive db`)."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from alembic import command
from alembic.config import Config
from sqlalchemy import exists, func, inspect, select, text
from sqlalchemy.exc import DBAPIError

from redrive import faults
from redrive.dead_letter import Transition
from redrive.errors import Unfinished
from redrive.registry import Driver, load_driver
from redrive.stores import (  # noqa: F401  their tables are those of the metadata too
    schema_accounts,
    schema_clock_notes,
    schema_data_keys,
    schema_duties,
    schema_erasures,
    schema_incidents,
    schema_ledger,
    schema_transitions,
)
from redrive.stores.schema import HEAD, claims, groups, letters, revisions, search_parts, search_queue
from redrive.stores.schema_version import schema_version
from redrive.stores.sql_counters import miscounted
from redrive.stores.sql_data_keys import by_kek
from redrive.stores.sql_guard import target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sqlalchemy import Connection, Select

    from redrive.finding import Finding
    from redrive.stores.schema_version import SchemaVersion

T = TypeVar("T")

MIGRATIONS = Path(__file__).with_name("migrations")
_STEPS = 10_000
"""Of SQLite's machine, between two looks at the clock: less than a millisecond."""


class Checkup(msgspec.Struct, frozen=True, kw_only=True):
    """What `check` found. Healthy: nothing in `damage`, `problems` and `risks`."""

    current: str | None
    head: str
    damage: tuple[str, ...]
    """What SQLite's own integrity check says about the file; nothing on a server."""
    problems: tuple[str, ...]
    """What does not add up in what the tables say."""
    risks: tuple[str, ...] = ()
    """What puts them at risk. `examine` looks at it more closely."""

    @property
    def healthy(self) -> bool:
        return not (self.damage or self.problems or self.risks)


class Database(Protocol):
    """One of `DATABASES`, which a URL names."""

    def upgrade(self) -> str:
        """Makes our tables or brings them up to date, in one transaction; their version."""
        ...

    def look(self, unit: Callable[[Connection], T]) -> T:
        """At one moment of whatever is there. Makes and changes nothing; Unreachable if there is nothing."""
        ...

    def problems(self, connection: Connection) -> Iterator[str]:
        """What is wrong with what belongs to our tables and is not in them."""
        ...

    def examine(self, within: float) -> list[Finding]:
        """How a server keeps what is written, whatever our tables are. Only reads."""
        ...

    def explain(self, error: BaseException) -> BaseException:
        """Our error for what the database says; anything else as it is."""
        ...

    def dispose(self) -> None: ...


_POSTGRES = Driver("redrive.stores.postgres_database", "PostgresDatabase", "postgres")

DATABASES: dict[str, Driver] = {
    "sqlite": Driver("redrive.stores.sqlite_file", "SqliteFile"),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
}


def upgrade(url: str, **options: Any) -> str:
    """Makes the database's tables or brings them up to date, and gives their version. Safe to repeat, and to
    interrupt. Tables of a newer Redrive on which this one may work are left as they are.
    """
    with _database(url, options) as database:
        return database.upgrade()


def load(url: str) -> None:
    """Imports what a look at such a database needs, and opens nothing. ConfigurationError if it is not there."""
    load_driver("store", url, DATABASES)


def require(url: str, **options: Any) -> None:
    """Raises Unreachable if there is no such store; makes none."""
    with _database(url, options) as database:
        database.look(lambda _: None)


def check(url: str, *, within: float | None = None, **options: Any) -> Checkup:
    """Looks and changes nothing. Raises Unreachable if there is no such store, Unfinished if it is not done
    `within` so many seconds.
    """
    with _database(url, options) as database:
        return database.look(
            lambda connection: _within(connection, within, lambda: _checkup(connection, database))
        )


def examine(url: str, *, within: float, **options: Any) -> list[Finding]:
    """How the database keeps what is written. Raises Unreachable if it cannot be asked; what it has not told
    `within` so many seconds is told as that.
    """
    with _database(url, options) as database:
        return database.examine(within)


def key_usage(url: str, **options: Any) -> Mapping[str, int]:
    """How many data keys each key wraps, of the store as it is. Unlike one that is opened to be worked with, it is
    not brought up to date for it. Raises Unreachable if there is no such store.
    """

    def usage(connection: Connection) -> Mapping[str, int]:
        return by_kek(connection) if inspect(connection).has_table(schema_data_keys.data_keys.name) else {}

    with _database(url, options) as database:
        return database.look(usage)


def migrate(connection: Connection, place: str) -> str:
    """From whatever version to HEAD, in the caller's transaction; the version then. Refuses what is too new."""
    found = schema_version(connection)
    if found.is_usable:  # another process may have done it while this one waited
        return found.current or ""
    if not found.is_outdated:
        raise found.refusal(place)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    faults.point("migrate.before_step")
    command.upgrade(config, "head")  # once for all steps: each time it reads every migration there is
    return schema_version(connection).current or ""


@contextlib.contextmanager
def _database(url: str, options: dict[str, Any]) -> Iterator[Database]:
    database: Database = load_driver("store", url, DATABASES)(url, **options)
    try:
        yield database
    except Exception as error:
        explained = database.explain(error)
        if explained is error:
            raise
        raise explained from None  # what the server said may quote a message
    finally:
        database.dispose()


def _within(connection: Connection, within: float | None, work: Callable[[], T]) -> T:
    """The database itself ends what takes longer, so that nothing goes on that nobody waits for."""
    if within is None:
        return work()
    deadline = time.monotonic() + within
    if connection.dialect.name == "sqlite":
        raw: Any = connection.connection.driver_connection
        raw.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    else:
        milliseconds = str(max(1, round(within * 1000)))
        connection.execute(select(func.set_config("statement_timeout", milliseconds, True)))  # noqa: FBT003  SQL's
    try:
        return work()
    except DBAPIError:
        if time.monotonic() < deadline:
            raise
        raise Unfinished(f"not done in {within:g} s") from None


def _checkup(connection: Connection, database: Database) -> Checkup:
    found = schema_version(connection)
    problems = tuple(_problems(connection)) if found.is_usable else (_unusable(found),)
    if found.current == HEAD:
        problems += tuple(database.problems(connection))
    return Checkup(
        current=found.current,
        head=HEAD,
        damage=tuple(_damage(connection)),
        problems=problems,
        risks=tuple(_risks(connection)),
    )


def _unusable(found: SchemaVersion) -> str:
    if found.is_outdated:
        return f"the schema is {found.current or 'missing'}, not {HEAD}: run `redrive db upgrade`"
    return f"the schema is {found.current}, of a newer Redrive; this one knows {HEAD}: install that version"


def _damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return  # a server looks after its files, and keeps references by itself
    for (line,) in connection.exec_driver_sql("PRAGMA integrity_check"):
        if line != "ok":
            yield str(line)
    for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"a row of {row[0]} belongs to no row of {row[2]}"


def _risks(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "postgresql" and connection.scalar(text("SHOW fsync")) == "off":
        yield "the server runs with fsync = off: a power cut may damage the whole database; turn it on"


def _problems(connection: Connection) -> Iterator[str]:
    for problem, query in _PROBLEMS.items():
        number = connection.scalar(select(func.count()).select_from(query.subquery())) or 0
        if number:
            yield f"{number} {problem}, for example {connection.scalar(query.limit(1))}"
    yield from miscounted(connection)


_redriving = str(target(Transition.CLAIM))
_group = exists().where(groups.c.id == letters.c.group_id)
_message = exists().where(revisions.c.letter_id == letters.c.id, revisions.c.number == letters.c.revision)
_claim = exists().where(claims.c.letter_id == letters.c.id, claims.c.fence == letters.c.fence)

_PROBLEMS: dict[str, Select[str]] = {
    "letters without their group": select(letters.c.id).where(~_group),
    "letters without their message": select(letters.c.id).where(~_message),
    "letters being redriven that nobody has claimed": (
        select(letters.c.id).where(letters.c.status == _redriving, ~_claim)
    ),
    "letters claimed and not being redriven": (
        select(letters.c.id).join(claims, claims.c.letter_id == letters.c.id).where(letters.c.status != _redriving)
    ),
    "claims of no letter": select(claims.c.letter_id).where(~exists().where(letters.c.id == claims.c.letter_id)),
    "letters neither searchable nor waiting to be": select(letters.c.id).where(
        ~exists().where(search_parts.c.letter_id == letters.c.id),
        ~exists().where(search_queue.c.letter_id == letters.c.id),
    ),
    "parts of the search index that belong to no letter": (
        select(search_parts.c.letter_id).where(~exists().where(letters.c.id == search_parts.c.letter_id))
    ),
}
