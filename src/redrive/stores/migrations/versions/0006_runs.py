"""Redrive runs. A redrive knows its run, and outlives its letter if it has one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_OF_RUNS = sa.text("run_id IS NOT NULL")
_NOT_ENDED = sa.text("ended_at IS NULL")
_OF_RULES = sa.text("rule IS NOT NULL")


def upgrade() -> None:
    _runs()
    op.add_column("claims", _text("run_id", null=True))
    op.add_column("claims", sa.Column("unsent", sa.Boolean(), nullable=False, server_default=sa.false()))
    _of_runs("ix_claims_run", "claims", "run_id", "lease_until")
    if op.get_bind().dialect.name == "postgresql":
        _postgresql_redrives()
    else:
        _sqlite_redrives()
    _of_runs("ix_redrives_run", "redrives", "run_id", "redrive_id")
    _of_runs("ix_redrives_run_outcome", "redrives", "run_id", "outcome_at")


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=null)


def _plain(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=null)


def _count(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=null)


def _big(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=null)


def _of_runs(name: str, table: str, *columns: str) -> None:
    op.create_index(name, table, list(columns), postgresql_where=_OF_RUNS, sqlite_where=_OF_RUNS)


def _runs() -> None:
    op.create_table(
        "runs",
        _text("id"),
        _plain("status"),
        _text("why"),
        sa.Column("plan", sa.LargeBinary(), nullable=False),
        _text("requested_by"),
        _big("created_at"),
        _big("changed_at"),
        _big("ended_at", null=True),
        _big("total"),
        _big("taken"),
        _text("cut_off"),
        _big("cursor_at", null=True),
        _text("cursor_id", null=True),
        _big("cursor_place"),
        sa.Column("exhausted", sa.Boolean(), nullable=False),
        _count("stage"),
        _big("next_at", null=True),
        _plain("approval_digest", null=True),
        _big("approval_expires_at", null=True),
        _text("approval_why", null=True),
        _text("approved_by", null=True),
        _big("approved_at", null=True),
        _text("rule", null=True),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.CheckConstraint("approved_by IS NULL OR approved_by <> requested_by", name="ck_runs_approver"),
    )
    op.create_index("ix_runs_active", "runs", ["id"], postgresql_where=_NOT_ENDED, sqlite_where=_NOT_ENDED)
    op.create_index(
        "uq_runs_rule_active",
        "runs",
        ["rule"],
        unique=True,
        postgresql_where=_NOT_ENDED,
        sqlite_where=_NOT_ENDED,
    )
    op.create_index("ix_runs_rule", "runs", ["rule", "id"], postgresql_where=_OF_RULES, sqlite_where=_OF_RULES)


_NEW = ("run_id", "group_id", "returned_group", "target")


def _postgresql_redrives() -> None:
    for name in _NEW:
        op.add_column("redrives", _text(name, null=True))
    op.drop_constraint("fk_redrives_letter_id_letters", "redrives")
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    forget = f"DELETE FROM {schema}.redrives WHERE run_id IS NULL AND letter_id IN (SELECT id FROM gone)"
    op.execute(
        f"CREATE FUNCTION {schema}.forget_redrives() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {forget}; RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER forget_redrives AFTER DELETE ON letters REFERENCING OLD TABLE AS gone"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {schema}.forget_redrives()"
    )
    # Few at a time, and a million come and go in a run.
    op.execute("ALTER TABLE claims SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)")
    op.execute("ALTER TABLE redrives SET (autovacuum_vacuum_scale_factor = 0.02)")


_KEPT = (
    "redrive_id",
    "letter_id",
    "generation",
    "revision",
    "claimed_at",
    "sent_at",
    "outcome",
    "outcome_at",
    "returned_as",
)


def _sqlite_redrives() -> None:
    """SQLite cannot drop a foreign key: the table is made anew, in the same transaction."""
    op.create_table(
        "new_redrives",
        _text("redrive_id"),
        _text("letter_id"),
        _count("generation"),
        _count("revision"),
        _big("claimed_at"),
        _big("sent_at", null=True),
        _plain("outcome", null=True),
        _big("outcome_at", null=True),
        _count("returned_as", null=True),
        *(_text(name, null=True) for name in _NEW),
        sa.PrimaryKeyConstraint("redrive_id", name="pk_redrives"),
    )
    kept = ", ".join(_KEPT)
    op.execute(f"INSERT INTO new_redrives ({kept}) SELECT {kept} FROM redrives")
    op.drop_table("redrives")
    op.rename_table("new_redrives", "redrives")
    op.create_index("ix_redrives_letter_id", "redrives", ["letter_id"])
    op.execute(
        "CREATE TRIGGER forget_redrives AFTER DELETE ON letters FOR EACH ROW"
        " BEGIN DELETE FROM redrives WHERE letter_id = OLD.id AND run_id IS NULL; END"
    )
