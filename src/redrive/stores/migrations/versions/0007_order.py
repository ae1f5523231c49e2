"""Order by key: a letter knows its lane, and a run the lanes that it works through. Edited letters are found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_EDITED = sa.text("revision > 0")
_IN_LANES = sa.text("lane IS NOT NULL AND status NOT IN ('RESOLVED', 'DISCARDED')")


def upgrade() -> None:
    op.create_index(
        "ix_letters_edited",
        "letters",
        ["status", "created_at", "id"],
        postgresql_where=_EDITED,
        sqlite_where=_EDITED,
    )
    op.add_column("letters", sa.Column("lane", _TEXT, nullable=True))
    op.create_index(
        "ix_letters_lane", "letters", ["lane", "id"], postgresql_where=_IN_LANES, sqlite_where=_IN_LANES
    )
    op.create_table(
        "run_lanes",
        sa.Column("run_id", _TEXT, nullable=False),
        sa.Column("lane", _TEXT, nullable=False),
        sa.Column("looked_at", sa.BigInteger(), nullable=False),
        sa.Column("blocked", sa.Boolean(), nullable=False),
        sa.Column("told_to", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "lane", name="pk_run_lanes"),
    )
    op.create_index("ix_run_lanes_run_id_looked_at", "run_lanes", ["run_id", "looked_at"])
    op.add_column("runs", sa.Column("request_key", _TEXT, nullable=True))
    op.create_index("uq_runs_request_key", "runs", ["request_key"], unique=True)
    op.create_table(
        "paced_queues",
        sa.Column("queue", _TEXT, nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("asked_by", _TEXT, nullable=True),
        sa.Column("asked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("queue", name="pk_paced_queues"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _postgresql_redriving()


def _postgresql_redriving() -> None:
    """A claim's foreign key was checked row by row, a twentieth of what a redrive costs; the trigger that takes a
    letter's revisions along takes its claim too. A redrive's row is changed once soon after it is written: with
    room beside it no index has to be told.
    """
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    op.drop_constraint("fk_claims_letter_id_letters", "claims")
    deletes = " ".join(
        f"DELETE FROM {schema}.{table} WHERE letter_id IN (SELECT id FROM gone);"
        for table in ("revisions", "failures", "claims")
    )
    op.execute(
        f"CREATE OR REPLACE FUNCTION {schema}.take_along() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {deletes} RETURN NULL; END $$"
    )
    op.execute("ALTER TABLE redrives SET (fillfactor = 50)")
