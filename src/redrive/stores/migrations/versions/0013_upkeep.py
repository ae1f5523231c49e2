"""Duties: work that one process of all does at a time, such as retention. Erasures: who asked for one, and who
approved it. An older version does neither.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "duties",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", _TEXT, nullable=True),
        sa.Column("held_until", sa.BigInteger(), nullable=True),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_duties"),
    )
    op.create_table(
        "erasures",
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("requested_by", _TEXT, nullable=False),
        sa.Column("reason", _TEXT, nullable=False),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("found", sa.BigInteger(), nullable=False),
        sa.Column("approved_by", _TEXT, nullable=True),
        sa.Column("erased", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_erasures"),
        sa.CheckConstraint("approved_by IS NULL OR approved_by <> requested_by", name="ck_erasures_approver"),
    )
