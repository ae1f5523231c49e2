"""One line per change, written in the change's own transaction (G8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive.dead_letter import Happening, Transition
from redrive.message import cut
from redrive.stores.schema import audit

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.dead_letter import Actor
    from redrive.stores.expressions import Values

RECORDED = "recorded"
TAKEN_OVER = "claim taken over"
IMPORTED = "imported"
ERASED = "erased"

HAPPENED: dict[Transition, str] = {
    Transition.CAME_BACK: "came back",
    Transition.CLAIM: "claimed",
    Transition.SENT: "sent",
    Transition.REFUSED: "refused",
    Transition.CONFIRM: "confirmed",
    Transition.RESOLVE: "resolved",
    Transition.DISCARD: "discarded",
    Transition.RESTORE: "restored",
    Transition.QUARANTINE: "quarantined",
    Transition.RELEASE: "released",
    Transition.UNCLAIM: "unclaimed",
    Transition.EDIT: "edited",
    Transition.PURGE: "purged",
    Transition.EXPIRE: "expired",
}
"""What `Happening.what` says about each transition."""

NAME_BUDGET = 256
REASON_BUDGET = 2048

_write = audit.insert()


def signed(by: Actor) -> Values:
    return {"by": cut(by.name, NAME_BUDGET), "reason": cut(by.reason, REASON_BUDGET)}


def line(what: str, letter_id: str, *, at: datetime, by: Actor, before: str = "", after: str = "") -> Values:
    return {
        "at": at,
        "what": what,
        "letter_id": letter_id,
        "before": before,
        "after": after,
        **signed(by),
    }


def of_group(group_id: str) -> str:
    """What stands for the letter in a line about a group. No letter's id looks like it."""
    return f"group:{group_id}"


def of_run(run_id: str) -> str:
    """The same for a run."""
    return f"run:{run_id}"


def write(connection: Connection, *lines: Values) -> None:
    if lines:
        connection.execute(_write, list(lines))


def happening(row: Row[Any]) -> Happening:
    return Happening(at=row.at, by=row.by, what=row.what, before=row.before, after=row.after, reason=row.reason)
