"""The edit of a run as whoever approves it sees it: every operation, in its order, and what it is held to.

Values of sensitive headers are hidden: they let somebody in.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.editing import SetHeader, SetPayload
from redrive.header_class import HIDDEN, HeaderClass, header_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.editing import Operation
    from redrive.run import RunPlan


def edit_record(plan: RunPlan) -> list[dict[str, Any]]:
    """As a patch document holds it."""
    return [_record(operation) for operation in plan.edit]


def edit_facts(plan: RunPlan) -> Iterator[tuple[str, object]]:
    """Labels and values for a page."""
    for operation in plan.edit:
        yield "edit", _short(operation)
    if plan.allow_sensitive:
        yield "sensitive", "headers that let somebody in may be changed"
    if plan.schema:
        told = _told(plan.schema.encode())
        yield "schema", f"{told}; what does not fit it is passed over (`--output json` shows it)"
    if plan.quarantined:
        yield "quarantined", "letters are taken out of quarantine"


def edit_summary(plan: RunPlan) -> str:
    """For a question: nothing, or what is done to the messages in a few words, behind a comma."""
    parts = (
        (bool(plan.edit), ", edited"),
        (plan.allow_sensitive, ", also in sensitive headers"),
        (bool(plan.schema), ", those that fit the schema"),
    )
    return "".join(text for holds, text in parts if holds)


def _record(operation: Operation) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(operation))
    if isinstance(operation, SetHeader) and header_class(operation.name) is HeaderClass.SENSITIVE:
        record["value"] = HIDDEN
    return record


def _short(operation: Operation) -> dict[str, Any]:
    if isinstance(operation, SetPayload):
        return {"op": "set-payload", "payload": _told(operation.payload)}
    return _record(operation)


def _told(content: bytes) -> str:
    """Which bytes these are, for whoever has them too."""
    return f"{len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}"
