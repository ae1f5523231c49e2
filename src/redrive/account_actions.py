"""The desk's part about who may come in: API tokens and users. See `redrive.actions`.

Nobody grants what they do not have: an administrator of some queues makes accounts for those queues, and accounts
that may do more are not there for them. One thing is granted without being had: to record letters, which workers
need and people do not.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, cast

import msgspec

from redrive.access import EVERYWHERE, PERMISSIONS, Grant, Permission, Role, covers
from redrive.accounts import (
    ApiToken,
    KeptToken,
    KeptUser,
    User,
    checked_grants,
    checked_token_name,
    checked_user_name,
    grant_texts,
)
from redrive.errors import NotFound, UsageError
from redrive.identity import tokens
from redrive.identity.passwords import Passwords, checked_password
from redrive.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.accounts import AccountStore
    from redrive.clock import Clock

_SHORTEST = timedelta(minutes=1)


class AccessPolicy(msgspec.Struct, frozen=True):
    """What the settings say about tokens."""

    token_age: timedelta = timedelta(days=90)
    token_max_age: timedelta = timedelta(days=365)


class MadeToken(msgspec.Struct, frozen=True):
    """A new token, and its text, which is never seen again."""

    token: ApiToken
    text: str

    def __repr__(self) -> str:
        return f"MadeToken({self.token.id!r})"


class AccountActions(Standing):
    _clock: Clock
    _access: AccessPolicy = AccessPolicy()

    @property
    def _accounts(self) -> AccountStore:
        return cast("AccountStore", self._store)  # every driver of ours is one

    @cached_property
    def _passwords(self) -> Passwords:
        return Passwords(self._accounts)

    # Tokens

    async def create_token(
        self, name: str, grants: Sequence[Grant], *, lasts: timedelta | None = None, reason: str = ""
    ) -> MadeToken:
        """Denied if somebody grants what they do not have. Without `lasts`, for as long as the settings say."""
        granted = await self._grantable(grants)
        shown, now = tokens.new_token(), self._clock.now()
        token = ApiToken(
            id=shown.id,
            name=checked_token_name(name),
            grants=granted,
            created_at=now,
            created_by=self._who.name,
            expires_at=now + self._checked_age(lasts),
        )
        await self._accounts.add_token(KeptToken(token, tokens.digest(shown.secret)), by=self._by(reason))
        return MadeToken(token, shown.text)

    async def tokens(self) -> list[ApiToken]:
        """The newest first, those that have ended included."""
        await self._may(Permission.ADMINISTER)
        return [each for each in await self._accounts.tokens() if self._has_all(each.grants)]

    async def revoke_token(self, token_id: str, reason: str = "") -> ApiToken:
        """At once and for good. What is revoked already stays as it is."""
        await self._may(Permission.ADMINISTER)
        kept = await self._accounts.token(token_id.strip())
        if kept is None or not self._has_all(kept.token.grants):
            raise NotFound(f"no token {token_id}", remedy="`redrive tokens list` shows the ids")
        return await self._accounts.revoke_token(kept.token.id, by=self._by(reason))

    def _checked_age(self, lasts: timedelta | None) -> timedelta:
        age, longest = lasts or self._access.token_age, self._access.token_max_age
        if not _SHORTEST <= age <= longest:
            raise UsageError(
                f"a token holds for a minute to {longest.days} days", remedy="access.token_max_age sets the most"
            )
        return age

    # Users

    async def add_user(self, name: str, password: str, grants: Sequence[Grant], *, reason: str = "") -> User:
        """Refused if the name is taken."""
        granted, called = await self._grantable(grants), checked_user_name(name)
        user = User(name=called, grants=granted, created_at=self._clock.now(), created_by=self._who.name)
        password_hash = await self._passwords.hash(checked_password(password, called))
        await self._accounts.add_user(KeptUser(user, password_hash), by=self._by(reason))
        return user

    async def users(self) -> list[User]:
        await self._may(Permission.ADMINISTER)
        return [each for each in await self._accounts.users() if self._has_all(each.grants)]

    async def set_password(self, name: str, password: str, *, reason: str = "") -> None:
        """The user is signed out everywhere."""
        user = await self._user(name)
        password_hash = await self._passwords.hash(checked_password(password, user.name))
        await self._accounts.set_password(user.name, password_hash, by=self._by(reason))

    async def set_own_password(self, current: str, password: str) -> None:
        """Of whoever stands here, who is signed out everywhere. UsageError if it is not the current one."""
        user = None if self._who.token else await self._passwords.check(self._who.name, current)
        if user is None:
            raise UsageError("this is not your password", remedy="ask an administrator for a new one")
        password_hash = await self._passwords.hash(checked_password(password, user.name))
        await self._accounts.set_password(user.name, password_hash, by=self._by())

    async def set_grants(self, name: str, grants: Sequence[Grant], *, reason: str = "") -> User:
        """In place of those that the user has; they hold at once."""
        granted, user = await self._grantable(grants), await self._user(name)
        return await self._accounts.set_grants(user.name, granted, by=self._by(reason))

    async def disable_user(self, name: str, reason: str = "") -> User:
        """The user is signed out everywhere and cannot sign in."""
        user = await self._user(name)
        return await self._accounts.set_disabled(user.name, disabled=True, by=self._by(reason))

    async def enable_user(self, name: str, reason: str = "") -> User:
        user = await self._user(name)
        return await self._accounts.set_disabled(user.name, disabled=False, by=self._by(reason))

    async def sign_out(self, name: str, reason: str = "") -> int:
        """Ends all sessions of somebody; how many. Of those whom an identity provider vouches for, too."""
        await self._may_everywhere(Permission.ADMINISTER)
        return await self._accounts.end_sessions(name.strip(), by=self._by(reason))

    async def _user(self, name: str) -> User:
        await self._may(Permission.ADMINISTER)
        kept = await self._accounts.user(name.strip().lower())
        if kept is None or not self._has_all(kept.user.grants):
            raise NotFound(f"no user {name}", remedy="`redrive users list` shows the names")
        return kept.user

    # What may be granted

    async def _grantable(self, grants: Sequence[Grant]) -> tuple[Grant, ...]:
        await self._may(Permission.ADMINISTER)
        checked = checked_grants(grants)
        for grant in checked:
            if not self._has(grant):
                raise await self._denied(Permission.ADMINISTER, f"granting {', '.join(grant_texts([grant]))}")
        return checked

    def _has_all(self, grants: Sequence[Grant]) -> bool:
        return all(map(self._has, grants))

    def _has(self, grant: Grant) -> bool:
        scope = None if EVERYWHERE[0] in grant.queues else grant.queues
        needed = {Permission.ADMINISTER} if grant.role is Role.INGEST else PERMISSIONS[grant.role]
        return all(covers(self._who.scope_of(each), scope) for each in needed)
