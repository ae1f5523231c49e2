"""Tokens, users and the ledger through a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from redrive.account_actions import MadeToken
from redrive.accounts import ApiToken, User
from redrive.errors import NotFound
from redrive.ledger import LedgerEntry, LedgerQuery
from redrive.remote.line import Line, segment

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import timedelta

    from redrive.access import Grant

_PAGE = 500


class _Tokens(msgspec.Struct):
    items: list[ApiToken]


class _Users(msgspec.Struct):
    items: list[User]


class _Ledger(msgspec.Struct):
    items: list[LedgerEntry]


class RemoteAccounts:
    _line: Line

    async def create_token(
        self, name: str, grants: Sequence[Grant], *, lasts: timedelta | None = None, reason: str = ""
    ) -> MadeToken:
        body = {
            "name": name,
            "grants": list(grants),
            "lasts": None if lasts is None else f"{lasts.total_seconds():.3f}s",
            "reason": reason,
        }
        return await self._line.ask("POST", "/tokens", MadeToken, body=body)

    async def tokens(self) -> list[ApiToken]:
        return (await self._line.ask("GET", "/tokens", _Tokens)).items

    async def revoke_token(self, token_id: str, reason: str = "") -> ApiToken:
        return await self._line.ask(
            "POST", f"/tokens/{segment(token_id)}/revoke", ApiToken, body={"reason": reason}
        )

    async def add_user(self, name: str, password: str, grants: Sequence[Grant], *, reason: str = "") -> User:
        body = {"name": name, "password": password, "grants": list(grants), "reason": reason}
        return await self._line.ask("POST", "/users", User, body=body)

    async def users(self) -> list[User]:
        return (await self._line.ask("GET", "/users", _Users)).items

    async def set_password(self, name: str, password: str, *, reason: str = "") -> None:
        await self._changed(name, password=password, reason=reason)

    async def set_grants(self, name: str, grants: Sequence[Grant], *, reason: str = "") -> User:
        return await self._changed(name, grants=list(grants), reason=reason)

    async def disable_user(self, name: str, reason: str = "") -> User:
        return await self._changed(name, disabled=True, reason=reason)

    async def enable_user(self, name: str, reason: str = "") -> User:
        return await self._changed(name, disabled=False, reason=reason)

    async def _changed(self, name: str, **change: Any) -> User:
        found = (await self._line.ask("PATCH", f"/users/{segment(name)}", _Users, body=change)).items
        if not found:
            raise NotFound(f"no user {name}", remedy="`redrive users list` shows the names")
        return found[0]

    # The ledger

    async def ledger(self, query: LedgerQuery) -> list[LedgerEntry]:
        params = {
            "who": query.who,
            "what": query.what,
            "since": query.since and query.since.isoformat(),
            "until": query.until and query.until.isoformat(),
            "denied": True if query.allowed is False else None,
            "before": query.before,
            "after": query.after,
            "limit": query.limit,
        }
        return (await self._line.ask("GET", "/audit", _Ledger, params=params)).items

    async def whole_ledger(self, query: LedgerQuery | None = None) -> AsyncGenerator[LedgerEntry]:
        wanted = query or LedgerQuery()
        page = msgspec.structs.replace(wanted, limit=_PAGE, before=None, after=wanted.after or 0)
        while found := await self.ledger(page):
            for entry in found:
                yield entry
            page = msgspec.structs.replace(page, after=found[-1].seq)
