"""Encryption: wrapped data keys, and which of them has sealed the exact columns of a row. NULL: none, they are
plain, as they are in every row that is there already.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "data_keys",
        sa.Column("id", sa.LargeBinary(), nullable=False),
        sa.Column("queue", _TEXT, nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("kek_id", sa.Text(), nullable=False),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        sa.Column("uses", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_data_keys"),
    )
    op.create_index("uq_data_keys_queue_day_turn", "data_keys", ["queue", "day", "turn"], unique=True)
    op.add_column("revisions", sa.Column("data_key", sa.LargeBinary(), nullable=True))
    op.add_column("failures", sa.Column("data_key", sa.LargeBinary(), nullable=True))
