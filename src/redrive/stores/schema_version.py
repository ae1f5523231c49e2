"""Which schema a database has, and whether this Redrive can work on it.

Versions run side by side: a schema newer than ours says which is the oldest one whose code still works on it. A
migration that only adds leaves that as it is; one that takes something away raises it to itself.

Apart from `upgrade`, so that Alembic is imported only when it is needed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import column, inspect, select, table

from redrive.errors import Unreachable
from redrive.stores.schema import COMPATIBILITY_TABLE, HEAD, VERSION_TABLE

if TYPE_CHECKING:
    from sqlalchemy import Connection

migrating = threading.Lock()
"""One migration at a time per process: Alembic keeps the one that runs in variables of its module."""


class SchemaVersion(NamedTuple):
    current: str | None
    """None where there is no schema of ours."""
    oldest: str | None
    """The oldest Redrive, by its own HEAD, that may work on it; None where it does not say so."""

    @property
    def is_outdated(self) -> bool:
        return self.current is None or self.current < HEAD

    @property
    def is_usable(self) -> bool:
        """Ours, or a newer one that ours may work on."""
        if self.is_outdated:
            return False
        return self.current == HEAD or (self.oldest is not None and self.oldest <= HEAD)

    def refusal(self, place: str) -> Unreachable:
        return Unreachable(
            f"{place} was changed by a newer Redrive: its schema is {self.current}, this one knows {HEAD}",
            remedy="install that version of redrive, or give store.url another place",
        )


def schema_version(connection: Connection) -> SchemaVersion:
    there = inspect(connection)
    if not there.has_table(VERSION_TABLE):
        return SchemaVersion(None, None)
    current = connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
    if not there.has_table(COMPATIBILITY_TABLE):
        return SchemaVersion(current, None)
    return SchemaVersion(
        current, connection.scalar(select(column("oldest")).select_from(table(COMPATIBILITY_TABLE)))
    )
