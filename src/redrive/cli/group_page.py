"""One group as a page for a person, and groups as plain values. Every text is escaped: it comes from strangers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.cli.ages import age
from redrive.cli.escaping import escape, escape_block
from redrive.cli.letter_page import history_line, section
from redrive.cli.letter_record import error_line
from redrive.cli.output import cell, console
from redrive.cli.sparkline import sparkline

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter, FailureGroup

_LABEL_WIDTH = 14


def group_record(group: FailureGroup) -> dict[str, Any]:
    """Everything about the group, for JSON and CSV."""
    history = [msgspec.structs.asdict(line) for line in group.history]
    plain = {"trend": list(group.trend), "merged": list(group.merged), "history": history}
    return {**msgspec.structs.asdict(group), **plain}


def print_group(group: FailureGroup, example: DeadLetter | None, now: datetime) -> None:
    from rich.text import Text  # noqa: PLC0415  not needed for JSON

    out = console()
    for style, line in page(group, example, now):
        out.print(Text(line, style=style), soft_wrap=True)


def page(group: FailureGroup, example: DeadLetter | None, now: datetime) -> Iterator[tuple[str, str]]:
    """Style and text of each part of the page, from top to bottom."""
    yield "bold", f"Group {group.id}  {escape(group.title)}"
    for label, value in _facts(group, example, now):
        yield "", f"  {label:<{_LABEL_WIDTH}}{cell(value)}"
    if group.note:
        yield from section("Note", escape_block(group.note))
    if any(group.trend):
        yield from section("Per hour (UTC)", "\n".join(_hours(group, now)))
    if group.history:
        yield from section("History", "\n".join(map(history_line, group.history)))


def _facts(group: FailureGroup, example: DeadLetter | None, now: datetime) -> Iterator[tuple[str, object]]:
    yield "letters", f"{group.total}{_listed(group.by_status)}"
    yield "trend", f"{sparkline(group.trend)} (the last {len(group.trend)} hours)"
    yield "queue", group.queue
    yield "handler", group.handler
    yield "owner", group.owner or "nobody"
    yield "verdict", group.verdict or "none"
    if group.runbook:
        yield "runbook", group.runbook
    yield "first seen", _when(group.first_seen, now)
    yield "last seen", _when(group.last_seen, now)
    if group.redrives:
        yield "redrives", ", ".join(f"{number} {outcome}" for outcome, number in group.redrives.items())
    if example is not None:
        yield "example", f"{example.id}: {error_line(example)}"
    for merged in group.merged:
        yield "merged", merged


def _listed(by_status: Any) -> str:
    told = ", ".join(f"{number} {status}" for status, number in by_status.items())
    return f": {told}" if told else ""


def _when(moment: datetime, now: datetime) -> str:
    return f"{cell(moment)} ({age(moment, now)} ago)"


def _hours(group: FailureGroup, now: datetime) -> Iterator[str]:
    """Those with letters, the newest first."""
    current = now.replace(minute=0, second=0, microsecond=0)
    for ago, number in enumerate(reversed(group.trend)):
        if number:
            yield f"{current - timedelta(hours=ago):%Y-%m-%d %H:00}  {number}"
