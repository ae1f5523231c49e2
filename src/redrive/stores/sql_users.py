"""Users as rows. Whatever ends all sessions of a user raises the user's epoch in the same statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from redrive.accounts import KeptUser, User
from redrive.errors import NotFound, Refused
from redrive.stores.expressions import insert_into
from redrive.stores.schema_accounts import users
from redrive.stores.sql_tokens import read, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from redrive.access import Grant

_OF_USER = tuple(users.c[name] for name in User.__struct_fields__)


def add(connection: Connection, kept: KeptUser) -> bool:
    """False if it is there already."""
    values = {name: getattr(kept.user, name) for name in User.__struct_fields__}
    row = {**values, "grants": written(kept.user.grants), "password_hash": kept.password_hash}
    insert = insert_into(users, connection.dialect.name).on_conflict_do_nothing(index_elements=["name"])
    if connection.execute(insert.returning(users.c.name), row).one_or_none() is not None:
        return True
    there = find(connection, kept.user.name)
    if there is not None and there.password_hash == kept.password_hash:  # each has a salt of its own
        return False
    raise Refused(f"there is a user {kept.user.name} already", remedy="take another name, or set a new password")


def find(connection: Connection, name: str) -> KeptUser | None:
    row = connection.execute(select(*_OF_USER, users.c.password_hash).where(users.c.name == name)).one_or_none()
    return None if row is None else KeptUser(_user(row), row.password_hash)


def locked(connection: Connection, name: str) -> KeptUser:
    """The user, whom nobody else changes before this transaction ends."""
    query = select(*_OF_USER, users.c.password_hash).where(users.c.name == name).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"no user {name}", remedy="`redrive users list` shows the names")
    return KeptUser(_user(row), row.password_hash)


def find_all(connection: Connection) -> list[User]:
    return [_user(row) for row in connection.execute(select(*_OF_USER).order_by(users.c.name))]


def set_hash(connection: Connection, name: str, password_hash: str) -> bool:
    """False if it is that one already."""
    if locked(connection, name).password_hash == password_hash:
        return False
    _change(connection, name, password_hash=password_hash, epoch=users.c.epoch + 1)
    return True


def renew_hash(connection: Connection, name: str, old: str, new: str) -> None:
    change = update(users).where(users.c.name == name, users.c.password_hash == old)
    connection.execute(change.values(password_hash=new))


def set_grants(connection: Connection, name: str, grants: Sequence[Grant]) -> tuple[User, User]:
    """The user before and after."""
    before = locked(connection, name).user
    if before.grants != tuple(grants):
        _change(connection, name, grants=written(grants))
    return before, locked(connection, name).user


def set_disabled(connection: Connection, name: str, *, disabled: bool) -> tuple[User, User]:
    """The same."""
    before = locked(connection, name).user
    if before.disabled != disabled:
        _change(connection, name, disabled=disabled, epoch=users.c.epoch + 1)
    return before, locked(connection, name).user


def end_epoch(connection: Connection, name: str) -> None:
    """If there is such a user: sessions may be of somebody whom another house knows."""
    _change(connection, name, epoch=users.c.epoch + 1)


def _change(connection: Connection, name: str, **values: Any) -> None:
    connection.execute(update(users).where(users.c.name == name).values(**values))


def _user(row: Any) -> User:
    values = {name: getattr(row, name) for name in User.__struct_fields__}
    return User(**{**values, "grants": read(row.grants)})
