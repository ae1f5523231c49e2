"""Where key-encryption keys come from: a setting or a variable, or files that nobody else may read.

A key is 32 random bytes, written as 64 hexadecimal digits or as base64. None is ever made without being asked for:
a second key that nobody noticed would be a second key to lose.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING

from redrive.errors import ConfigurationError, Refused
from redrive.privacy.encryption.envelope import SECRET_BYTES
from redrive.privacy.encryption.local_keys import KeyEncryptionKey

if TYPE_CHECKING:
    from pathlib import Path

_FORM = "it should be 64 hexadecimal digits, or 32 bytes as base64; `redrive keys new` makes such a file"
_LARGEST_FILE = 4096


def key_of(text: str, place: str = "encryption.key") -> KeyEncryptionKey:
    """The key that somebody wrote there. The text is never quoted."""
    secret = _decoded(text.strip())
    if secret is None:
        raise ConfigurationError(f"the key in {place} is none", remedy=_FORM)
    if len(set(secret)) == 1:
        raise ConfigurationError(f"the key in {place} is one byte again and again", remedy="make a random one")
    return KeyEncryptionKey(secret)


def key_in(path: Path) -> KeyEncryptionKey:
    """The key of that file. ConfigurationError if others could read it too."""
    try:
        with path.open("rb") as file:
            _check_owner(path, os.fstat(file.fileno()))
            text = file.read(_LARGEST_FILE).decode("ascii")
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the encryption key in {path}: {error.strerror}",
            remedy="`redrive keys new` makes one, if there never was one; else bring back the one there was",
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"the key in {path} is none", remedy=_FORM) from None
    return key_of(text, str(path))


def make_key(path: Path) -> KeyEncryptionKey:
    """A new random key in a file for this user alone, durable when it returns. Refused if there is a file."""
    text = secrets.token_hex(SECRET_BYTES)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, text + "\n")
        _sync(path.parent)
    except OSError as error:
        raise ConfigurationError(
            f"cannot make the key {path}: {error.strerror}", remedy="name a place that this user may write to"
        ) from None
    return key_of(text, str(path))


def _decoded(text: str) -> bytes | None:
    if len(text) == 2 * SECRET_BYTES:
        with contextlib.suppress(ValueError):
            return bytes.fromhex(text)
        return None
    try:
        secret = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return secret if len(secret) == SECRET_BYTES else None


def _check_owner(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"the key {path} is not a file", remedy=_FORM)
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigurationError(f"others may read the key in {path}", remedy=f"chmod 600 {path}")
    if status.st_uid not in (os.geteuid(), 0):
        raise ConfigurationError(
            f"the key in {path} belongs to another user",
            remedy=f"make it this user's: chown {os.geteuid()} {path}",
        )


def _write(path: Path, text: str) -> None:
    """Under another name first: nobody ever reads half a key."""
    part = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(part, path)  # unlike a rename, it never takes the place of a key that is there
    except FileExistsError:
        raise Refused(
            f"there is a file {path} already", remedy="name another place: whoever overwrites a key loses its data"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
