"""The tables of accounts: API tokens, users, sessions, one-time codes. Of secrets there are digests alone."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Integer, LargeBinary, Table, Text

from redrive.stores.columns import ExactText, Moment
from redrive.stores.schema import metadata

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", ExactText, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("name", ExactText, nullable=False),
    Column("grants", ExactText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", ExactText, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("last_used_at", Moment),
    Column("revoked_at", Moment),
    Column("revoked_by", ExactText, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("name", ExactText, primary_key=True),
    Column("password_hash", Text, nullable=False),
    Column("grants", ExactText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", ExactText, nullable=False),
    Column("disabled", Boolean, nullable=False),
    Column("epoch", Integer, nullable=False),  # how often all sessions of the user were ended
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("user_name", ExactText, nullable=False),
    Column("source", Text, nullable=False),
    Column("grants", ExactText, nullable=False),  # of a user's session: none, the user's own hold
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("last_seen_at", Moment, nullable=False),
    Column("epoch", Integer, nullable=False),  # the user's when it began: with another one it has ended
    Index(None, "user_name"),
    Index(None, "last_seen_at"),
)

one_time_codes = Table(
    "one_time_codes",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("purpose", Text, nullable=False),
    Column("note", LargeBinary, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Index(None, "expires_at"),
)
