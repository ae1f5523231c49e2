"""The preview of a run, as a page for a person and as plain values. Every text is escaped: strangers wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.cli.ages import age
from redrive.cli.escaping import escape
from redrive.cli.letter_page import section
from redrive.cli.letter_record import error_line, summary
from redrive.cli.output import cell, console
from redrive.preview import WORST_FIRST, Level
from redrive.preview_checks import number

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.preview import Check, Preview

_QUEUES_SHOWN = 20
_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.STOP: "bold red"}


def preview_record(preview: Preview) -> dict[str, Any]:
    """Everything about it, for JSON."""
    return {
        **msgspec.structs.asdict(preview),
        "by_queue": dict(preview.by_queue),
        "by_target": dict(preview.by_target),
        "by_group": [msgspec.structs.asdict(each) for each in preview.by_group],
        "sample": [summary(letter) for letter in preview.sample],
        "checks": [msgspec.structs.asdict(check) for check in preview.checks],
        "worst": str(preview.worst),
    }


def print_preview(preview: Preview, now: datetime) -> None:
    from rich.text import Text  # noqa: PLC0415  not needed for JSON

    out = console()
    for style, line in page(preview, now):
        out.print(Text(line, style=style), soft_wrap=True)


def page(preview: Preview, now: datetime) -> Iterator[tuple[str, str]]:
    """Style and text of each part of the page, from top to bottom."""
    yield "bold", f"{number(preview.count, exact=preview.exact)}{_ages(preview, now)}"
    if preview.by_queue:
        yield from section(f"By queue{_of(preview)}", "\n".join(_queues(preview)))
    if preview.by_group:
        yield from section(f"By group{_of(preview)}", "\n".join(_groups(preview)))
    if preview.sample:
        yield from section("The first", "\n".join(_sample(preview, now)))
    yield "bold", "\nChecks"
    for check in sorted(preview.checks, key=lambda each: WORST_FIRST.index(each.level)):
        yield _STYLES[check.level], _check(check)


def _ages(preview: Preview, now: datetime) -> str:
    ends = (("oldest", preview.oldest), ("newest", preview.newest))
    return "".join(f", the {name} {age(at, now)} old" for name, at in ends if at is not None)


def _of(preview: Preview) -> str:
    return "" if preview.spread_over >= preview.count else f" (of the oldest {preview.spread_over:,})"


def _queues(preview: Preview) -> Iterator[str]:
    for queue, count in islice(preview.by_queue.items(), _QUEUES_SHOWN):
        yield f"{count:>9,}  {escape(queue)}{_going(preview, queue)}"
    if len(preview.by_queue) > _QUEUES_SHOWN:
        yield f"{'':>9}  and {len(preview.by_queue) - _QUEUES_SHOWN} more queues"


def _going(preview: Preview, queue: str) -> str:
    if queue in preview.by_target:
        return ""
    return "".join(f" -> {escape(target)}" for target in preview.by_target) or " -> its producer's exchange"


def _groups(preview: Preview) -> Iterator[str]:
    for group in preview.by_group:
        yield f"{group.count:>9,}  {group.id[:8]}  {escape(group.title)}"
    if preview.groups > len(preview.by_group):
        yield f"{'':>9}  and {preview.groups - len(preview.by_group):,} more groups"


def _sample(preview: Preview, now: datetime) -> Iterator[str]:
    for letter in preview.sample:
        old = f"{age(letter.created_at, now):>6}"
        yield f"{letter.id}  {old}  {escape(letter.queue)}  {escape(error_line(letter))}"


def _check(check: Check) -> str:
    return f"  {check.level:<4}  {check.name:<16}  {cell(check.text)}"
