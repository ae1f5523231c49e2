"""A number for every letter on PostgreSQL: the id that S1's table has, for the view that looks like it."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute("ALTER TABLE letters ADD COLUMN event_number bigint GENERATED ALWAYS AS IDENTITY")
    # Numbers rise with the table: a summary per range of pages finds one, and costs the intake next to nothing.
    op.execute(
        "CREATE INDEX ix_letters_event_number ON letters USING brin (event_number)"
        " WITH (pages_per_range = 32)"  # autosummarize would fill the server's log in a flood; vacuum does it
    )
