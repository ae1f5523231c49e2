"""Passwords, as Argon2id hashes with the parameters of RFC 9106's second choice (64 MiB).

Hashing takes tens of milliseconds and that memory, so it happens in threads, few at a time: whoever guesses waits
in line and cannot use up the machine.
"""

from __future__ import annotations

import asyncio
import secrets
import unicodedata
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from redrive.errors import ConfigurationError, Unreachable, UsageError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

    from redrive.accounts import AccountStore, User

SHORTEST, LONGEST = 12, 256
_AT_ONCE = 2
_REMEDY = "take a sentence, or let a program make one"


def checked_password(password: str, user: str) -> str:
    """UsageError for one that is guessed first. The text quotes nothing of it."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise UsageError(
            f"a password has {SHORTEST} to {LONGEST} characters",
            remedy=_REMEDY,
        )
    if password.casefold().strip() == user or len(set(password)) < SHORTEST // 3:
        raise UsageError("this password is guessed at once", remedy=_REMEDY)
    return password


def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher  # noqa: PLC0415  only where passwords are used
    except ModuleNotFoundError:
        raise ConfigurationError(
            "passwords need a package that is not installed", remedy="pip install 'redrive[server]'"
        ) from None
    return PasswordHasher()


class Passwords:
    """`hasher`: other parameters, for tests and for the years to come."""

    def __init__(self, store: AccountStore, *, hasher: PasswordHasher | None = None) -> None:
        self._store = store
        self._given = hasher
        self._nobodys: str | None = None
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def hash(self, password: str) -> str:
        async with self._turns:
            return await asyncio.to_thread(self._argon2.hash, _bytes(password))

    async def check(self, name: str, password: str) -> User | None:
        """Whose name and password these are. None for a wrong password, an unknown name or a disabled user, after
        the same work. A hash of older parameters is made anew.
        """
        nobodys = await self._hash_of_nobody()  # whoever asks first waits for it, by whatever name
        kept = await self._store.user(name.strip().lower())
        known = nobodys if kept is None else kept.password_hash
        right = await self._verify(known, password)
        if kept is None or kept.user.disabled or not right:
            return None
        if self._argon2.check_needs_rehash(known):
            with suppress(Unreachable):  # next time will do
                await self._store.renew_hash(kept.user.name, known, await self.hash(password))
        return kept.user

    async def _verify(self, known: str, password: str) -> bool:
        if len(password) > LONGEST:
            password = ""  # nobody's, and not worth hashing
        async with self._turns:
            return await asyncio.to_thread(self._matches, known, _bytes(password))

    def _matches(self, known: str, password: bytes) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError  # noqa: PLC0415  as above

        try:
            return self._argon2.verify(known, password)
        except (VerificationError, InvalidHashError):
            return False

    async def _hash_of_nobody(self) -> str:
        """For names that nobody has: of something that nobody knows."""
        if self._nobodys is None:
            self._nobodys = await self.hash(secrets.token_hex())
        return self._nobodys

    @cached_property
    def _argon2(self) -> PasswordHasher:
        return self._given or _hasher()


def _bytes(password: str) -> bytes:
    """The same for every way to type it: an accent may be part of a letter, or follow it."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
