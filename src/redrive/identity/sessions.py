"""Sessions of browsers: a random secret in a cookie, its SHA-256 in the store.

A session ends twelve hours after it began, an hour after it was seen last, when its user signs out, has a new
password or is disabled: whatever comes first.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import re2

from redrive.access import Identity
from redrive.accounts import NOTED_EVERY, KeptSession, Session, Source
from redrive.errors import Refused, Unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.access import Grant
    from redrive.accounts import AccountStore, User
    from redrive.clock import Clock

LONGEST = timedelta(hours=12)
IDLE = timedelta(hours=1)
_SECRET_BYTES = 32
_FORM = re2.compile(f"[0-9a-f]{{{2 * _SECRET_BYTES}}}")


def new_secret() -> str:
    """256 random bits, for sessions and one-time codes."""
    return secrets.token_hex(_SECRET_BYTES)


def digest(secret: str) -> bytes | None:
    """None for what `new_secret` has not made."""
    if len(secret) != 2 * _SECRET_BYTES or not secret.isascii() or not _FORM.fullmatch(secret):
        return None
    return hashlib.sha256(secret.encode()).digest()


class Sessions:
    def __init__(
        self, store: AccountStore, clock: Clock, *, longest: timedelta = LONGEST, idle: timedelta = IDLE
    ) -> None:
        self._store = store
        self._clock = clock
        self._longest = longest
        self._idle = idle

    async def begin(self, user: User) -> str | None:
        """The new session's secret, which nobody sees again. None if the user has been disabled meanwhile, or has
        a new password.
        """
        return await self._keep(self.prepared(user.name, Source.USER, (), epoch=user.epoch))

    async def begin_for(self, identity: Identity) -> str | None:
        """For somebody whom an identity provider vouches for. None for somebody who may do nothing."""
        if not identity.grants:
            return None
        return await self._keep(self.prepared(identity.name, Source.OIDC, identity.grants))

    def prepared(
        self, user: str, source: Source, grants: Sequence[Grant], *, epoch: int = 0
    ) -> tuple[str, KeptSession]:
        """A secret, and what is to be kept for it."""
        now, secret = self._clock.now(), new_secret()
        session = Session(
            user=user,
            source=source,
            grants=tuple(grants),
            created_at=now,
            expires_at=now + self._longest,
            last_seen_at=now,
            epoch=epoch,
        )
        return secret, KeptSession(session, _certain(secret))

    async def _keep(self, prepared: tuple[str, KeptSession]) -> str | None:
        secret, kept = prepared
        try:
            await self._store.add_session(kept)
        except Refused:
            return None
        return secret

    async def identify(self, secret: str, *, request_id: str = "") -> Identity | None:
        """Whose session this is, who is then seen. None, whatever is wrong with it."""
        key, now = digest(secret), self._clock.now()
        found = None if key is None else await self._store.session(key)
        if key is None or found is None or not self._is_live(found):
            return None
        if now - found.last_seen_at >= NOTED_EVERY:
            with suppress(Unreachable):  # the next request notes it
                await self._store.note_session_seen(key, now)
        return Identity(name=found.user, grants=found.grants, request_id=request_id)

    def _is_live(self, session: Session) -> bool:
        now = self._clock.now()
        return now < session.expires_at and now - session.last_seen_at < self._idle

    async def end(self, secret: str) -> None:
        """Signs out. What is no session's secret is nobody's, and nothing happens."""
        key = digest(secret)
        if key is not None:
            await self._store.end_session(key)

    async def forget_old(self) -> int:
        """Takes sessions out of the store that nobody can use any more; how many."""
        return await self._store.forget_sessions(idle_since=self._clock.now() - self._idle)


def _certain(secret: str) -> bytes:
    key = digest(secret)
    if key is None:
        raise AssertionError("a new secret has the form of one")
    return key
