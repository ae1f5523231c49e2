"""The tables. Migrations make them; a test compares both.

A letter's row holds what lists and decisions need and is small; bodies, headers and stack traces lie apart.
Deleting a letter's row takes everything of it along, except the audit, which outlives it.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from redrive.stores.columns import ExactText, Moment

VERSION_TABLE = "redrive_version"
"""Holds the schema's version. A name of our own: other applications have an `alembic_version`."""

HEAD = "0001"
"""The version these tables are; the newest file in migrations/versions."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _letter_id() -> Column[str]:
    return Column("letter_id", ExactText, ForeignKey("letters.id", ondelete="CASCADE"), nullable=False)


letters = Table(
    "letters",
    metadata,
    Column("id", ExactText, primary_key=True),
    Column("identity", ExactText, nullable=False, unique=True),  # or its digest, when it is long
    Column("long_identity", ExactText),
    Column("message_id", ExactText, nullable=False),
    Column("message_queue", ExactText, nullable=False),
    Column("source", ExactText),
    Column("sent_at", Moment, nullable=False),
    Column("queue", ExactText, nullable=False),
    Column("handler", ExactText, nullable=False),
    Column("status", Text, nullable=False),
    Column("how", ExactText),
    Column("kind", Text, nullable=False),
    Column("type", ExactText, nullable=False),
    Column("short_type", ExactText, nullable=False),  # its last dotted part
    Column("text", ExactText, nullable=False),
    Column("group_id", ExactText, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("fence", Integer, nullable=False),  # rises with every claim and takeover, never falls
    Column("redrive_id", ExactText),  # the redrive whose outcome decides
    Column("refusals", Integer, nullable=False),
    Column("deliveries", Integer, nullable=False),
    Column("delivered_at", Moment, nullable=False),  # tells a new delivery from a replayed write
    Column("attempts", BigInteger, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("first_attempt_at", Moment, nullable=False),
    Column("last_attempt_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Index(None, "status", "id"),
    Index(None, "queue", "id"),
    Index(None, "group_id", "id"),
)

revisions = Table(
    "revisions",
    metadata,
    _letter_id(),
    Column("number", Integer, nullable=False),  # 0 is the message as it came
    Column("body", LargeBinary),
    Column("headers", LargeBinary, nullable=False),
    Column("key", LargeBinary),
    Column("by", ExactText, nullable=False),
    Column("reason", ExactText, nullable=False),
    Column("at", Moment, nullable=False),
    PrimaryKeyConstraint("letter_id", "number"),
)

failures = Table(
    "failures",
    metadata,
    _letter_id(),
    Column("generation", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", Moment, nullable=False),
    Column("kind", Text, nullable=False),
    Column("handler", ExactText, nullable=False),
    Column("type", ExactText, nullable=False),
    Column("text", ExactText, nullable=False),
    Column("host", ExactText, nullable=False),
    Column("process", BigInteger, nullable=False),
    Column("app", ExactText, nullable=False),
    Column("app_version", ExactText, nullable=False),
    Column("environment", ExactText, nullable=False),
    Column("told", LargeBinary, nullable=False),  # the whole Failure; the columns are for searching
    PrimaryKeyConstraint("letter_id", "generation", "attempt"),
)

groups = Table(
    "groups",
    metadata,
    Column("id", ExactText, primary_key=True),
    Column("title", ExactText, nullable=False),
    Column("queue", ExactText, nullable=False),
    Column("handler", ExactText, nullable=False),
    Column("first_seen", Moment, nullable=False),
    Column("last_seen", Moment, nullable=False),
    Column("total", BigInteger, nullable=False),  # its letters; `db check` counts them again
    Column("example", ExactText, nullable=False),
)

claims = Table(
    "claims",
    metadata,
    # The primary key is the promise: one live claim per letter (G5).
    Column("letter_id", ExactText, ForeignKey("letters.id", ondelete="CASCADE"), primary_key=True),
    Column("redrive_id", ExactText, nullable=False, unique=True),
    Column("owner", ExactText, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("lease_until", Moment, nullable=False),
    Column("target", ExactText, nullable=False),
    Column("revision", Integer, nullable=False),
)

redrives = Table(
    "redrives",
    metadata,
    Column("redrive_id", ExactText, primary_key=True),
    _letter_id(),
    Column("generation", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("claimed_at", Moment, nullable=False),
    Column("sent_at", Moment),
    Column("outcome", Text),
    Column("outcome_at", Moment),
    Column("returned_as", Integer),  # the generation it came back as: a ticket comes back once
    Index(None, "letter_id"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("by", ExactText, nullable=False),
    Column("what", Text, nullable=False),
    Column("letter_id", ExactText, nullable=False),  # no foreign key: the line outlives its letter
    Column("before", ExactText, nullable=False),
    Column("after", ExactText, nullable=False),
    Column("reason", ExactText, nullable=False),
    Index(None, "letter_id", "id"),
)

handler_attempts = Table(
    "handler_attempts",
    metadata,
    Column("handler", ExactText, nullable=False),
    Column("queue", ExactText, nullable=False),
    Column("succeeded", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    PrimaryKeyConstraint("handler", "queue"),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("made_at", Moment, nullable=False),
)
