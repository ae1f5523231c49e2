"""Who seals with which key, from the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from redrive.privacy.encryption.file_keys import FileKeys

if TYPE_CHECKING:
    from redrive.privacy.encryption.local_keys import KeyEncryptionKey, LocalKeys
    from redrive.settings import Settings
    from redrive.stores.sealing import Encryption


def file_keys(settings: Settings) -> FileKeys:
    """For spool and archives. ConfigurationError if encryption is on and there is no key. While it is off, keys
    that are there still open what they have sealed.
    """
    return FileKeys(key_source(settings), seals=settings.encryption.enabled)


def encryption_of(settings: Settings) -> Encryption | None:
    """For the store. None: nothing is sealed, and nothing sealed can be read."""
    source = key_source(settings)
    if source is None:
        return None
    from redrive.stores.sealing import Encryption  # noqa: PLC0415  SQLAlchemy is slow to import

    return Encryption(source, seals=settings.encryption.enabled)


def key_source(settings: Settings) -> LocalKeys | None:
    """All keys that the settings name, the current one first; None if encryption is off and there are none."""
    found = keys_by_place(settings)
    if not found:
        return None
    from redrive.privacy.encryption.local_keys import LocalKeys  # noqa: PLC0415  only those who have keys load it

    return LocalKeys([key for _, key in found])


def keys_by_place(settings: Settings) -> list[tuple[str, KeyEncryptionKey]]:
    """Each key and where it stands, the current one first."""
    encryption = settings.encryption
    paths = [Path(path) for path in encryption.old_keys]
    if encryption.key is None and (encryption.enabled or encryption.key_path.exists()):
        paths.insert(0, encryption.key_path)
    if encryption.key is None and not paths:
        return []
    from redrive.key_sources import key_in, key_of  # noqa: PLC0415  as above

    given = [] if encryption.key is None else [("encryption.key", key_of(encryption.key.reveal()))]
    return [*given, *((str(path), key_in(path)) for path in paths)]
