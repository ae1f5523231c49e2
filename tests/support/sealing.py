"""Keys for tests: one in use, an older one, and one that nobody here has."""

from __future__ import annotations

from redrive.privacy.encryption.file_keys import NO_KEYS, FileKeys
from redrive.privacy.encryption.local_keys import KeyEncryptionKey, LocalKeys

SECRET, OLD_SECRET, OTHER_SECRET = bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96))
KEY, OLD_KEY, OTHER_KEY = map(KeyEncryptionKey, (SECRET, OLD_SECRET, OTHER_SECRET))

SEALING = FileKeys(LocalKeys([KEY]), seals=True)
OF_OTHERS = FileKeys(LocalKeys([OTHER_KEY]), seals=True)
KINDS = {"plain": NO_KEYS, "sealed": SEALING}
