"""The tables of numbers that only grow: what counters of Prometheus are made of. Triggers write the deltas
(migrations 0012 and 0015), and `sql_transitions` adds them up.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint

from redrive.stores.columns import ExactText
from redrive.stores.schema import metadata


def _transition_columns() -> list[Column[Any]]:
    return [
        Column("queue", ExactText, nullable=False),
        Column("before", Text, nullable=False),  # empty: it was recorded
        Column("after", Text, nullable=False),
        Column("took", BigInteger, nullable=False),  # a resolution at most so many seconds; 0: more, or none
        Column("number", BigInteger, nullable=False),
        Column("took_ms", BigInteger, nullable=False),  # of resolutions, added up
    ]


transition_deltas = Table(
    "transition_deltas",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *_transition_columns(),
)

transitions = Table(
    "transitions",
    metadata,
    # In the order in which queues were first seen.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *_transition_columns(),
    UniqueConstraint("queue", "before", "after", "took"),
)


def _redrive_columns() -> list[Column[Any]]:
    return [
        Column("queue", ExactText, nullable=False),
        Column("outcome", Text, nullable=False),  # one of statistics.REDRIVE_OUTCOMES
        Column("number", BigInteger, nullable=False),
    ]


redrive_deltas = Table(
    "redrive_deltas",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *_redrive_columns(),
)

redrive_counts = Table(
    "redrive_counts",
    metadata,
    *_redrive_columns(),
    PrimaryKeyConstraint("queue", "outcome"),
)
