"""API tokens as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import or_, select, update

from redrive.access import Grant
from redrive.accounts import NOTED_EVERY, ApiToken, KeptToken
from redrive.errors import NotFound, Refused
from redrive.stores.expressions import insert_into
from redrive.stores.schema_accounts import api_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.dead_letter import Actor

_grants = msgspec.json.Decoder(tuple[Grant, ...])
_OF_TOKEN = tuple(api_tokens.c[name] for name in ApiToken.__struct_fields__)


def written(grants: Sequence[Grant]) -> str:
    return msgspec.json.encode(list(grants)).decode()


def read(text: str) -> tuple[Grant, ...]:
    return _grants.decode(text)


def add(connection: Connection, kept: KeptToken) -> bool:
    """False if it is there already."""
    values = {name: getattr(kept.token, name) for name in ApiToken.__struct_fields__}
    row = {**values, "grants": written(kept.token.grants), "digest": kept.digest}
    insert = insert_into(api_tokens, connection.dialect.name).on_conflict_do_nothing(index_elements=["id"])
    if connection.execute(insert.returning(api_tokens.c.id), row).one_or_none() is not None:
        return True
    if is_there(connection, kept):
        return False
    raise Refused("another token has this id", remedy="make a new one")


def is_there(connection: Connection, kept: KeptToken) -> bool:
    """Whatever has become of it since."""
    found = find(connection, kept.token.id)
    return found is not None and found.digest == kept.digest


def find(connection: Connection, token_id: str) -> KeptToken | None:
    query = select(*_OF_TOKEN, api_tokens.c.digest).where(api_tokens.c.id == token_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else KeptToken(_token(row), bytes(row.digest))


def find_all(connection: Connection) -> list[ApiToken]:
    newest_first = (api_tokens.c.created_at.desc(), api_tokens.c.id)
    return [_token(row) for row in connection.execute(select(*_OF_TOKEN).order_by(*newest_first))]


def revoke(connection: Connection, token_id: str, *, by: Actor, now: datetime) -> tuple[ApiToken, bool]:
    """The token, and whether this has changed it."""
    change = update(api_tokens).where(api_tokens.c.id == token_id, api_tokens.c.revoked_at.is_(None))
    changed = connection.execute(change.values(revoked_at=now, revoked_by=by.name)).rowcount == 1
    found = find(connection, token_id)
    if found is None:
        raise NotFound(f"no token {token_id}", remedy="`redrive tokens list` shows the ids")
    return found.token, changed


def note_use(connection: Connection, token_id: str, at: datetime) -> None:
    last = api_tokens.c.last_used_at
    is_due = or_(last.is_(None), last <= at - NOTED_EVERY)
    connection.execute(update(api_tokens).where(api_tokens.c.id == token_id, is_due).values(last_used_at=at))


def _token(row: Any) -> ApiToken:
    values = {name: getattr(row, name) for name in ApiToken.__struct_fields__}
    return ApiToken(**{**values, "grants": read(row.grants)})
