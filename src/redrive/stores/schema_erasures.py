"""The table of erasures. It holds nothing of the person but keyed hashes."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Table, Text

from redrive.stores.columns import ExactText, Moment
from redrive.stores.schema import metadata

erasures = Table(
    "erasures",
    metadata,
    Column("id", ExactText, primary_key=True),
    Column("status", Text, nullable=False),
    Column("subject", Text, nullable=False),  # hashes, separated by spaces
    Column("requested_by", ExactText, nullable=False),
    Column("reason", ExactText, nullable=False),
    Column("requested_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("found", BigInteger, nullable=False),
    Column("approved_by", ExactText),
    Column("erased", BigInteger, nullable=False),
    Column("ended_at", Moment),
    # Nobody approves what they asked for, whatever the code says.
    CheckConstraint("approved_by IS NULL OR approved_by <> requested_by", name="ck_erasures_approver"),
)
