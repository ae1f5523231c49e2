"""Where the ledger's key lies: in a setting, or in a file that is made on first use; never in the store.

Whoever makes the file writes it under another name and links it: of several processes that come at once one makes
it and the others read it, and nobody ever reads half of it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from redrive.errors import ConfigurationError
from redrive.ledger import LedgerKey

if TYPE_CHECKING:
    from pathlib import Path

SHORTEST = 32
"""Characters of a secret: `openssl rand -hex 32` makes 64."""

_REMEDY = "it should hold a secret of at least 32 characters, such as `openssl rand -hex 32` makes"


def key_of(text: str, place: str = "audit.key") -> LedgerKey:
    """The key of a secret that somebody has chosen."""
    return LedgerKey(_checked(text, place))


def key_in(path: Path) -> LedgerKey:
    """The key of that file, which is read at once."""
    return LedgerKey(_read(path))


def kept_key(path: Path) -> LedgerKey:
    """The key of that file, which is read, or made, when the key is needed first."""

    def read_or_make() -> bytes:
        if not path.exists():
            _make(path)
        return _read(path)

    return LedgerKey(read_or_make)


def _checked(text: str, place: str) -> bytes:
    secret = text.strip()
    if len(secret) < SHORTEST:
        raise ConfigurationError(f"the ledger's key in {place} is too short", remedy=_REMEDY)
    return secret.encode("utf-8", "surrogatepass")


def _read(path: Path) -> bytes:
    try:
        return _checked(path.read_text("utf-8"), str(path))
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the ledger's key in {path}: {error.strerror}",
            remedy="let this user read it; without it nothing can be changed",
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"the ledger's key in {path} is not text", remedy=_REMEDY) from None


def _make(path: Path) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
        part.unlink()
        _sync(path.parent)
    except OSError as error:
        raise ConfigurationError(
            f"cannot make the ledger's key in {path}: {error.strerror}",
            remedy="set audit.key, or name a place in audit.key_path that this user may write to",
        ) from None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
