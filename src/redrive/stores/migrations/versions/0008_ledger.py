"""The ledger: a chain of rows about what people and rules did, and where it ends."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_EXACT = ("who", "token", "what", "kind", "subject", "before", "after", "reason", "request_id")


def upgrade() -> None:
    op.create_table(
        "ledger",
        sa.Column("seq", _NUMBER, nullable=False, autoincrement=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        *(sa.Column(name, _TEXT, nullable=False) for name in _EXACT),
        sa.Column("allowed", sa.Boolean(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("key_id", "previous", "mac")),
        sa.PrimaryKeyConstraint("seq", name="pk_ledger"),
    )
    op.create_index("ix_ledger_at", "ledger", ["at"])
    op.create_index("ix_ledger_who_seq", "ledger", ["who", "seq"])
    head = op.create_table(
        "ledger_head",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("mac", "key_id", "seal")),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_head"),
    )
    op.bulk_insert(head, [{"id": 1, "seq": 0, "mac": "0" * 64, "key_id": "", "seal": ""}])
