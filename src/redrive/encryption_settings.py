"""Settings of encryption at rest. See `redrive.settings`."""

from __future__ import annotations

from pathlib import Path

from redrive.section import Section
from redrive.setting_values import OptionalSecret, QueueNames


class EncryptionSettings(Section):
    """Of what Redrive writes to disks."""

    enabled: bool = False
    """Whether what is written from now on is sealed. What is sealed already is read in any case."""
    key: OptionalSecret = None
    """64 hexadecimal digits, or base64 of 32 bytes. None: that of `key_path`."""
    key_path: Path = Path(".redrive/encryption.key")
    """For its owner alone. It is never made unasked."""
    old_keys: QueueNames = ()
    """Paths of files with older keys: they open what they have sealed."""
