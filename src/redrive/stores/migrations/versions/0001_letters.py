"""Letters, their revisions, failures, groups, claims, redrives, audit, handler counters and secrets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    _letters()
    _revisions()
    _failures()
    _groups()
    _claims()
    _redrives()
    _audit()
    _handler_attempts()
    _secrets()


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=null)


def _plain(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=null)


def _count(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=null)


def _big(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=null)


def _bytes(name: str, *, null: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=null)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _of_letter(table: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_letter_id_letters"
    return sa.ForeignKeyConstraint(["letter_id"], ["letters.id"], name=name, ondelete="CASCADE")


def _letters() -> None:
    op.create_table(
        "letters",
        _text("id"),
        _text("identity"),
        _text("long_identity", null=True),
        _text("message_id"),
        _text("message_queue"),
        _text("source", null=True),
        _big("sent_at"),
        _text("queue"),
        _text("handler"),
        _plain("status"),
        _text("how", null=True),
        _plain("kind"),
        _text("type"),
        _text("short_type"),
        _text("text"),
        _text("group_id"),
        _count("generation"),
        _count("revision"),
        _count("fence"),
        _text("redrive_id", null=True),
        _count("refusals"),
        _count("deliveries"),
        _big("delivered_at"),
        _big("attempts"),
        _big("created_at"),
        _big("first_attempt_at"),
        _big("last_attempt_at"),
        _big("changed_at"),
        _key("letters", "id"),
        sa.UniqueConstraint("identity", name="uq_letters_identity"),
    )
    op.create_index("ix_letters_status_id", "letters", ["status", "id"])
    op.create_index("ix_letters_queue_id", "letters", ["queue", "id"])
    op.create_index("ix_letters_group_id_id", "letters", ["group_id", "id"])


def _revisions() -> None:
    op.create_table(
        "revisions",
        _text("letter_id"),
        _count("number"),
        _bytes("body", null=True),
        _bytes("headers"),
        _bytes("key", null=True),
        _text("by"),
        _text("reason"),
        _big("at"),
        _key("revisions", "letter_id", "number"),
        _of_letter("revisions"),
    )


def _failures() -> None:
    op.create_table(
        "failures",
        _text("letter_id"),
        _count("generation"),
        _count("attempt"),
        _big("at"),
        _plain("kind"),
        _text("handler"),
        _text("type"),
        _text("text"),
        _text("host"),
        _big("process"),
        _text("app"),
        _text("app_version"),
        _text("environment"),
        _bytes("told"),
        _key("failures", "letter_id", "generation", "attempt"),
        _of_letter("failures"),
    )


def _groups() -> None:
    op.create_table(
        "groups",
        _text("id"),
        _text("title"),
        _text("queue"),
        _text("handler"),
        _big("first_seen"),
        _big("last_seen"),
        _big("total"),
        _text("example"),
        _key("groups", "id"),
    )


def _claims() -> None:
    op.create_table(
        "claims",
        _text("letter_id"),
        _text("redrive_id"),
        _text("owner"),
        _count("fence"),
        _big("lease_until"),
        _text("target"),
        _count("revision"),
        _key("claims", "letter_id"),
        sa.UniqueConstraint("redrive_id", name="uq_claims_redrive_id"),
        _of_letter("claims"),
    )


def _redrives() -> None:
    op.create_table(
        "redrives",
        _text("redrive_id"),
        _text("letter_id"),
        _count("generation"),
        _count("revision"),
        _big("claimed_at"),
        _big("sent_at", null=True),
        _plain("outcome", null=True),
        _big("outcome_at", null=True),
        _count("returned_as", null=True),
        _key("redrives", "redrive_id"),
        _of_letter("redrives"),
    )
    op.create_index("ix_redrives_letter_id", "redrives", ["letter_id"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        _big("at"),
        _text("by"),
        _plain("what"),
        _text("letter_id"),
        _text("before"),
        _text("after"),
        _text("reason"),
        _key("audit", "id"),
    )
    op.create_index("ix_audit_letter_id_id", "audit", ["letter_id", "id"])


def _handler_attempts() -> None:
    op.create_table(
        "handler_attempts",
        _text("handler"),
        _text("queue"),
        _big("succeeded"),
        _big("failed"),
        _key("handler_attempts", "handler", "queue"),
    )


def _secrets() -> None:
    op.create_table("secrets", _plain("name"), _bytes("value"), _big("made_at"), _key("secrets", "name"))
