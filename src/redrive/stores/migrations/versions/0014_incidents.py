"""Alerts: incidents, the numbers that rules compare with, and what processes report of themselves. An older
version knows none of them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "incidents",
        sa.Column("key", _TEXT, nullable=False),
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("rule", _TEXT, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("queue", _TEXT, nullable=False),
        sa.Column("group_id", _TEXT, nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("snoozed_until", sa.BigInteger(), nullable=True),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("untold", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_incidents"),
        sa.UniqueConstraint("id", name="uq_incidents_id"),
    )
    failed = sa.text("status IN ('FAILED', 'STOPPED')")
    op.create_index("ix_runs_failed", "runs", ["ended_at"], postgresql_where=failed, sqlite_where=failed)
    op.create_index("ix_incidents_status_changed_at", "incidents", ["status", "changed_at"])
    op.create_table(
        "samples",
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("at", name="pk_samples"),
    )
    op.create_table(
        "processes",
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_processes"),
    )
