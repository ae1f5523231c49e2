"""Alembic's way in. The connection and its transaction are the caller's: redrive.stores.upgrade."""

from __future__ import annotations

from alembic import context

from redrive.stores.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite cannot alter a column in place
)
context.run_migrations()
