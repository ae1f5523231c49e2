"""Which schema a database has. Apart from `upgrade`, so that Alembic is imported only when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import column, inspect, select, table

from redrive.stores.schema import VERSION_TABLE

if TYPE_CHECKING:
    from sqlalchemy import Connection


def version_of(connection: Connection) -> str | None:
    """The schema's version, or None where there is no schema of ours."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
    return found
