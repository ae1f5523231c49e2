"""What the API tells, back as what the desk tells."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.api.letter_wire import LetterLine
from redrive.dead_letter import DeadLetter
from redrive.errors import RedriveError
from redrive.letter_json import letter_of
from redrive.message import Message
from redrive.preview import Preview
from redrive.run import Run, RunPlan
from redrive.run_report import RunReport

if TYPE_CHECKING:
    from redrive.api.run_wire import PreviewJson, RunJson

_OF_LINE = tuple(name for name in LetterLine.__struct_fields__ if name != "message_id")
_OF_RUN = tuple(name for name in Run.__struct_fields__ if name != "plan")
_OF_PLAN = tuple(name for name in RunPlan.__struct_fields__ if name not in {"selection", "edit"})
_OF_PREVIEW = ("count", "exact", "by_queue", "groups", "spread_over", "by_target", "oldest", "newest", "digest")


def letter_of_line(line: LetterLine) -> DeadLetter:
    """As in a list: without what its message holds."""
    message = Message(id=line.message_id, queue=line.queue, body=None, sent_at=line.created_at)
    return DeadLetter(**{name: getattr(line, name) for name in _OF_LINE}, message=message)


def whole_letter(values: dict[str, Any]) -> DeadLetter:
    try:
        return msgspec.structs.replace(letter_of(values), blocked_by=values.get("blocked_by"))
    except ValueError as error:
        raise RedriveError(
            f"a letter of the server's is not understood: {error}",
            remedy="is the server of another version than this command?",
        ) from None


def report_of(told: RunJson) -> RunReport:
    plan = RunPlan(
        selection=told.selection.query(datetime.now(UTC)),
        edit=tuple(told.edit),
        **{name: getattr(told, name) for name in _OF_PLAN},
    )
    run = Run(plan=plan, **{name: getattr(told, name) for name in _OF_RUN})
    return RunReport(run=run, estimated_end=told.estimated_end, in_doubt=told.in_doubt)


def preview_of(told: PreviewJson) -> Preview:
    return Preview(
        **{name: getattr(told, name) for name in _OF_PREVIEW},
        by_group=tuple(told.by_group),
        sample=tuple(map(letter_of_line, told.sample)),
        checks=tuple(told.checks),
    )
