"""API tokens: `rdv_<id>_<secret>`.

The id is public and finds the row, the secret has 256 random bits and is kept as its SHA-256. A token that is
unknown, expired, revoked or no token at all takes the same way through here as a good one, up to its end.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import re2

from redrive.access import Identity
from redrive.accounts import NOTED_EVERY
from redrive.approvals import token_name
from redrive.errors import Unreachable

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.accounts import AccountStore
    from redrive.clock import Clock

PREFIX = "rdv_"
_ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # none that look alike
_ID_LENGTH = 12
_SECRET_BYTES = 32
_FORM = re2.compile(f"{PREFIX}([{_ID_ALPHABET}]{{{_ID_LENGTH}}})_([0-9a-f]{{{2 * _SECRET_BYTES}}})")
_LENGTH = len(PREFIX) + _ID_LENGTH + 1 + 2 * _SECRET_BYTES


class Shown(NamedTuple):
    """A token as its holder has it: here alone with its secret, which no repr tells."""

    id: str
    secret: str

    @property
    def text(self) -> str:
        return f"{PREFIX}{self.id}_{self.secret}"

    def __repr__(self) -> str:
        return f"Shown(id={self.id!r})"


_NOBODYS = Shown("", "0" * 2 * _SECRET_BYTES)
_NO_DIGEST = bytes(32)  # nothing is known that has it


def new_token() -> Shown:
    token_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))
    return Shown(token_id, secrets.token_hex(_SECRET_BYTES))


def parse(text: str) -> Shown | None:
    """None for anything that was not written by `new_token`: no spaces, no other case, nothing around it."""
    if len(text) != _LENGTH or not text.isascii():
        return None
    found = _FORM.fullmatch(text)
    return None if found is None else Shown(found[1], found[2])


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


class Tokens:
    def __init__(self, store: AccountStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def identify(self, text: str, *, request_id: str = "") -> Identity | None:
        """Whose token this is. None, whatever is wrong with it; Unreachable if the store cannot say."""
        shown = parse(text) or _NOBODYS
        kept = await self._store.token(shown.id)
        matches = hmac.compare_digest(digest(shown.secret), _NO_DIGEST if kept is None else kept.digest)
        now = self._clock.now()
        if kept is None or not matches or not kept.token.is_live(now):
            return None
        await self._note_use(kept.token.id, kept.token.last_used_at, now)
        name = token_name(kept.token.name, kept.token.created_by)
        return Identity(name=name, grants=kept.token.grants, token=kept.token.id, request_id=request_id)

    async def _note_use(self, token_id: str, last: datetime | None, now: datetime) -> None:
        if last is None or now - last >= NOTED_EVERY:
            with suppress(Unreachable):  # who it is has been found out; when it was last used can wait
                await self._store.note_token_use(token_id, now)
