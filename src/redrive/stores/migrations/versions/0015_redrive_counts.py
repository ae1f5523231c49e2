"""How often letters of a queue were sent back, and what became of that, since the store began. A trigger on
`redrives` counts, as those of 0012 do on `letters`, whose statuses do not tell it: a consumer that is quicker than
the mark that a letter was sent makes RESOLVED or PENDING of REDRIVING, and REDRIVEN becomes RESOLVED by a
confirmation, by silence and by hand. An older version's redrives are counted too.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_OUTCOMES = {
    "confirmed": "confirmed",
    "came back": "came_back",
    "assumed": "assumed",
    "resolved": "by_hand",
    "refused": "not_sent",
    "unclaimed": "not_sent",
}
"""What a redrive's own row says of its end, and what it is counted as. Rows with other words were never sent."""
_OF_SENT = "'confirmed', 'came back', 'assumed', 'resolved'"
_WRITTEN = "queue, outcome, number"
_FORMER = {
    ("REDRIVING", "REDRIVEN"): "sent",
    ("REDRIVEN", "RESOLVED"): "confirmed",
    ("REDRIVEN", "PENDING"): "came_back",
    ("REDRIVEN", "QUARANTINED"): "came_back",
    ("REDRIVING", "PENDING"): "not_sent",
    ("REDRIVING", "QUARANTINED"): "not_sent",
}


def upgrade() -> None:
    op.create_table(
        "redrive_deltas",
        sa.Column("id", _SERIAL, nullable=False),
        *_counted(),
        sa.PrimaryKeyConstraint("id", name="pk_redrive_deltas"),
    )
    op.create_table(
        "redrive_counts",
        *_counted(),
        sa.PrimaryKeyConstraint("queue", "outcome", name="pk_redrive_counts"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _postgresql_trigger(op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())")))
    else:
        _sqlite_trigger()
    # Behind the trigger, which nobody who redrives gets past until this is done: nothing is counted twice.
    _begin_where_it_was()


def _counted() -> list[sa.Column[object]]:
    return [
        sa.Column("queue", _TEXT, nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
    ]


def _begin_where_it_was() -> None:
    """With what was told until now, wrong as it may be: to Prometheus a counter that falls has begun anew, and one
    that jumps has counted all of it just now.
    """
    cases = " ".join(
        f"WHEN before = '{before}' AND after = '{after}' THEN '{outcome}'"
        for (before, after), outcome in _FORMER.items()
    )
    told = f"SELECT queue, CASE {cases} END AS outcome, number FROM"
    op.execute(
        f"INSERT INTO redrive_deltas ({_WRITTEN}) SELECT queue, outcome, sum(number)"
        f" FROM ({told} transitions UNION ALL {told} transition_deltas) AS told"
        " WHERE outcome IS NOT NULL GROUP BY queue, outcome"
    )


def _sent(row: str) -> str:
    """Whoever confirms, or gets it back, may be quicker than the mark that it was sent; then there is none."""
    return f"({row}.sent_at IS NOT NULL OR coalesce({row}.outcome, '') IN ({_OF_SENT}))"


def _outcome(row: str) -> str:
    cases = " ".join(f"WHEN '{said}' THEN '{counted}'" for said, counted in _OUTCOMES.items())
    return f"CASE {row}.outcome {cases} END"


def _postgresql_trigger(schema: str) -> None:
    """One statement, one set of deltas, however many redrives it touches."""
    both = "gone JOIN come ON come.redrive_id = gone.redrive_id"
    sent = f"SELECT come.letter_id, 'sent' AS outcome FROM {both} WHERE {_sent('come')} AND NOT {_sent('gone')}"
    ended = (
        f"SELECT come.letter_id, {_outcome('come')} FROM {both} WHERE come.outcome IS DISTINCT FROM gone.outcome"
    )
    # The schema is named, for the statement may come from a session with another search_path. Letters are looked
    # up one by one by their key: a session that planned it for a table that was nearly empty would else read all.
    op.execute(
        f"""
        CREATE FUNCTION {schema}.count_redrives() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off
        AS $$ BEGIN
            INSERT INTO {schema}.redrive_deltas ({_WRITTEN})
            SELECT letter.queue, told.outcome, count(*) FROM ({sent} UNION ALL {ended}) AS told
            CROSS JOIN LATERAL (SELECT queue FROM {schema}.letters WHERE id = told.letter_id LIMIT 1) AS letter
            WHERE told.outcome IS NOT NULL GROUP BY 1, 2;
            RETURN NULL;
        END $$
        """
    )
    op.execute(
        "CREATE TRIGGER count_redrives AFTER UPDATE ON redrives REFERENCING OLD TABLE AS gone NEW TABLE AS come"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {schema}.count_redrives()"
    )
    # Small, and written over and over: a fixed number of dead rows, however few live ones there are.
    often = "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000"
    for table in ("redrive_deltas", "redrive_counts"):
        op.execute(f"ALTER TABLE {table} SET ({often})")


def _sqlite_trigger() -> None:
    mine = "FROM letters WHERE id = NEW.letter_id"
    sent = f"SELECT queue, 'sent', 1 {mine} AND {_sent('NEW')} AND NOT {_sent('OLD')}"
    ended = (
        f"SELECT queue, {_outcome('NEW')}, 1 {mine}"
        f" AND NEW.outcome IS NOT OLD.outcome AND {_outcome('NEW')} IS NOT NULL"
    )
    inserts = " ".join(f"INSERT INTO redrive_deltas ({_WRITTEN}) {rows};" for rows in (sent, ended))
    op.execute(
        "CREATE TRIGGER count_redrives AFTER UPDATE OF sent_at, outcome ON redrives FOR EACH ROW"
        f" BEGIN {inserts} END"
    )
