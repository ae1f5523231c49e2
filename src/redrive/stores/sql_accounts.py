"""Accounts in a store on SQL. What happens is decided in sql_tokens, sql_users and sql_sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from redrive.accounts import KeptSession, KeptToken, grant_texts
from redrive.ledger import TOKEN, USER, Deed, Subject
from redrive.stores import sql_sessions, sql_tokens, sql_users

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.access import Grant
    from redrive.accounts import ApiToken, KeptUser, Purpose, Session, User
    from redrive.dead_letter import Actor
    from redrive.stores.sql_ledger import Ledger

T = TypeVar("T")


class SqlAccounts(ABC):
    _ledger: Ledger

    @abstractmethod
    async def _change(self, unit: Callable[[Connection], T], letters: int = 1) -> T:
        """Runs the unit, which changes about so many letters, in one durable transaction."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    @abstractmethod
    def _now(self, connection: Connection) -> datetime:
        """The clock that all who share the store go by."""

    def _tell(
        self, connection: Connection, what: str, subject: Subject, *, by: Actor, before: str = "", after: str = ""
    ) -> None:
        """The last thing that a change of accounts does."""
        deed = Deed(what=what, subject=subject, before=before, after=after)
        self._ledger.write(connection, deed, by=by, now=self._now(connection))

    # Tokens

    async def add_token(self, kept: KeptToken, *, by: Actor) -> None:
        def unit(connection: Connection) -> None:
            if sql_tokens.add(connection, kept):
                self._tell(connection, "token made", _token(kept.token.id), by=by, after=_about(kept.token))

        await self._change(unit, 0)

    async def token(self, token_id: str) -> KeptToken | None:
        return await self._read(lambda connection: sql_tokens.find(connection, token_id))

    async def tokens(self) -> list[ApiToken]:
        return await self._read(sql_tokens.find_all)

    async def revoke_token(self, token_id: str, *, by: Actor) -> ApiToken:
        def unit(connection: Connection) -> ApiToken:
            token, changed = sql_tokens.revoke(connection, token_id, by=by, now=self._now(connection))
            if changed:
                self._tell(connection, "token revoked", _token(token_id), by=by, before=_about(token))
            return token

        return await self._change(unit, 0)

    async def note_token_use(self, token_id: str, at: datetime) -> None:
        await self._change(lambda connection: sql_tokens.note_use(connection, token_id, at), 0)

    # Users

    async def add_user(self, kept: KeptUser, *, by: Actor) -> None:
        def unit(connection: Connection) -> None:
            if sql_users.add(connection, kept):
                self._tell(connection, "user added", _user(kept.user.name), by=by, after=_listed(kept.user.grants))

        await self._change(unit, 0)

    async def user(self, name: str) -> KeptUser | None:
        return await self._read(lambda connection: sql_users.find(connection, name))

    async def users(self) -> list[User]:
        return await self._read(sql_users.find_all)

    async def set_password(self, name: str, password_hash: str, *, by: Actor) -> None:
        def unit(connection: Connection) -> None:
            if sql_users.set_hash(connection, name, password_hash):
                sql_sessions.end_all(connection, name)
                self._tell(connection, "password set", _user(name), by=by)

        await self._change(unit, 0)

    async def renew_hash(self, name: str, old: str, new: str) -> None:
        await self._change(lambda connection: sql_users.renew_hash(connection, name, old, new), 0)

    async def set_grants(self, name: str, grants: Sequence[Grant], *, by: Actor) -> User:
        def unit(connection: Connection) -> User:
            before, after = sql_users.set_grants(connection, name, grants)
            if before != after:
                told = {"before": _listed(before.grants), "after": _listed(after.grants)}
                self._tell(connection, "grants set", _user(name), by=by, **told)
            return after

        return await self._change(unit, 0)

    async def set_disabled(self, name: str, *, disabled: bool, by: Actor) -> User:
        def unit(connection: Connection) -> User:
            before, after = sql_users.set_disabled(connection, name, disabled=disabled)
            if before != after:
                sql_sessions.end_all(connection, name)
                self._tell(connection, "user disabled" if disabled else "user enabled", _user(name), by=by)
            return after

        return await self._change(unit, 0)

    # Sessions and codes

    async def add_session(self, kept: KeptSession) -> None:
        await self._change(lambda connection: sql_sessions.add(connection, kept), 0)

    async def session(self, digest: bytes) -> Session | None:
        return await self._read(lambda connection: sql_sessions.find(connection, digest))

    async def note_session_seen(self, digest: bytes, at: datetime) -> None:
        await self._change(lambda connection: sql_sessions.note_seen(connection, digest, at), 0)

    async def end_session(self, digest: bytes) -> None:
        await self._change(lambda connection: sql_sessions.end(connection, digest), 0)

    async def end_sessions(self, user: str, *, by: Actor) -> int:
        def unit(connection: Connection) -> int:
            sql_users.end_epoch(connection, user)
            ended = sql_sessions.end_all(connection, user)
            if ended:
                self._tell(connection, "sessions ended", _user(user), by=by, before=str(ended))
            return ended

        return await self._change(unit, 0)

    async def add_code(self, digest: bytes, purpose: Purpose, *, expires_at: datetime, note: bytes = b"") -> None:
        def unit(connection: Connection) -> None:
            now = self._now(connection)
            sql_sessions.add_code(connection, digest, purpose, expires_at=expires_at, note=note, now=now)

        await self._change(unit, 0)

    async def take_code(self, digest: bytes, purpose: Purpose) -> bytes | None:
        def unit(connection: Connection) -> bytes | None:
            return sql_sessions.take_code(connection, digest, purpose, self._now(connection))

        return await self._change(unit, 0)

    async def redeem_bootstrap(self, digest: bytes, given: KeptToken | KeptSession, *, by: Actor) -> bool:
        def unit(connection: Connection) -> bool:
            now = self._now(connection)
            is_given, changed = sql_sessions.redeem_bootstrap(connection, digest, given, now=now)
            if changed:
                self._tell(connection, "bootstrap code redeemed", _subject(given), by=by)
            return is_given

        return await self._change(unit, 0)

    async def has_accounts(self) -> bool:
        return await self._read(sql_sessions.has_accounts)

    async def forget_sessions(self, *, idle_since: datetime) -> int:
        def unit(connection: Connection) -> int:
            return sql_sessions.forget(connection, idle_since=idle_since, now=self._now(connection))

        return await self._change(unit, 0)


def _token(token_id: str) -> Subject:
    return Subject(TOKEN, (token_id,))


def _user(name: str) -> Subject:
    return Subject(USER, (name,))


def _subject(given: KeptToken | KeptSession) -> Subject:
    return _token(given.token.id) if isinstance(given, KeptToken) else _user(given.session.user)


def _listed(grants: Sequence[Grant]) -> str:
    return ", ".join(grant_texts(grants))


def _about(token: ApiToken) -> str:
    return f"{token.name}: {_listed(token.grants)} until {token.expires_at.isoformat()}"
