"""Sessions and one-time codes as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import delete, exists, or_, select, update

from redrive.accounts import NOTED_EVERY, KeptSession, KeptToken, Purpose, Session, Source
from redrive.errors import Refused
from redrive.stores import sql_tokens, sql_users
from redrive.stores.expressions import insert_into
from redrive.stores.schema_accounts import api_tokens, one_time_codes, sessions, users
from redrive.stores.sql_tokens import read, written

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection


def add(connection: Connection, kept: KeptSession) -> None:
    session = kept.session
    if session.source is Source.USER and not _may_begin(connection, session):
        raise Refused("this user cannot sign in now")
    row = {
        "digest": kept.digest,
        "user_name": session.user,
        "source": str(session.source),
        "grants": written(session.grants),
        "created_at": session.created_at,
        "expires_at": session.expires_at,
        "last_seen_at": session.last_seen_at,
        "epoch": session.epoch,
    }
    insert = insert_into(sessions, connection.dialect.name).on_conflict_do_nothing(index_elements=["digest"])
    connection.execute(insert, row)


def _may_begin(connection: Connection, session: Session) -> bool:
    kept = sql_users.find(connection, session.user)
    return kept is not None and not kept.user.disabled and kept.user.epoch == session.epoch


def find(connection: Connection, digest: bytes) -> Session | None:
    row = connection.execute(select(sessions).where(sessions.c.digest == digest)).one_or_none()
    if row is None:
        return None
    session = Session(
        user=row.user_name,
        source=Source(row.source),
        grants=read(row.grants),
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_seen_at=row.last_seen_at,
        epoch=row.epoch,
    )
    return session if session.source is not Source.USER else _of_user(connection, session)


def _of_user(connection: Connection, session: Session) -> Session | None:
    """With the grants that the user has now; None if the user's sessions were ended since it began."""
    kept = sql_users.find(connection, session.user)
    if kept is None or kept.user.disabled or kept.user.epoch != session.epoch:
        return None
    return msgspec.structs.replace(session, grants=kept.user.grants)


def note_seen(connection: Connection, digest: bytes, at: datetime) -> None:
    is_due = sessions.c.last_seen_at <= at - NOTED_EVERY
    connection.execute(update(sessions).where(sessions.c.digest == digest, is_due).values(last_seen_at=at))


def end(connection: Connection, digest: bytes) -> None:
    connection.execute(delete(sessions).where(sessions.c.digest == digest))


def end_all(connection: Connection, user: str) -> int:
    return connection.execute(delete(sessions).where(sessions.c.user_name == user)).rowcount


def forget(connection: Connection, *, idle_since: datetime, now: datetime) -> int:
    is_over = or_(sessions.c.last_seen_at <= idle_since, sessions.c.expires_at <= now)
    return connection.execute(delete(sessions).where(is_over)).rowcount


def add_code(
    connection: Connection, digest: bytes, purpose: Purpose, *, expires_at: datetime, note: bytes, now: datetime
) -> None:
    connection.execute(delete(one_time_codes).where(one_time_codes.c.expires_at <= now))
    insert = insert_into(one_time_codes, connection.dialect.name).on_conflict_do_nothing(index_elements=["digest"])
    row = {"digest": digest, "purpose": str(purpose), "note": note, "expires_at": expires_at}
    connection.execute(insert, row)


def take_code(connection: Connection, digest: bytes, purpose: Purpose, now: datetime) -> bytes | None:
    """Of two who take it at once, one waits for the other's DELETE, and finds nothing then."""
    code = one_time_codes.c
    its = delete(one_time_codes).where(code.digest == digest, code.purpose == str(purpose))
    row = connection.execute(its.returning(code.note, code.expires_at)).one_or_none()
    return None if row is None or row.expires_at <= now else bytes(row.note)


def redeem_bootstrap(
    connection: Connection, digest: bytes, given: KeptToken | KeptSession, *, now: datetime
) -> tuple[bool, bool]:
    """Whether it is given, and whether this has changed anything."""
    if _is_given(connection, given):
        return True, False
    if has_accounts(connection) or take_code(connection, digest, Purpose.BOOTSTRAP, now) is None:
        return False, False
    others = delete(one_time_codes).where(one_time_codes.c.purpose == str(Purpose.BOOTSTRAP))
    connection.execute(others)
    if isinstance(given, KeptToken):
        sql_tokens.add(connection, given)
    else:
        add(connection, given)
    return True, True


def _is_given(connection: Connection, given: KeptToken | KeptSession) -> bool:
    if isinstance(given, KeptToken):
        return sql_tokens.is_there(connection, given)
    return find(connection, given.digest) is not None


def has_accounts(connection: Connection) -> bool:
    found = select(or_(exists(select(api_tokens.c.id)), exists(select(users.c.name))))
    return bool(connection.scalar(found))
