"""What run of which letters: as the API is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.api.run_wire import RunRequest
from redrive.api.selection import LetterSelection

if TYPE_CHECKING:
    from redrive.run import RunPlan

_OF_PLAN = (
    *("at_most", "target", "to_origin", "quarantined", "allow_sensitive", "schema", "rate"),
    *("canary", "brakes", "reason"),
)


def request_of(plan: RunPlan) -> RunRequest:
    same = {name: getattr(plan, name) for name in _OF_PLAN}
    return RunRequest(selection=LetterSelection.of(plan.selection), edit=list(plan.edit), **same)
