"""The first start: while there are neither tokens nor users, a code that is shown once makes somebody an admin.

It holds for fifteen minutes and one use, and for nothing once there is an account. The front door shows it where
only those see it who started the process.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from redrive.access import Grant, Role
from redrive.accounts import ApiToken, KeptToken, Purpose, Source
from redrive.dead_letter import Actor
from redrive.identity import tokens
from redrive.identity.sessions import digest, new_secret

if TYPE_CHECKING:
    from redrive.accounts import AccountStore
    from redrive.clock import Clock
    from redrive.identity.sessions import Sessions
    from redrive.identity.tokens import Shown

HOLDS_FOR = timedelta(minutes=15)
NAME = "first start"
"""Nobody else has it: names of users have no spaces."""
_ADMIN = (Grant(Role.ADMIN),)
_BY = Actor(NAME, "bootstrap code")


class Bootstrap:
    def __init__(self, store: AccountStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def code(self) -> str | None:
        """A new code; None if there is, or ever was, a token or a user."""
        if await self._store.has_accounts():
            return None
        code = new_secret()
        key = digest(code) or b""
        await self._store.add_code(key, Purpose.BOOTSTRAP, expires_at=self._clock.now() + HOLDS_FOR)
        return code

    async def session(self, code: str, sessions: Sessions) -> str | None:
        """The secret of an admin's session for the code. None, whatever is wrong with it."""
        secret, kept = sessions.prepared(NAME, Source.BOOTSTRAP, _ADMIN)
        key = digest(code)
        if key is None or not await self._store.redeem_bootstrap(key, kept, by=_BY):
            return None
        return secret

    async def token(self, code: str, *, lasts: timedelta) -> Shown | None:
        """An admin's token for the code. None, whatever is wrong with it."""
        shown, now = tokens.new_token(), self._clock.now()
        made = ApiToken(
            id=shown.id, name="bootstrap", grants=_ADMIN, created_at=now, created_by=NAME, expires_at=now + lasts
        )
        key = digest(code)
        kept = KeptToken(made, tokens.digest(shown.secret))
        if key is None or not await self._store.redeem_bootstrap(key, kept, by=_BY):
            return None
        return shown
