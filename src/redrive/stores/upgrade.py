"""Migrations, run by Alembic without an ini file, and a look at a database's health (`redrive db`)."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import exists, func, select

from redrive.dead_letter import Transition
from redrive.errors import Unreachable
from redrive.stores.schema import HEAD, claims, groups, letters, revisions
from redrive.stores.schema_version import version_of
from redrive.stores.sql_guard import target
from redrive.stores.sqlite_file import SqliteFile, one_moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Select

MIGRATIONS = Path(__file__).with_name("migrations")


class Checkup(msgspec.Struct, frozen=True, kw_only=True):
    """What `check` found. Healthy: nothing in `damage`, nothing in `problems`."""

    current: str | None
    head: str
    damage: tuple[str, ...]
    """What SQLite's own integrity check says about the file."""
    problems: tuple[str, ...]
    """What does not add up in what the file says."""

    @property
    def healthy(self) -> bool:
        return not (self.damage or self.problems)


def upgrade(url: str) -> str:
    """Makes the database or brings it up to date, and gives its version. Safe to repeat, and to interrupt."""
    with _file(url) as file:
        file.prepare()
    return HEAD


def require(url: str) -> None:
    """Raises Unreachable if there is no such file; makes none."""
    with _file(url) as file, file.connect_as_it_is():
        pass


def check(url: str) -> Checkup:
    """Looks and changes nothing. Raises Unreachable if there is no such file."""
    with _file(url) as file, file.connect_as_it_is() as connection, one_moment(connection):
        current = version_of(connection)
        damage = tuple(_damage(connection))
        problems = tuple(_problems(connection)) if current == HEAD else (_outdated(current),)
    return Checkup(current=current, head=HEAD, damage=damage, problems=problems)


def run_migrations(connection: Connection, path: str) -> None:
    """From whatever version to HEAD, in the caller's transaction."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    current = version_of(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise Unreachable(
            f"{path} was made by a newer Redrive: its schema is {current}, this one knows {HEAD}",
            remedy="install that version of redrive, or give store.url another file",
        )
    command.upgrade(config, "head")


@contextlib.contextmanager
def _file(url: str) -> Iterator[SqliteFile]:
    file = SqliteFile(url)
    try:
        yield file
    except Exception as error:
        explained = file.explain(error)
        if explained is error:
            raise
        raise explained from error
    finally:
        file.dispose()


def _outdated(current: str | None) -> str:
    return f"the schema is {current or 'missing'}, not {HEAD}: run `redrive db upgrade`"


def _damage(connection: Connection) -> Iterator[str]:
    for (line,) in connection.exec_driver_sql("PRAGMA integrity_check"):
        if line != "ok":
            yield str(line)
    for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"a row of {row[0]} belongs to no row of {row[2]}"


def _problems(connection: Connection) -> Iterator[str]:
    for problem, query in _PROBLEMS.items():
        number = connection.scalar(select(func.count()).select_from(query.subquery())) or 0
        if number:
            yield f"{number} {problem}, for example {connection.scalar(query.limit(1))}"


_redriving = str(target(Transition.CLAIM))
_counted = select(func.count()).where(letters.c.group_id == groups.c.id).scalar_subquery()
_group = exists().where(groups.c.id == letters.c.group_id)
_message = exists().where(revisions.c.letter_id == letters.c.id, revisions.c.number == letters.c.revision)
_claim = exists().where(claims.c.letter_id == letters.c.id, claims.c.fence == letters.c.fence)

_PROBLEMS: dict[str, Select[str]] = {
    "groups whose total is not the number of their letters": select(groups.c.id).where(groups.c.total != _counted),
    "letters without their group": select(letters.c.id).where(~_group),
    "letters without their message": select(letters.c.id).where(~_message),
    "letters being redriven that nobody has claimed": (
        select(letters.c.id).where(letters.c.status == _redriving, ~_claim)
    ),
    "letters claimed and not being redriven": (
        select(letters.c.id).join(claims, claims.c.letter_id == letters.c.id).where(letters.c.status != _redriving)
    ),
}
