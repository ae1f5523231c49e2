"""Counters kept by triggers, what people say about groups, merged groups, and pages by the time of failure.

Breaking: a group's `total` and `example` are gone, for the counters say it without a row that everybody waits for.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_FACET = ("group_id", "queue", "handler", "kind", "type", "short_type", "event_type")


def upgrade() -> None:
    _letters()
    _groups()
    _counters()
    _triggers()
    _count_what_is_there()
    op.create_table(
        "redrive_compatibility",
        sa.Column("oldest", sa.Text(), nullable=False),
        _key("redrive_compatibility", "oldest"),
    )
    op.execute("INSERT INTO redrive_compatibility VALUES ('0002')")


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=null)


def _plain(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=null)


def _big(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=null)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _letters() -> None:
    for name in ("fingerprint", "event_type", "source_id", "correlation_id"):
        op.add_column("letters", _text(name, null=True))
    for old in ("status", "queue", "group_id"):
        op.drop_index(f"ix_letters_{old}_id", "letters")
    op.create_index("ix_letters_created_at_id", "letters", ["created_at", "id"])
    for by in ("status", "queue", "group_id", "short_type"):
        op.create_index(f"ix_letters_{by}_created_at_id", "letters", [by, "created_at", "id"])
    known, settled = sa.text("correlation_id IS NOT NULL"), sa.text("status IN ('RESOLVED', 'DISCARDED')")
    _partial("ix_letters_correlation_id", "correlation_id", known)
    _partial("ix_letters_settled", "changed_at", settled)


def _partial(name: str, column: str, where: sa.TextClause) -> None:
    op.create_index(name, "letters", [column], postgresql_where=where, sqlite_where=where)


def _groups() -> None:
    op.drop_column("groups", "total")
    op.drop_column("groups", "example")
    for column in (_text("owner", null=True), _plain("verdict", null=True)):
        op.add_column("groups", column)
    for name in ("note", "runbook", "merged_into"):
        op.add_column("groups", _text(name, null=True))
    op.create_index("ix_groups_merged_into", "groups", ["merged_into"])


def _counters() -> None:
    op.create_table(
        "counter_deltas",
        sa.Column("id", _SERIAL, nullable=False),
        *(_text(name) for name in _FACET),
        _plain("status"),
        _big("hour"),
        _big("letters"),
        _big("resolve_ms"),
        _big("first_seen", null=True),
        _big("last_seen", null=True),
        _key("counter_deltas", "id"),
    )
    op.create_table(
        "facets",
        sa.Column("id", _SERIAL, nullable=False),
        *(_text(name) for name in _FACET),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        _key("facets", "id"),
        sa.UniqueConstraint("digest", name="uq_facets_digest"),
    )
    op.create_index("ix_facets_group_id", "facets", ["group_id"])
    op.create_table(
        "counters",
        _big("facet_id"),
        _plain("status"),
        _big("hour"),
        _big("letters"),
        _key("counters", "facet_id", "status", "hour"),
        sa.ForeignKeyConstraint(["facet_id"], ["facets.id"], name="fk_counters_facet_id_facets"),
    )
    op.create_index("ix_counters_hour", "counters", ["hour"])
    op.create_table(
        "days",
        _big("facet_id"),
        _plain("status"),
        _big("day"),
        _big("letters"),
        _key("days", "facet_id", "status", "day"),
        sa.ForeignKeyConstraint(["facet_id"], ["facets.id"], name="fk_days_facet_id_facets"),
    )
    op.create_index("ix_days_day", "days", ["day"])
    op.create_table("rates", _big("hour"), _big("letters"), _key("rates", "hour"))
    op.create_table(
        "totals",
        _big("facet_id"),
        _plain("status"),
        _big("letters"),
        _big("resolve_ms"),
        _key("totals", "facet_id", "status"),
        sa.ForeignKeyConstraint(["facet_id"], ["facets.id"], name="fk_totals_facet_id_facets"),
    )


_WRITTEN = ", ".join((*_FACET, "status", "hour", "letters", "resolve_ms", "first_seen", "last_seen"))
_YEAR_ONE = 62_135_596_800_000_000
# Division rounds towards zero, and hours before 1970 must round down: so it is done from the year 1 on.


def _hour(row: str) -> str:
    return f"({row}created_at + {_YEAR_ONE}) / 3600000000 - 17259888"


def _resolve_ms(row: str) -> str:
    return (
        f"CASE WHEN {row}status = 'RESOLVED' AND {row}changed_at > {row}created_at"
        f" THEN ({row}changed_at - {row}created_at) / 1000 ELSE 0 END"
    )


def _facet(row: str) -> str:
    own = [f"{row}{name}" for name in _FACET[:-1]]
    return ", ".join(
        (*own, f"coalesce({row}event_type, {row}queue) AS event_type", f"{row}status", f"{_hour(row)} AS hour")
    )


def _triggers() -> None:
    if op.get_bind().dialect.name == "postgresql":
        schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
        _postgresql_triggers(schema)
        _postgresql_cascade(schema)
        _postgresql_vacuum()
    else:
        _sqlite_triggers()


_COUNTED_BY = ", ".join((*_FACET, "status", "hour"))
_GONE = f"SELECT {_facet('')}, -1 AS letters, -({_resolve_ms('')}) AS resolve_ms, NULL::bigint AS seen FROM gone"
_COME = f"SELECT {_facet('')}, 1 AS letters, {_resolve_ms('')} AS resolve_ms, delivered_at AS seen FROM come"


def _postgresql_triggers(schema: str) -> None:
    """One statement, one set of deltas, however many letters it touches."""
    referencing = {
        "INSERT": "NEW TABLE AS come",
        "UPDATE": "OLD TABLE AS gone NEW TABLE AS come",
        "DELETE": "OLD TABLE AS gone",
    }
    changes = {"INSERT": _COME, "UPDATE": f"{_GONE} UNION ALL {_COME}", "DELETE": _GONE}
    for event, rows in changes.items():
        name = f"count_letters_on_{event.lower()}"
        # The schema is named, for the statement may come from a session with another search_path.
        op.execute(
            f"""
            CREATE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO {schema}.counter_deltas ({_WRITTEN})
                SELECT {_COUNTED_BY}, sum(letters), sum(resolve_ms), min(seen), max(seen) FROM ({rows}) AS changed
                GROUP BY {_COUNTED_BY} HAVING sum(letters) <> 0 OR sum(resolve_ms) <> 0;
                RETURN NULL;
            END $$
            """
        )
        op.execute(
            f"CREATE TRIGGER {name} AFTER {event} ON letters REFERENCING {referencing[event]}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {schema}.{name}()"
        )


def _postgresql_cascade(schema: str) -> None:
    """Instead of foreign keys, whose checks row by row were a fifth of what recording costs."""
    tables = ("revisions", "failures")
    for table in tables:
        op.drop_constraint(f"fk_{table}_letter_id_letters", table)
    deletes = " ".join(
        f"DELETE FROM {schema}.{table} WHERE letter_id IN (SELECT id FROM gone);" for table in tables
    )
    op.execute(
        f"CREATE FUNCTION {schema}.take_along() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {deletes} RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER take_along AFTER DELETE ON letters REFERENCING OLD TABLE AS gone"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {schema}.take_along()"
    )


def _postgresql_vacuum() -> None:
    """The default waits for a fifth of a table to be dead, which of ten million letters is two million."""
    eager = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02"
    for table in ("letters", "revisions", "failures"):
        op.execute(f"ALTER TABLE {table} SET ({eager})")
    # Small, and written over and over: a fixed number of dead rows, however few live ones there are.
    often = "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000"
    for table in ("counter_deltas", "counters", "days", "rates", "totals"):
        op.execute(f"ALTER TABLE {table} SET ({often})")


def _sqlite_triggers() -> None:
    come = f"{_facet('NEW.')}, 1, {_resolve_ms('NEW.')}, NEW.delivered_at, NEW.delivered_at"
    gone = f"{_facet('OLD.')}, -1, -({_resolve_ms('OLD.')}), NULL, NULL"
    into = f"INSERT INTO counter_deltas ({_WRITTEN}) SELECT"
    moved = " OR ".join(
        f"OLD.{name} IS NOT NEW.{name}" for name in (*_FACET, "status", "created_at", "changed_at")
    )
    for event, condition, rows in (
        ("INSERT", "", [come]),
        ("UPDATE", f"WHEN {moved}", [gone, come]),
        ("DELETE", "", [gone]),
    ):
        inserts = " ".join(f"{into} {row};" for row in rows)
        op.execute(
            f"CREATE TRIGGER count_letters_on_{event.lower()} AFTER {event} ON letters FOR EACH ROW {condition}"
            f" BEGIN {inserts} END"
        )


def _count_what_is_there() -> None:
    counted = f"{_facet('')}, count(*), sum({_resolve_ms('')}), min(delivered_at), max(delivered_at)"
    op.execute(
        f"INSERT INTO counter_deltas ({_WRITTEN}) SELECT {counted} FROM letters GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9"
    )
