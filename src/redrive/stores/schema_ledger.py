"""The tables of the ledger: its rows, and the one row that says where it ends."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text

from redrive.stores.columns import ExactText, Moment
from redrive.stores.schema import metadata

_NUMBER = BigInteger().with_variant(Integer, "sqlite")

ledger = Table(
    "ledger",
    metadata,
    Column("seq", _NUMBER, primary_key=True, autoincrement=False),
    Column("at", Moment, nullable=False),
    Column("who", ExactText, nullable=False),
    Column("token", ExactText, nullable=False),
    Column("what", ExactText, nullable=False),
    Column("kind", ExactText, nullable=False),
    Column("subject", ExactText, nullable=False),
    Column("before", ExactText, nullable=False),
    Column("after", ExactText, nullable=False),
    Column("reason", ExactText, nullable=False),
    Column("request_id", ExactText, nullable=False),
    Column("allowed", Boolean, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("mac", Text, nullable=False),
    Index(None, "at"),
    Index(None, "who", "seq"),
)

ledger_head = Table(
    "ledger_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("mac", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("seal", Text, nullable=False),
)
