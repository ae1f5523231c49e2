"""The table of work that one process of all does at a time."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from redrive.stores.columns import ExactText, Moment
from redrive.stores.schema import metadata

duties = Table(
    "duties",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", ExactText),  # NULL: nobody has it
    Column("held_until", Moment),
    Column("done_at", Moment),
)
