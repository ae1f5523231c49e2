"""The tables. Migrations make them; a test compares both.

A letter's row holds what lists and decisions need and is small; bodies, headers and stack traces lie apart.
Deleting a letter's row takes everything of it along, except the audit, which outlives it.

Numbers are kept by triggers on `letters` (migration 0002): whatever changes a letter's row, by whatever
version of the code, writes what that adds and takes away into `counter_deltas`, in the same transaction. Nobody
waits for anybody there, for every row is a new one. `sql_counters` folds deltas into `counters` and `totals`, and
every number is read as folded plus not yet folded, so it is exact at every commit. In the same way triggers of
migration 0012 count how often letters changed from one status to another, and one on `redrives` (migration 0015)
how often letters were sent and what became of it: numbers that only grow.

Free text, data and headers are searched in what is derived from letters. Triggers (migration 0003) put a
letter's id into `search_queue` when it is recorded and whenever its text or revision changes, and take
everything of it away when it is deleted; `sql_search_index` fills `search_parts` behind that. On SQLite the
full-text table `search_words` follows `search_parts` by triggers.

A letter that is deleted takes its redrives along, except those of runs: a run tells what became of each of its
letters for good. A trigger does it (migration 0006), in the place of a foreign key.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR

from redrive.stores.columns import ExactText, Moment

VERSION_TABLE = "redrive_version"
"""Holds the schema's version. A name of our own: other applications have an `alembic_version`."""

COMPATIBILITY_TABLE = "redrive_compatibility"
"""One row: the oldest schema whose code still works on this one, so that versions can run side by side."""

HEAD = "0017"
"""The version these tables are; the newest file in migrations/versions."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


SETTLED = text("status IN ('RESOLVED', 'DISCARDED')")
"""Written out, never bound: only so can a database tell that the index of settled letters serves a query."""

OF_RUNS = text("run_id IS NOT NULL")
"""Likewise: most redrives are of no run."""

NOT_ENDED = text("ended_at IS NULL")

OF_RULES = text("rule IS NOT NULL")

FAILED = text("status IN ('FAILED', 'STOPPED')")
"""Runs that somebody is told of. Likewise."""

EDITED = text("revision > 0")

RETURNED = text("generation > 1 AND status IN ('PENDING', 'QUARANTINED')")
"""Letters that were sent back and wait again. Likewise."""

NOT_PRIVATE = text("NOT private")
"""Likewise: parts of the search index that were made without masks, by an older Redrive as a rule."""

IN_LANES = text("lane IS NOT NULL AND status NOT IN ('RESOLVED', 'DISCARDED')")
"""Letters that keep others of their key waiting. Likewise."""


def _of_letter(table: str) -> tuple[Column[str], ForeignKeyConstraint]:
    """For the tables that many letters have a row in. On PostgreSQL there is no foreign key: it would read and
    lock the letter once more for each row, a fifth of what recording costs. A trigger takes the rows
    along when the letter goes, and `db check` looks for letters without them.
    """
    name = f"fk_{table}_letter_id_letters"
    key = ForeignKeyConstraint(["letter_id"], ["letters.id"], name=name, ondelete="CASCADE")
    return Column("letter_id", ExactText, nullable=False), key.ddl_if(dialect="sqlite")


letters = Table(
    "letters",
    metadata,
    Column("id", ExactText, primary_key=True),
    Column("identity", ExactText, nullable=False, unique=True),  # or its digest, when it is long
    Column("long_identity", ExactText),
    Column("message_id", ExactText, nullable=False),
    Column("message_queue", ExactText, nullable=False),
    Column("source", ExactText),
    Column("sent_at", Moment, nullable=False),
    Column("queue", ExactText, nullable=False),
    Column("handler", ExactText, nullable=False),
    Column("status", Text, nullable=False),
    Column("how", ExactText),
    Column("kind", Text, nullable=False),
    Column("type", ExactText, nullable=False),
    Column("short_type", ExactText, nullable=False),  # its last dotted part
    Column("text", ExactText, nullable=False),
    Column("group_id", ExactText, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("fence", Integer, nullable=False),  # rises with every claim and takeover, never falls
    Column("redrive_id", ExactText),  # the redrive whose outcome decides
    Column("refusals", Integer, nullable=False),
    Column("deliveries", Integer, nullable=False),
    Column("delivered_at", Moment, nullable=False),  # tells a new delivery from a replayed write
    Column("attempts", BigInteger, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("first_attempt_at", Moment, nullable=False),
    Column("last_attempt_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("fingerprint", ExactText),  # the group it would be in if nothing were merged; NULL: group_id
    Column("event_type", ExactText),  # with the next two: what the message says about itself, see event.py
    Column("source_id", ExactText),
    Column("correlation_id", ExactText),
    Column("lane", ExactText),  # what its order is kept by, see ordering.py; NULL: its order is not kept
    # A page is in this order, whatever it is filtered by.
    Index(None, "created_at", "id"),
    Index(None, "status", "created_at", "id"),
    Index(None, "queue", "created_at", "id"),
    Index(None, "group_id", "created_at", "id"),
    Index(None, "short_type", "created_at", "id"),
    Index(
        "ix_letters_correlation_id",
        "correlation_id",
        postgresql_where=text("correlation_id IS NOT NULL"),
        sqlite_where=text("correlation_id IS NOT NULL"),
    ),
    # Who has to agree to a run may depend on whether any letter of it was edited; few are.
    Index("ix_letters_edited", "status", "created_at", "id", postgresql_where=EDITED, sqlite_where=EDITED),
    # Few, and somebody is told of them.
    Index("ix_letters_returned", "changed_at", "group_id", postgresql_where=RETURNED, sqlite_where=RETURNED),
    Index("ix_letters_lane", "lane", "id", postgresql_where=IN_LANES, sqlite_where=IN_LANES),
    # What retention takes away: settled letters by the time they were settled.
    Index(
        "ix_letters_settled",
        "changed_at",
        postgresql_where=SETTLED,
        sqlite_where=SETTLED,
    ),
)

revisions = Table(
    "revisions",
    metadata,
    *_of_letter("revisions"),
    Column("number", Integer, nullable=False),  # 0 is the message as it came
    Column("body", LargeBinary),
    Column("headers", LargeBinary, nullable=False),
    Column("key", LargeBinary),
    Column("by", ExactText, nullable=False),
    Column("reason", ExactText, nullable=False),
    Column("at", Moment, nullable=False),
    # Of the message, in revision 0 only: they never change, and a version that does not know them may make others.
    Column("properties", LargeBinary),
    # What has sealed body, headers, key and properties; NULL: they are plain. See sealing.py.
    Column("data_key", LargeBinary),
    PrimaryKeyConstraint("letter_id", "number"),
)

failures = Table(
    "failures",
    metadata,
    *_of_letter("failures"),
    Column("generation", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", Moment, nullable=False),
    Column("kind", Text, nullable=False),
    Column("handler", ExactText, nullable=False),
    Column("type", ExactText, nullable=False),
    Column("text", ExactText, nullable=False),
    Column("host", ExactText, nullable=False),
    Column("process", BigInteger, nullable=False),
    Column("app", ExactText, nullable=False),
    Column("app_version", ExactText, nullable=False),
    Column("environment", ExactText, nullable=False),
    Column("told", LargeBinary, nullable=False),  # the whole Failure; the columns are for searching
    Column("data_key", LargeBinary),  # what has sealed `told`; NULL: it is plain
    PrimaryKeyConstraint("letter_id", "generation", "attempt"),
)

groups = Table(
    "groups",
    metadata,
    Column("id", ExactText, primary_key=True),
    Column("title", ExactText, nullable=False),
    Column("queue", ExactText, nullable=False),
    Column("handler", ExactText, nullable=False),
    Column("first_seen", Moment, nullable=False),
    Column("last_seen", Moment, nullable=False),  # as far as folded, like first_seen
    Column("owner", ExactText),
    Column("verdict", Text),
    Column("note", ExactText),
    Column("runbook", ExactText),
    Column("merged_into", ExactText),  # letters of this fingerprint go there
    Index("ix_groups_merged_into", "merged_into"),
    Index("ix_groups_first_seen", "first_seen"),
)


def _facet_columns() -> list[Column[str]]:
    """What letters are counted by. A group has one facet as a rule, and few at most."""
    names = ("group_id", "queue", "handler", "kind", "type", "short_type", "event_type")
    return [Column(name, ExactText, nullable=False) for name in names]


counter_deltas = Table(
    "counter_deltas",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *_facet_columns(),
    Column("status", Text, nullable=False),
    Column("hour", BigInteger, nullable=False),  # of created_at, since 1970
    Column("letters", BigInteger, nullable=False),  # more, or fewer
    Column("resolve_ms", BigInteger, nullable=False),  # the time it took to resolve the RESOLVED ones, added up
    Column("first_seen", Moment),
    Column("last_seen", Moment),
)

facets = Table(
    "facets",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *_facet_columns(),
    # Texts may be too long together for an index; their digest is not.
    Column("digest", LargeBinary, nullable=False, unique=True),
    Index("ix_facets_group_id", "group_id"),
)

counters = Table(
    "counters",
    metadata,
    Column("facet_id", BigInteger, ForeignKey("facets.id"), nullable=False),
    Column("status", Text, nullable=False),
    Column("hour", BigInteger, nullable=False),
    Column("letters", BigInteger, nullable=False),
    PrimaryKeyConstraint("facet_id", "status", "hour"),
    Index(None, "hour"),
)

days = Table(
    "days",
    metadata,
    Column("facet_id", BigInteger, ForeignKey("facets.id"), nullable=False),
    Column("status", Text, nullable=False),
    Column("day", BigInteger, nullable=False),
    Column("letters", BigInteger, nullable=False),
    PrimaryKeyConstraint("facet_id", "status", "day"),
    Index(None, "day"),
)

rates = Table(
    "rates",
    metadata,
    Column("hour", BigInteger, primary_key=True, autoincrement=False),
    Column("letters", BigInteger, nullable=False),
)

totals = Table(
    "totals",
    metadata,
    Column("facet_id", BigInteger, ForeignKey("facets.id"), nullable=False),
    Column("status", Text, nullable=False),
    Column("letters", BigInteger, nullable=False),
    Column("resolve_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("facet_id", "status"),
)

claims = Table(
    "claims",
    metadata,
    *_of_letter("claims"),
    Column("redrive_id", ExactText, nullable=False, unique=True),
    Column("owner", ExactText, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("lease_until", Moment, nullable=False),
    Column("target", ExactText, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("run_id", ExactText),
    Column("unsent", Boolean, nullable=False, server_default=false()),  # let go, and nothing of it was ever sent
    PrimaryKeyConstraint("letter_id"),  # the promise: one live claim per letter (G5)
    Index("ix_claims_run", "run_id", "lease_until", postgresql_where=OF_RUNS, sqlite_where=OF_RUNS),
)

redrives = Table(
    "redrives",
    metadata,
    Column("redrive_id", ExactText, primary_key=True),
    Column("letter_id", ExactText, nullable=False),  # a redrive of a run outlives its letter
    Column("generation", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("claimed_at", Moment, nullable=False),
    Column("sent_at", Moment),
    Column("outcome", Text),
    Column("outcome_at", Moment),
    Column("returned_as", Integer),  # the generation it came back as: a ticket comes back once
    Column("run_id", ExactText),
    Column("group_id", ExactText),  # the letter's before it was sent
    Column("returned_group", ExactText),  # the one it came back with
    Column("target", ExactText),
    Index(None, "letter_id"),
    Index("ix_redrives_run", "run_id", "redrive_id", postgresql_where=OF_RUNS, sqlite_where=OF_RUNS),
    Index("ix_redrives_run_outcome", "run_id", "outcome_at", postgresql_where=OF_RUNS, sqlite_where=OF_RUNS),
)

runs = Table(
    "runs",
    metadata,
    Column("id", ExactText, primary_key=True),
    Column("status", Text, nullable=False),
    Column("why", ExactText, nullable=False),
    Column("plan", LargeBinary, nullable=False),
    Column("requested_by", ExactText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("total", BigInteger, nullable=False),
    Column("taken", BigInteger, nullable=False),
    Column("cut_off", ExactText, nullable=False),  # the highest letter's id when it was made
    Column("cursor_at", Moment),  # with cursor_id: the last letter that was looked at, the oldest first
    Column("cursor_id", ExactText),
    Column("cursor_place", BigInteger, nullable=False),  # of a list of ids: how many were looked at
    Column("exhausted", Boolean, nullable=False),
    Column("stage", Integer, nullable=False),
    Column("next_at", Moment),  # before it, nothing may be sent that is not taken yet
    Column("approval_digest", Text),
    Column("approval_expires_at", Moment),
    Column("approval_why", ExactText),
    Column("approved_by", ExactText),
    Column("approved_at", Moment),
    Column("rule", ExactText),  # that made it; NULL: a person
    Column("request_key", ExactText),  # of whoever asked for it: the same request again is the same run
    # Nobody approves what they asked for, whatever the code says.
    CheckConstraint("approved_by IS NULL OR approved_by <> requested_by", name="ck_runs_approver"),
    Index("ix_runs_active", "id", postgresql_where=NOT_ENDED, sqlite_where=NOT_ENDED),
    # One run of a rule at a time, however many engines make them.
    Index("uq_runs_rule_active", "rule", unique=True, postgresql_where=NOT_ENDED, sqlite_where=NOT_ENDED),
    Index("ix_runs_rule", "rule", "id", postgresql_where=OF_RULES, sqlite_where=OF_RULES),
    Index("uq_runs_request_key", "request_key", unique=True),
    Index("ix_runs_failed", "ended_at", postgresql_where=FAILED, sqlite_where=FAILED),
)

paced_queues = Table(
    "paced_queues",
    metadata,
    # Queues with a ceiling that runs have sent to: before it, no run may send anything more.
    Column("queue", ExactText, primary_key=True),
    Column("next_at", Moment, nullable=False),
    Column("asked_by", ExactText),  # with asked_at: the run that waits for its turn
    Column("asked_at", Moment),
)

run_lanes = Table(
    "run_lanes",
    metadata,
    # Lanes that a run works through: the next letter of each is taken when the one before it is done.
    Column("run_id", ExactText, nullable=False),
    Column("lane", ExactText, nullable=False),
    Column("looked_at", Moment, nullable=False),
    Column("blocked", Boolean, nullable=False),  # for good: what is left of it is told as that
    Column("told_to", ExactText, nullable=False),  # if it is: up to this letter
    PrimaryKeyConstraint("run_id", "lane"),
    Index(None, "run_id", "looked_at"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("by", ExactText, nullable=False),
    Column("what", Text, nullable=False),
    Column("letter_id", ExactText, nullable=False),  # no foreign key: the line outlives its letter
    Column("before", ExactText, nullable=False),
    Column("after", ExactText, nullable=False),
    Column("reason", ExactText, nullable=False),
    Index(None, "letter_id", "id"),
)

handler_attempts = Table(
    "handler_attempts",
    metadata,
    Column("handler", ExactText, nullable=False),
    Column("queue", ExactText, nullable=False),
    Column("succeeded", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    PrimaryKeyConstraint("handler", "queue"),
)

compatibility = Table(COMPATIBILITY_TABLE, metadata, Column("oldest", Text, primary_key=True))

secrets = Table(
    "secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("made_at", Moment, nullable=False),
)

search_queue = Table(
    "search_queue",
    metadata,
    # Not the letter's id: a change that is queued while an older one is being indexed must not wait for it.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("letter_id", ExactText, nullable=False),
    Index(None, "letter_id"),
)

search_parts = Table(
    "search_parts",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    # No reference to `letters`: to check it would lock the letter, and a purge that waits for the indexer would be
    # waited for by it. The trigger takes away the queue's rows first and the parts then, which is as safe.
    Column("letter_id", ExactText, nullable=False),
    Column("created_at", Moment, nullable=False),  # the letter's: what is found is sorted without a look at it
    Column("loose", Boolean, nullable=False),  # the words do not tell all of the facts, see search_tokens.py
    Column("words", Text().with_variant(TSVECTOR, "postgresql"), nullable=False),
    Column("facts", Text().with_variant(JSONB, "postgresql")),  # in a letter's first part
    Column("private", Boolean, nullable=False, server_default=false()),  # made with masks, as far as rules ask for
    Index(None, "letter_id"),
    Index("ix_search_parts_plain", "letter_id", postgresql_where=NOT_PRIVATE, sqlite_where=NOT_PRIVATE),
    Index("ix_search_parts_words", "words", postgresql_using="gin").ddl_if(dialect="postgresql"),
    # Rows of a hundred bytes, all else apart: of ten thousand that a word finds, many lie on one page.
    postgresql_with={"toast_tuple_target": 128},
)
