"""Settings of the audit trail: see `redrive.settings`."""

from __future__ import annotations

from pathlib import Path

from redrive.section import Section
from redrive.setting_values import OptionalPath, OptionalSecret


class AuditSettings(Section):
    """Of the ledger: what people and rules did, in a chain of rows."""

    key: OptionalSecret = None
    """At least 32 characters; the same for all who use one store. None: that of `key_path`."""
    key_path: Path = Path(".redrive/ledger.key")
    """Made when it is needed first, if there is none."""
    checkpoints: OptionalPath = Path(".redrive/ledger-checkpoints.jsonl")
    """None: none are signed."""
