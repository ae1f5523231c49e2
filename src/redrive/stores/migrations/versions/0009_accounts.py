"""Accounts: API tokens, users, sessions, one-time codes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("grants", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", _TEXT, nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_by", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_api_tokens"),
    )
    op.create_table(
        "users",
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("grants", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", _TEXT, nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
    )
    _sessions_and_codes()


def _sessions_and_codes() -> None:
    op.create_table(
        "sessions",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("user_name", _TEXT, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("grants", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_sessions"),
    )
    op.create_index("ix_sessions_user_name", "sessions", ["user_name"])
    op.create_index("ix_sessions_last_seen_at", "sessions", ["last_seen_at"])
    op.create_table(
        "one_time_codes",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_one_time_codes"),
    )
    op.create_index("ix_one_time_codes_expires_at", "one_time_codes", ["expires_at"])
