"""The table of what clocks said: one row for each start of each machine."""

from __future__ import annotations

from sqlalchemy import Column, Float, Table

from redrive.stores.columns import ExactText, Moment
from redrive.stores.schema import metadata

clock_notes = Table(
    "clock_notes",
    metadata,
    Column("boot", ExactText, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("seconds", Float(53), nullable=False),
)
