"""Alembic's way in. The connection and its transaction are the caller's: redrive.stores.upgrade."""

from __future__ import annotations

from typing import Any

from alembic import context

from redrive import faults
from redrive.stores.schema import HEAD, VERSION_TABLE, metadata


def _between_steps(ctx: Any, step: Any, heads: Any, run_args: Any) -> None:  # noqa: ARG001  called by these names
    if step.up_revision_id != HEAD:
        faults.point("migrate.before_step")


context.configure(
    on_version_apply=_between_steps,
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite cannot alter a column in place
)
context.run_migrations()
