"""How often letters of a queue have changed from one status to another since the store began: what counters of
Prometheus are made of. They only grow, also when letters are purged, and whoever changes a letter is counted, an
older version or a hand at the database too: triggers count, as they do for `counter_deltas`.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_EDGES = (60, 300, 900, 3600, 14400, 43200, 86400, 259200, 604800, 2592000)
"""Seconds from the failure to the resolution. `took` is the first of them that it did not take longer than; 0 of
what took longer than all, and of what is no resolution.
"""
_WRITTEN = "queue, before, after, took, number, took_ms"


def upgrade() -> None:
    op.create_table(
        "transition_deltas",
        sa.Column("id", _SERIAL, nullable=False),
        *_counted(),
        sa.PrimaryKeyConstraint("id", name="pk_transition_deltas"),
    )
    op.create_table(
        "transitions",
        sa.Column("id", _SERIAL, nullable=False),
        *_counted(),
        sa.PrimaryKeyConstraint("id", name="pk_transitions"),
        sa.UniqueConstraint("queue", "before", "after", "took", name="uq_transitions_queue_before_after_took"),
    )
    _count_what_is_there()
    if op.get_bind().dialect.name == "postgresql":
        _postgresql_triggers(op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())")))
    else:
        _sqlite_triggers()


def _counted() -> list[sa.Column[object]]:
    return [
        sa.Column("queue", _TEXT, nullable=False),
        sa.Column("before", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("took", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("took_ms", sa.BigInteger(), nullable=False),
    ]


def _took_ms(row: str) -> str:
    return (
        f"CASE WHEN {row}status = 'RESOLVED' AND {row}changed_at > {row}created_at"
        f" THEN ({row}changed_at - {row}created_at) / 1000 ELSE 0 END"
    )


def _took(row: str) -> str:
    edges = " ".join(
        f"WHEN {row}changed_at - {row}created_at <= {edge * 1_000_000} THEN {edge}" for edge in _EDGES
    )
    return f"CASE WHEN {row}status <> 'RESOLVED' THEN 0 {edges} ELSE 0 END"


def _count_what_is_there() -> None:
    """As if each had been recorded, and had then become what it is."""
    op.execute(
        f"INSERT INTO transition_deltas ({_WRITTEN})"
        " SELECT queue, '', 'PENDING', 0, count(*), 0 FROM letters GROUP BY queue"
    )
    op.execute(
        f"INSERT INTO transition_deltas ({_WRITTEN})"
        f" SELECT queue, 'PENDING', status, {_took('')}, count(*), sum({_took_ms('')}) FROM letters"
        " WHERE status <> 'PENDING' GROUP BY 1, 2, 3, 4"
    )


def _postgresql_triggers(schema: str) -> None:
    """One statement, one set of deltas, however many letters it touches."""
    took, took_ms = _took("come."), _took_ms("come.")
    changed = "gone JOIN come ON come.id = gone.id WHERE come.status <> gone.status"
    for event, tables, rows in (
        ("INSERT", "NEW TABLE AS come", f"'', come.status, {took}, count(*), sum({took_ms}) FROM come"),
        (
            "UPDATE",
            "OLD TABLE AS gone NEW TABLE AS come",
            f"gone.status, come.status, {took}, count(*), sum({took_ms}) FROM {changed}",
        ),
    ):
        name = f"count_transitions_on_{event.lower()}"
        # The schema is named, for the statement may come from a session with another search_path.
        op.execute(
            f"""
            CREATE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO {schema}.transition_deltas ({_WRITTEN})
                SELECT come.queue, {rows} GROUP BY 1, 2, 3, 4;
                RETURN NULL;
            END $$
            """
        )
        op.execute(
            f"CREATE TRIGGER {name} AFTER {event} ON letters REFERENCING {tables}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {schema}.{name}()"
        )
    # Small, and written over and over: a fixed number of dead rows, however few live ones there are.
    often = "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000"
    for table in ("transition_deltas", "transitions"):
        op.execute(f"ALTER TABLE {table} SET ({often})")


def _sqlite_triggers() -> None:
    into, measured = (
        f"INSERT INTO transition_deltas ({_WRITTEN}) VALUES",
        f"{_took('NEW.')}, 1, {_took_ms('NEW.')}",
    )
    for event, condition, before in (
        ("INSERT", "", "''"),
        ("UPDATE OF status", "WHEN OLD.status <> NEW.status", "OLD.status"),
    ):
        op.execute(
            f"CREATE TRIGGER count_transitions_on_{event.split()[0].lower()} AFTER {event} ON letters FOR EACH ROW"
            f" {condition} BEGIN {into} (NEW.queue, {before}, NEW.status, {measured}); END"
        )
