"""The tables of alerts. Titles in them are masked; there is no payload and no text of an exception."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, LargeBinary, Table, Text

from redrive.stores.columns import ExactText, Moment
from redrive.stores.schema import metadata

incidents = Table(
    "incidents",
    metadata,
    Column("key", ExactText, primary_key=True),
    Column("id", ExactText, nullable=False, unique=True),
    Column("rule", ExactText, nullable=False),
    Column("status", Text, nullable=False),
    Column("queue", ExactText, nullable=False),
    Column("group_id", ExactText, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("snoozed_until", Moment),
    Column("held", Boolean, nullable=False),
    Column("untold", Boolean, nullable=False),  # it has a message that is to be handed over
    Column("revision", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),  # the whole Incident; the columns are for searching
    Index(None, "status", "changed_at"),
)

samples = Table(
    "samples",
    metadata,
    Column("at", Moment, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)

processes = Table(
    "processes",
    metadata,
    Column("id", ExactText, primary_key=True),
    Column("seen_at", Moment, nullable=False),  # by the store's clock
    Column("body", LargeBinary, nullable=False),
)
