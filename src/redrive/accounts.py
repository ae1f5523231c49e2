"""Who can sign in: API tokens, users, their sessions, and the seam to what keeps them.

No secret is kept: of tokens, sessions and codes there are SHA-256 digests (each has 256 random bits, so nothing
slower is needed), of passwords there are Argon2 hashes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec
import re2

from redrive.access import EVERYWHERE, Grant, Role
from redrive.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.dead_letter import Actor

NOTED_EVERY = timedelta(minutes=1)
"""How exactly it is known when a token or session was used last."""

LONGEST_NAME = 64
_LONGEST_PATTERN = 255
_USER_NAME = re2.compile(r"[a-z0-9][a-z0-9._@+-]*")
_ROLES = ", ".join(Role)
_MAPPED = re2.compile(rf"([^=].*?)\s*=\s*((?:{'|'.join(Role)})(?::.*)?)")


class ApiToken(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """Public: it stands in the token, in lists and in the history."""
    name: str
    grants: tuple[Grant, ...]
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None = None
    """As of at most a minute before."""
    revoked_at: datetime | None = None
    revoked_by: str = ""

    def is_live(self, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at


class User(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    grants: tuple[Grant, ...]
    created_at: datetime
    created_by: str
    disabled: bool = False
    epoch: int = 0
    """How often all sessions of the user were ended: one that begins with an older number does not begin."""


class Source(StrEnum):
    """Where a session's grants come from."""

    USER = "user"
    """From the user, as they are at each moment."""
    OIDC = "oidc"
    """From what the identity provider said when the session began."""
    BOOTSTRAP = "bootstrap"
    """From the code of the first start."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    source: Source
    grants: tuple[Grant, ...]
    """As they are now."""
    created_at: datetime
    expires_at: datetime
    last_seen_at: datetime
    """As of at most a minute before."""
    epoch: int = 0
    """The user's when it began."""


class Purpose(StrEnum):
    """What a one-time code is good for."""

    BOOTSTRAP = "bootstrap"
    SIGN_IN = "sign in"


class KeptToken(msgspec.Struct, frozen=True):
    token: ApiToken
    digest: bytes


class KeptUser(msgspec.Struct, frozen=True):
    user: User
    password_hash: str


class KeptSession(msgspec.Struct, frozen=True):
    session: Session
    digest: bytes


class AccountStore(Protocol):
    """Keeps accounts. Every method is one transaction, raises `Unreachable` when the store is away, and may be
    repeated after an unknown outcome without changing anything twice.
    """

    async def add_token(self, kept: KeptToken, *, by: Actor) -> None:
        """Refused if another token has this id; the same one again changes nothing."""
        ...

    async def token(self, token_id: str) -> KeptToken | None:
        """Whatever has become of it."""
        ...

    async def tokens(self) -> list[ApiToken]:
        """All of them, the newest first."""
        ...

    async def revoke_token(self, token_id: str, *, by: Actor) -> ApiToken:
        """From now on, and for good; who came first has done it. NotFound if there is none."""
        ...

    async def note_token_use(self, token_id: str, at: datetime) -> None:
        """Nothing is written if less than a minute has passed since the last note."""
        ...

    async def add_user(self, kept: KeptUser, *, by: Actor) -> None:
        """Refused if the name is taken; the same user with the same hash again changes nothing."""
        ...

    async def user(self, name: str) -> KeptUser | None: ...

    async def users(self) -> list[User]:
        """All of them, by name."""
        ...

    async def set_password(self, name: str, password_hash: str, *, by: Actor) -> None:
        """All sessions of the user end with it. NotFound if there is no such user."""
        ...

    async def renew_hash(self, name: str, old: str, new: str) -> None:
        """The same password by newer parameters: nothing ends. Nothing happens if `old` is no longer the hash."""
        ...

    async def set_grants(self, name: str, grants: Sequence[Grant], *, by: Actor) -> User:
        """In place of those that the user had; they hold for open sessions too. NotFound if there is none."""
        ...

    async def set_disabled(self, name: str, *, disabled: bool, by: Actor) -> User:
        """Disabled: all sessions of the user end, and none can begin. NotFound if there is no such user."""
        ...

    async def add_session(self, kept: KeptSession) -> None:
        """The same one again changes nothing. Refused if it is of a user who is unknown, disabled, or of another
        epoch meanwhile.
        """
        ...

    async def session(self, digest: bytes) -> Session | None:
        """None too if it was ended with all others of its user; whether it has expired is up to the caller."""
        ...

    async def note_session_seen(self, digest: bytes, at: datetime) -> None:
        """Nothing is written if less than a minute has passed since the last note."""
        ...

    async def end_session(self, digest: bytes) -> None: ...

    async def end_sessions(self, user: str, *, by: Actor) -> int:
        """All of that user; how many."""
        ...

    async def add_code(self, digest: bytes, purpose: Purpose, *, expires_at: datetime, note: bytes = b"") -> None:
        """Codes that have expired are forgotten on the way."""
        ...

    async def take_code(self, digest: bytes, purpose: Purpose) -> bytes | None:
        """Its note, once: whoever takes it first has it. None if there is none, or if it has expired."""
        ...

    async def redeem_bootstrap(self, digest: bytes, given: KeptToken | KeptSession, *, by: Actor) -> bool:
        """A bootstrap code becomes what is given, in one step, and all other bootstrap codes are void. False if
        there is no such code, it has expired, or there are tokens or users meanwhile. The same code for the same
        token or session again is True and changes nothing.
        """
        ...

    async def has_accounts(self) -> bool:
        """Whether there is, or ever was, a token or a user."""
        ...

    async def forget_sessions(self, *, idle_since: datetime) -> int:
        """Takes away those that have expired, and those not seen since that moment; how many."""
        ...


def grant_of(text: str) -> Grant:
    """`operator`, or `operator:orders`, or `operator:pay*`: a role, for all queues or for those of one name or one
    beginning. UsageError for anything else.
    """
    role, limited, pattern = text.strip().partition(":")
    if role not in set(Role):
        raise UsageError(f"{role!r} is no role", remedy=f"use one of: {_ROLES}")
    if not limited:
        return Grant(Role(role))
    if not _is_pattern(pattern):
        raise UsageError(
            f"{pattern!r} names no queues", remedy="write a queue's name, or its beginning and a final *: pay*"
        )
    return Grant(Role(role), (pattern,))


def grant_texts(grants: Sequence[Grant]) -> list[str]:
    """As `grant_of` reads them."""
    return [
        str(each.role) if each.queues == EVERYWHERE else f"{each.role}:{pattern}"
        for each in grants
        for pattern in each.queues
    ]


def checked_grants(grants: Sequence[Grant]) -> tuple[Grant, ...]:
    """Each once. UsageError if there are none, or one names no queues."""
    if not grants:
        raise UsageError("nothing is granted", remedy=f"grant at least one role: {_ROLES}")
    if not all(each.queues and all(map(_is_pattern, each.queues)) for each in grants):
        raise UsageError("a grant names no queues", remedy="write names, or beginnings and a final *; * means all")
    return tuple(dict.fromkeys(grants))


def _is_pattern(pattern: str) -> bool:
    named = pattern.removesuffix("*")
    return pattern != "" and "*" not in named and len(pattern) <= _LONGEST_PATTERN and pattern.isprintable()


def checked_user_name(text: str) -> str:
    """In small letters. UsageError for what two people could take for each other, or a log for something else."""
    name = text.strip().lower()
    if len(name) > LONGEST_NAME or not text.isascii() or not _USER_NAME.fullmatch(name):
        raise UsageError(
            "this is no name for a user",
            remedy=f"at most {LONGEST_NAME} of a-z, 0-9 and . _ @ + -, the first a letter or digit",
        )
    return name


def checked_token_name(text: str) -> str:
    name = " ".join(text.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(
            "a token needs a name", remedy=f"say what it is for, in at most {LONGEST_NAME} characters"
        )
    return name


def role_of(text: str) -> tuple[str, Grant]:
    """`shop-ops = operator:orders`: a role of an identity provider, and what it grants here."""
    found = _MAPPED.fullmatch(text) if text.isprintable() else None
    if found is None:
        raise UsageError(
            f"{text!r} grants nothing",
            remedy=f"write their role, '=' and ours, such as 'shop-ops = operator': {_ROLES}",
        )
    return found[1].strip(), grant_of(found[2])
