"""What the clocks of machines said, so that retention and expiry notice one that jumped. An older version keeps
such a note in a file of its own.

A store without letters begins with a note of the clock that will date the first ones. Where there are letters,
nobody knows whether this clock is right: a person has to say so once.
"""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

from redrive.uptime import uptime

revision = "0017"
down_revision = "0016"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    notes = op.create_table(
        "clock_notes",
        sa.Column("boot", _TEXT, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("boot", name="pk_clock_notes"),
    )
    if op.get_bind().scalar(sa.text("SELECT 1 FROM letters LIMIT 1")) is None:
        running = uptime()
        row = {"boot": running.boot, "at": int(time.time() * 1e6), "seconds": running.seconds}
        op.bulk_insert(notes, [row])
