"""The table of wrapped data keys: one per queue and day, and a further one when that is used up."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Table, Text

from redrive.stores.columns import ExactText
from redrive.stores.schema import metadata

data_keys = Table(
    "data_keys",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    Column("queue", ExactText, nullable=False),
    Column("day", Text, nullable=False),  # 2026-03-01, so that days are compared as they are written
    Column("turn", Integer, nullable=False),
    Column("kek_id", Text, nullable=False),  # of the key that wraps it
    Column("wrapped", LargeBinary, nullable=False),
    Column("uses", BigInteger, nullable=False),  # reserved by all processes together
    Index("uq_data_keys_queue_day_turn", "queue", "day", "turn", unique=True),
)
