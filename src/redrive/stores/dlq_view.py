"""S1's table as a view on PostgreSQL: `public.dlq_events`, column for column, for S1's own queries and dashboards.

It is made under the same lock as our tables, and made anew when its definition changes. The comment on it says
that it is ours and which definition it has. Whatever else has its name, a table that S1's program made for itself
above all, is never touched: the store works without the view, and `redrive db check` says so.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from redrive.stores.dlq_view_sql import statements
from redrive.stores.postgres_options import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

_REMEDY = 'or give store.view another name, or "none"'


class ViewName(NamedTuple):
    schema: str
    name: str

    @classmethod
    def read(cls, written: str) -> ViewName:
        schema, _, name = written.partition(".")
        return cls(schema, name)

    @property
    def sql(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def is_due(connection: Connection, written: str | None) -> bool:
    """Whether the view is missing or out of date, and it is likely that it can be made."""
    if written is None:
        return False
    view = ViewName.read(written)
    found = _comment_on(connection, view)
    if found is None:
        return _may_create(connection, view)
    return _is_ours(connection, found) and found != _mark(connection, view)


def keep(connection: Connection, written: str | None) -> None:
    """Makes the view, or makes it anew, and drops those of ours that have another name. What cannot be done is
    left: no letter depends on it.
    """
    view = None if written is None else ViewName.read(written)
    for old in _our_views(connection):
        if old != view:
            _try(connection, [f"DROP VIEW {old.sql}"])
    if view is not None and is_due(connection, written):
        made = [*statements(_schema(connection), view.sql), _comment(connection, view)]
        # Replacing keeps what others were granted, and what they built on it; it cannot change a column's type.
        if not _try(connection, made):
            _try(connection, [f"DROP VIEW {view.sql}", *made])


def problems(connection: Connection, written: str | None) -> Iterator[str]:
    """What keeps the view from being there, with the remedy."""
    if written is None:
        return
    view = ViewName.read(written)
    found = _comment_on(connection, view)
    if found is not None and not _is_ours(connection, found):
        yield f"{view} is not our view and is left alone: rename it, {_REMEDY}"
    elif found is not None and found != _mark(connection, view):
        yield f"the view {view} is not up to date: run `redrive db upgrade` as its owner"
    elif found is None and not _has_schema(connection, view):
        yield f"there is no schema {view.schema} for the view {view}: make it, {_REMEDY}"
    elif found is None and not _may_create(connection, view):
        role = connection.scalar(text("SELECT current_user"))
        grant = f"GRANT CREATE ON SCHEMA {quoted(view.schema)} TO {quoted(str(role))}"
        yield f"role {role} may not make the view {view}: {grant}, {_REMEDY}"
    elif found is None:
        yield f"there is no view {view}: run `redrive db upgrade`, {_REMEDY}"


def _try(connection: Connection, wanted: list[str]) -> bool:
    """All of the statements, or none of them."""
    try:
        with connection.begin_nested():
            for statement in wanted:
                connection.exec_driver_sql(statement)
    except DBAPIError as refusal:
        if refusal.connection_invalidated:
            raise
        return False
    return True


_COMMENT = text(
    "SELECT coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema AND c.relname = :name"
)
_VIEWS = text(
    "SELECT n.nspname, c.relname, d.description FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0"
    " WHERE c.relkind = 'v'"
)


def _comment_on(connection: Connection, view: ViewName) -> str | None:
    """None: nothing has that name."""
    found: str | None = connection.scalar(_COMMENT, view._asdict())
    return found


def _our_views(connection: Connection) -> list[ViewName]:
    rows = connection.execute(_VIEWS).all()
    return [ViewName(row.nspname, row.relname) for row in rows if _is_ours(connection, row.description)]


def _is_ours(connection: Connection, comment: str) -> bool:
    return comment.startswith(_beginning(_schema(connection)))


def _beginning(schema: str) -> str:
    return f"Letters of Redrive's schema {quoted(schema)}, read-only; definition "


def _mark(connection: Connection, view: ViewName) -> str:
    """What the comment says on a view that is as it should be."""
    schema = _schema(connection)
    definition = "\n".join(statements(schema, view.sql))
    return _beginning(schema) + hashlib.sha256(definition.encode()).hexdigest()[:16]


def _comment(connection: Connection, view: ViewName) -> str:
    written = _mark(connection, view).replace("'", "''")
    return f"COMMENT ON VIEW {view.sql} IS '{written}'"


def _schema(connection: Connection) -> str:
    return str(connection.scalar(text("SELECT current_schema()")))


def _has_schema(connection: Connection, view: ViewName) -> bool:
    query = text("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = :schema)")
    return bool(connection.scalar(query, {"schema": view.schema}))


def _may_create(connection: Connection, view: ViewName) -> bool:
    query = text(
        "SELECT coalesce(bool_or(has_schema_privilege(oid, 'CREATE')), false) FROM pg_namespace"
        " WHERE nspname = :schema"
    )
    return bool(connection.scalar(query, {"schema": view.schema}))
