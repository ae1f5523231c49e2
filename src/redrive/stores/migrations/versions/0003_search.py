"""The search index of free text, data and headers. Letters that are there already wait to be indexed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR

revision = "0003"
down_revision = "0002"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _tables()
    if op.get_bind().dialect.name == "postgresql":
        op.create_index("ix_search_parts_words", "search_parts", ["words"], postgresql_using="gin")
        _postgresql_triggers()
    else:
        _sqlite_full_text()
        _sqlite_triggers()
    op.execute("INSERT INTO search_queue (letter_id) SELECT id FROM letters ORDER BY created_at, id")


def _tables() -> None:
    op.create_table("search_queue", *_row("search_queue"))
    op.create_index("ix_search_queue_letter_id", "search_queue", ["letter_id"])
    op.create_table(
        "search_parts",
        *_row("search_parts"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("loose", sa.Boolean(), nullable=False),
        sa.Column("words", sa.Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
        sa.Column("facts", sa.Text().with_variant(JSONB(), "postgresql"), nullable=True),
        postgresql_with={"toast_tuple_target": 128},
    )
    op.create_index("ix_search_parts_letter_id", "search_parts", ["letter_id"])


def _row(table: str) -> tuple[sa.schema.SchemaItem, ...]:
    return (
        sa.Column("id", _SERIAL, nullable=False),
        sa.Column("letter_id", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
    )


_INDEXED = ("revision", "type", "text", "created_at")
_CHANGED = " OR ".join(f"OLD.{column} <> NEW.{column}" for column in _INDEXED)
_UPDATE = f"UPDATE OF {', '.join(_INDEXED)} ON letters FOR EACH ROW"


def _postgresql_triggers() -> None:
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    queue, parts = f"{schema}.search_queue", f"{schema}.search_parts"
    # The queue's rows first: a process that indexes such a letter now holds its row, and what it writes meanwhile
    # is there to be deleted when it lets go.
    _postgresql_trigger(
        "index_new_letters",
        f"INSERT INTO {queue} (letter_id) SELECT id FROM come",
        "AFTER INSERT ON letters REFERENCING NEW TABLE AS come FOR EACH STATEMENT",
    )
    _postgresql_trigger(
        "index_changed_letter",
        f"INSERT INTO {queue} (letter_id) VALUES (NEW.id)",
        f"AFTER {_UPDATE} WHEN ({_CHANGED})",
    )
    _postgresql_trigger(
        "forget_letters",
        f"DELETE FROM {queue} WHERE letter_id IN (SELECT id FROM gone);"
        f" DELETE FROM {parts} WHERE letter_id IN (SELECT id FROM gone)",
        "AFTER DELETE ON letters REFERENCING OLD TABLE AS gone FOR EACH STATEMENT",
    )


def _postgresql_trigger(name: str, statements: str, when: str) -> None:
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    # The schema is named, for the statement may come from a session with another search_path.
    op.execute(
        f"CREATE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {statements}; RETURN NULL; END $$"
    )
    op.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {schema}.{name}()")


def _sqlite_full_text() -> None:
    """The tokenizer splits at spaces and changes nothing: the words are ours already."""
    op.execute(
        "CREATE VIRTUAL TABLE search_words USING fts5"
        " (words, content='search_parts', content_rowid='id', columnsize=0, tokenize=\"ascii tokenchars '_'\")"
    )
    for event, values in (
        ("INSERT", "(rowid, words) VALUES (NEW.id, NEW.words)"),
        ("DELETE", "(search_words, rowid, words) VALUES ('delete', OLD.id, OLD.words)"),
    ):
        op.execute(
            f"CREATE TRIGGER search_words_on_{event.lower()} AFTER {event} ON search_parts FOR EACH ROW"
            f" BEGIN INSERT INTO search_words {values}; END"
        )


def _sqlite_triggers() -> None:
    queue = "INSERT INTO search_queue (letter_id) VALUES (NEW.id)"
    forget = "; ".join(
        f"DELETE FROM {table} WHERE letter_id = OLD.id" for table in ("search_queue", "search_parts")
    )
    for name, when, statements in (
        ("index_new_letter", "INSERT ON letters FOR EACH ROW", queue),
        ("index_changed_letter", f"{_UPDATE} WHEN {_CHANGED}", queue),
        ("forget_letter", "DELETE ON letters FOR EACH ROW", forget),
    ):
        op.execute(f"CREATE TRIGGER {name} AFTER {when} BEGIN {statements}; END")
