"""Secrets that the store makes once and every process shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from redrive.stores.expressions import insert_into
from redrive.stores.schema import secrets

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

SIGNING_KEY = "signing key"
BLIND_INDEX_KEY = "blind index key"
BLIND_INDEX_CHECK = "blind index check"
ERASURE_KEY = "erasure key"
ENVIRONMENT = "environment"
"""No secret, but made once and shared like one."""


def find_secret(connection: Connection, name: str) -> bytes | None:
    return connection.scalar(select(secrets.c.value).where(secrets.c.name == name))


def keep_secret(connection: Connection, name: str, value: bytes, now: datetime) -> bytes:
    """The secret of that name: this one, or the one that somebody kept before."""
    first_wins = insert_into(secrets, connection.dialect.name).on_conflict_do_nothing(index_elements=["name"])
    connection.execute(first_wins, {"name": name, "value": value, "made_at": now})
    return find_secret(connection, name) or value
