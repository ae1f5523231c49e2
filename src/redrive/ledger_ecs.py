"""A row of the ledger with the field names of the Elastic Common Schema, for whoever collects logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redrive.ledger import LedgerEntry

VERSION = "8.17.0"


def ecs(entry: LedgerEntry) -> dict[str, Any]:
    """`event.hash` is the row's mac, `event.sequence` its number; what ECS has no name for is under `labels`, and
    the ids under `redrive.subject`.
    """
    subject = entry.subject
    labels = {
        "before": entry.before,
        "after": entry.after,
        "token": entry.token,
        "key_id": entry.key_id,
        "previous_hash": entry.previous,
    }
    told: dict[str, Any] = {
        "@timestamp": entry.at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "ecs": {"version": VERSION},
        "event": {
            "kind": "event",
            "category": ["configuration"],
            "type": ["change"] if entry.allowed else ["denied"],
            "module": "redrive",
            "dataset": "redrive.audit",
            "action": f"{subject.kind} {entry.what}",
            "outcome": "success" if entry.allowed else "failure",
            "reason": entry.reason,
            "sequence": entry.seq,
            "hash": entry.mac,
        },
        "user": {"name": entry.who},
        "related": {"user": [entry.who], "hash": [entry.mac, entry.previous]},
        "labels": {name: text for name, text in labels.items() if text},
        "redrive": {"subject": {"kind": subject.kind, "ids": list(subject.ids), "count": subject.count}},
    }
    if subject.digest:
        told["redrive"]["subject"]["digest"] = subject.digest
    if entry.request_id:
        told["http"] = {"request": {"id": entry.request_id}}
    return told
