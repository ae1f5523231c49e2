"""What is asked of a PostgreSQL to know whether it keeps what it confirms, and what its answers mean.

Each question is one statement that only reads. One that cannot be asked is told, and the others go on.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from redrive.duration import short
from redrive.finding import problem, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from redrive.finding import Finding
    from redrive.stores.postgres_options import PostgresOptions

    Rows = Sequence[Sequence[Any]]
    Judge = Callable[[Rows, PostgresOptions], Iterator[Finding]]

_MAINTAINED = 14
"""The oldest major version whose faults are still corrected."""
_FAILSAFE = 1_600_000_000
"""Transactions: where PostgreSQL's own emergency vacuum begins; at 2,100,000,000 it takes no writes."""
_BEHIND = 2**30
_MOSTLY = 0.8
_NEARLY_ALL = 0.95
_GIB = 2**30
_MONITOR = "GRANT pg_monitor to this role to have it checked"


class Question(NamedTuple):
    check: str
    about: str
    """As in: this role may not ask about ..."""
    statement: str
    judge: Judge
    remedy: str = _MONITOR
    by_schema: bool = False
    """Its one parameter is our schema."""


def _version(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    [[number, shown]] = rows
    if number // 10_000 < _MAINTAINED:
        what = f"PostgreSQL {shown} gets no corrections any more, not even of faults that lose data"
        yield warn("postgres-version", what, f"upgrade it to {_MAINTAINED} or newer")


def _durable(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    told = {name: value for name, value, _ in rows}
    if told.get("fsync") == "off":
        what = "the server runs with fsync = off: a power cut may damage the whole database"
        yield problem("fsync", what, "ALTER SYSTEM SET fsync = on, and reload")
    if told.get("full_page_writes") == "off":
        what = "the server runs with full_page_writes = off: a power cut may leave pages half written"
        yield problem("full-page-writes", what, "ALTER SYSTEM SET full_page_writes = on, and reload")
    yield from _committing(rows)


_SOURCES = {"database": "this database", "user": "this role", "database user": "this role in this database"}


def _committing(rows: Rows) -> Iterator[Finding]:
    told = {name: (value, source) for name, value, source in rows}
    value, source = told["synchronous_commit"]
    where = _SOURCES.get(source, "the whole server")
    if value == "off":
        what = f"synchronous_commit is off for {where}: a crash would lose letters that were confirmed"
        remedy = "ALTER ROLE or ALTER DATABASE ... SET synchronous_commit = on; no letter is taken until then"
        yield problem("synchronous-commit", what, remedy)
    standbys = told.get("synchronous_standby_names", ("", ""))[0]
    if standbys and value in {"local", "remote_write"}:
        what = f"synchronous_commit is {value} for {where}: a failover may lose letters that were confirmed"
        yield warn("synchronous-commit", what, "ALTER ROLE ... SET synchronous_commit = on")


def _careless(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    """Others than this session: a worker may come as another role, or to the same database later."""
    for role, database in rows:
        who = " in ".join(
            part for part in (role and f"role {role!r}", database and f"database {database!r}") if part
        )
        what = f"synchronous_commit is off for {who or 'everybody'}: who works as that cannot record a letter"
        yield warn("synchronous-commit", what, f"RESET synchronous_commit for {who or 'everybody'}")


def _writable(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    [[recovering, read_only]] = rows
    if recovering:
        what = "the server is a standby: it takes no letter"
        remedy = "name the primary in store.url, or several hosts with target_session_attrs=read-write"
        yield problem("standby", what, remedy)
    elif read_only == "on":
        what = "transactions are read-only here by default: no letter can be recorded"
        yield problem("read-only", what, "RESET default_transaction_read_only for this role and database")


def _unlogged(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    for [table] in rows:
        what = f"table {table} is unlogged: empty after a crash, and never on a standby"
        yield problem("unlogged", what, f"ALTER TABLE {table} SET LOGGED")


def _vacuuming(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    for name, value in rows:
        if value == "off":
            what = f"{name} is off: tables grow for ever, until the server takes no writes (wraparound)"
            yield warn("autovacuum", what, f"ALTER SYSTEM SET {name} = on, and reload")


def _unvacuumed(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    for [table] in rows:
        what = f"autovacuum is off for table {table}: it grows for ever"
        yield warn("autovacuum", what, f"ALTER TABLE {table} RESET (autovacuum_enabled)")


def _ages(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    [[transactions, multixacts, usual]] = rows
    age = max(transactions, multixacts)
    what = f"the oldest row is {age:,} transactions old; at 2,100,000,000 the server takes no writes"
    if age >= _FAILSAFE:
        yield problem("wraparound", what, "VACUUM FREEZE the database now, and find out what keeps autovacuum")
    elif age >= 2 * usual:
        remedy = "see what keeps autovacuum: old transactions, replication slots, prepared transactions"
        yield warn("wraparound", what, remedy)


def _connections(rows: Rows, options: PostgresOptions) -> Iterator[Finding]:
    [[used, most, role_limit, database_limit]] = rows
    left = most - used
    what = f"{used:,} of {most:,} connections of the server are in use"
    remedy = "raise max_connections, lower store.pool_size, or put a pooler between"
    if used >= most * _NEARLY_ALL:
        yield problem("connections", what, remedy)
    elif used >= most * _MOSTLY or left < options.pool_size:
        yield warn("connections", f"{what}; a process of ours may take {options.pool_size}", remedy)
    for limit, whose in ((role_limit, "this role"), (database_limit, "this database")):
        if 0 <= limit < options.pool_size:
            what = f"{whose} may have {limit} connections, and one process of ours takes up to {options.pool_size}"
            yield warn("connections", what, "raise CONNECTION LIMIT, or lower store.pool_size")


def _replication(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    [[wanted, synchronous, standbys, behind]] = rows
    if wanted and not synchronous:
        what = "commits wait for a synchronous standby, and there is none: nothing can be recorded"
        yield problem("standbys", what, "start it, or change synchronous_standby_names")
    if standbys and behind is not None and behind > _BEHIND:
        what = f"a standby is {behind / _GIB:,.1f} GiB behind: a failover to it loses letters"
        yield warn("standbys", what, "see the load and the network of the standby")


def _slots(rows: Rows, _: PostgresOptions) -> Iterator[Finding]:
    yield from starmap(_held_by, ((name, held) for name, held in rows if held is not None and held > _BEHIND))


def _held_by(name: str, held: int) -> Finding:
    what = f"replication slot {name!r} is unused and holds {held / _GIB:,.1f} GiB of the log: the disk fills up"
    return warn("replication-slot", what, f"start its reader, or pg_drop_replication_slot('{name}')")


def _deadlines(rows: Rows, options: PostgresOptions) -> Iterator[Finding]:
    told = {name: int(value) / 1000 for name, value in rows}
    ours = options.statement_timeout
    general = told.get("statement_timeout", 0.0)
    if general and (not ours or general < ours):
        shown = short(ours) if ours else "any time"
        what = (
            f"the server ends statements after {short(general)}, ours may take {shown}: behind a pooler that drops"
            " what sessions ask for, the server's limit holds"
        )
        yield warn("statement-timeout", what, "set it for other roles alone, or lower store.statement_timeout")
    whole = told.get("transaction_timeout", 0.0)
    if whole and (not ours or whole < ours):
        what = f"the server ends transactions after {short(whole)}, before a statement of ours has had its time"
        yield warn("statement-timeout", what, "raise transaction_timeout for this role")


QUESTIONS = (
    Question(
        "postgres-version",
        "its version",
        "SELECT current_setting('server_version_num')::int, current_setting('server_version')",
        _version,
    ),
    Question(
        "fsync",
        "whether a COMMIT is durable",
        "SELECT name, setting, source FROM pg_settings WHERE name IN"
        " ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names')",
        _durable,
    ),
    Question(
        "synchronous-commit",
        "what is set for other roles and databases",
        "SELECT coalesce(r.rolname, '')::text, coalesce(d.datname, '')::text FROM pg_db_role_setting s"
        " LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase"
        " WHERE (s.setdatabase = 0 OR d.datname = current_database())"
        " AND (s.setrole = 0 OR r.rolname <> current_user)"
        " AND EXISTS (SELECT FROM unnest(s.setconfig) c WHERE c ~ '^synchronous_commit=(off|false|no|0)$')"
        " AND current_setting('synchronous_commit') <> 'off' ORDER BY 1, 2",
        _careless,
    ),
    Question(
        "standby",
        "whether it takes writes",
        "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')",
        _writable,
    ),
    Question(
        "unlogged",
        "its tables",
        "SELECT format('%I.%I', n.nspname, c.relname)"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND c.relpersistence <> 'p' ORDER BY 1",
        _unlogged,
        by_schema=True,
    ),
    Question(
        "autovacuum",
        "whether it cleans up",
        "SELECT name, setting FROM pg_settings WHERE name IN ('autovacuum', 'track_counts')",
        _vacuuming,
    ),
    Question(
        "autovacuum",
        "which tables it cleans up",
        "SELECT format('%I.%I', n.nspname, c.relname)"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $1 AND EXISTS"
        " (SELECT FROM unnest(c.reloptions) o WHERE o ~ '^autovacuum_enabled=(off|false|no|0)$') ORDER BY 1",
        _unvacuumed,
        by_schema=True,
    ),
    Question(
        "wraparound",
        "how old its oldest row is",
        "SELECT max(age(datfrozenxid)), max(mxid_age(datminmxid)),"
        " current_setting('autovacuum_freeze_max_age')::bigint FROM pg_database",
        _ages,
    ),
    Question(
        "connections",
        "how many connections are in use",
        "SELECT (SELECT sum(numbackends)::int FROM pg_stat_database),"
        " current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,"
        " (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),"
        " (SELECT datconnlimit FROM pg_database WHERE datname = current_database())",
        _connections,
    ),
    Question(
        "statement-timeout",
        "when it ends statements",
        "SELECT name, setting FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout')",
        _deadlines,
    ),
)

ON_A_PRIMARY = (
    Question(
        "standbys",
        "its standbys",
        "SELECT current_setting('synchronous_standby_names') <> '',"
        " count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), count(*),"
        " max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))::bigint FROM pg_stat_replication",
        _replication,
    ),
    Question(
        "replication-slot",
        "its replication slots",
        "SELECT slot_name::text, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint"
        " FROM pg_replication_slots WHERE NOT active ORDER BY 1",
        _slots,
    ),
)
"""What a standby cannot be asked."""
