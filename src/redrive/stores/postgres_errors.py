"""What PostgreSQL says, told as one of our errors with its remedy. Values of rows are never told.

Whatever a server's administrator can mend is `Unreachable`: letters go to the spool meanwhile, and work goes on by
itself once it is mended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncpg import InterfaceError, InternalClientError, InvalidCachedStatementError, PostgresError
from sqlalchemy.exc import DBAPIError, NoResultFound
from sqlalchemy.exc import TimeoutError as PoolTimeout

from redrive.errors import CorruptFile, RedriveError, Unreachable, UsageError

if TYPE_CHECKING:
    from redrive.stores.postgres_options import PostgresAddress

_DATA = "22"
_OUT_OF_DATE = ("42P01", "42703", "42883", "3F000")  # undefined table, column, function, schema
_TRY_AGAIN = ("40001", "40P01", "55P03", "23505")
# Serialization failure, deadlock, lock timeout; and a unique violation: somebody recorded the same message at the
# same moment, and is seen the next time. The server has rolled back each of them.
_LOST = ("08", "57P")

PERMISSION_REMEDY = (
    "run `redrive db upgrade` as a role that may make the schema and its tables, and give this role USAGE on the"
    " schema, SELECT, INSERT, UPDATE, DELETE on its tables and USAGE on its sequences"
)

_REMEDIES = {
    "28": "check the user and the password in store.url, and the server's pg_hba.conf",
    "3D000": "make it: CREATE DATABASE, or `createdb`; or name another one in store.url",
    "42501": PERMISSION_REMEDY,
    "53100": "free some disk space on the server; nothing was lost, work goes on by itself",
    "53300": "raise max_connections of the server, or lower store.pool_size",
    "57014": "raise store.statement_timeout, or find out what slows the server down",
    "55P03": "another session holds the rows or tables for longer than store.lock_timeout; try again",
    "25006": "it is a standby: name the primary, or several hosts with target_session_attrs=read-write",
    "57P": "it is stopping or starting; work goes on by itself when it is there again",
    "40": "try again; too many sessions write the same rows at once",
    "08": "check the network and the server; work goes on by itself when it is there again",
    "53": "the server is short of memory or other resources; work goes on by itself",
    "58": "look into the server's log: its disk or its files fail",
    "42704": "an option in store.url is none of the server's settings; remove it",
}
"""By SQLSTATE, or the beginning of it; the longest that fits."""


def cause_of(error: BaseException) -> BaseException:
    """What the driver or the system raised, under SQLAlchemy's wrapping."""
    if isinstance(error, DBAPIError):
        wrapped = error.orig
        return (wrapped.__cause__ or wrapped) if wrapped is not None else error
    return error


def is_transient(error: BaseException) -> bool:
    """Whether nothing has happened, because of somebody else, and the same may succeed now."""
    if isinstance(error, NoResultFound):  # a row that was there a statement ago; somebody removed it since
        return True
    cause = cause_of(error)
    if isinstance(cause, InvalidCachedStatementError):  # a migration went by; the statement is prepared anew
        return True
    return isinstance(cause, PostgresError) and _state(cause) in _TRY_AGAIN


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, and with it the answer."""
    cause = cause_of(error)
    if isinstance(cause, PostgresError):
        return _state(cause).startswith(_LOST)
    return isinstance(cause, OSError | InterfaceError | InternalClientError)


def is_out_of_date(error: BaseException) -> bool:
    """Whether a table or column that we know is not there: another version has been at work."""
    cause = cause_of(error)
    return isinstance(cause, PostgresError) and _state(cause) in _OUT_OF_DATE


def explain(error: BaseException, address: PostgresAddress) -> BaseException:
    """Our error for whatever the server, the driver or the system says; anything else as it is."""
    cause = cause_of(error)
    if isinstance(cause, PostgresError):
        return _explain_server(cause, address)
    if isinstance(error, PoolTimeout):
        return Unreachable(
            f"all connections to {address} are in use", remedy="raise store.pool_size, or store.connect_timeout"
        )
    if isinstance(cause, TimeoutError):
        return Unreachable(f"{address} did not answer in time", remedy=_REMEDIES["08"])
    if isinstance(cause, OSError):
        return Unreachable(
            f"cannot reach {address}: {cause.strerror or type(cause).__name__}",
            remedy="check that the server runs, and that store.url names its host and port",
        )
    if isinstance(cause, InterfaceError | InternalClientError):
        return Unreachable(f"the connection to {address} broke", remedy=_REMEDIES["08"])
    return error


def _explain_server(cause: PostgresError, address: PostgresAddress) -> RedriveError:
    state, told = _state(cause), _told(cause)
    if state in {"XX001", "XX002"}:
        return CorruptFile(f"{address} is damaged: {told}", remedy="restore the database from a backup")
    if state == "25P01":
        return UsageError(
            "the connection is not in a transaction", remedy="begin one, record inside it, and commit it yourself"
        )
    if state in _OUT_OF_DATE:
        return Unreachable(
            f"the tables in {address} are not those that this Redrive knows: {told}",
            remedy="run `redrive db check`; a newer Redrive may have changed them",
        )
    for length in (5, 3, 2):
        if state[:length] in _REMEDIES:
            return Unreachable(f"cannot use {address}: {told}", remedy=_REMEDIES[state[:length]])
    return RedriveError(f"{address} refused a statement: {told}")


def _told(cause: PostgresError) -> str:
    """The server's own words, without its DETAIL and, where they may quote a value, without its words."""
    state = _state(cause)
    if state.startswith(_DATA):
        return f"{type(cause).__name__} ({state})"
    return f"{cause.args[0] if cause.args else type(cause).__name__} ({state})"


def _state(cause: PostgresError) -> str:
    return str(getattr(cause, "sqlstate", None) or "")
