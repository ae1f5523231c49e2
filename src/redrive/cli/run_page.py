"""One run as a page for a person, runs as plain values, and what is told while one is carried out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from redrive.cli.ages import age
from redrive.cli.escaping import escape
from redrive.cli.letter_page import history_line, section
from redrive.cli.output import cell, console
from redrive.cli.run_edit import edit_facts, edit_record
from redrive.duration import short
from redrive.run_report import estimated_end, unsent
from redrive.search import unparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.dead_letter import Happening
    from redrive.letter_query import LetterQuery
    from redrive.run import Approval, LetterOutcome, Run, RunPlan
    from redrive.run_actions import EditedSample
    from redrive.run_report import RunReport

_LABEL_WIDTH = 14


def run_record(report: RunReport) -> dict[str, Any]:
    """Everything about the run, for JSON and CSV."""
    run = report.run
    plan = {"selection": selection_text(run.plan.selection), "edit": edit_record(run.plan)}
    keys = ("at_most", "target", "to_origin", "quarantined", "allow_sensitive", "schema", "rate", "reason", "rule")
    progress = {key: value for key, value in msgspec.structs.asdict(run.progress).items() if key != "taken"}
    return {
        **{key: getattr(run, key) for key in ("id", "status", "why", "requested_by")},
        **{key: getattr(run, key) for key in ("created_at", "changed_at", "ended_at", "total", "remaining")},
        **progress,
        "without_word": run.progress.without_word,
        "in_doubt": report.in_doubt,
        "summary": report.summary,
        "estimated_end": report.estimated_end,
        **plan,
        **{key: getattr(run.plan, key) for key in keys},
        "canary": {**msgspec.structs.asdict(run.plan.canary), "steps": list(run.plan.canary.steps)},
        "stage": run.stage,
        "brakes": msgspec.structs.asdict(run.plan.brakes),
        "approval": run.approval and msgspec.structs.asdict(run.approval),
    }


def print_samples(samples: Sequence[EditedSample]) -> None:
    """What an edit does to the first letters of a selection."""
    for sample in samples:
        refused = [f"does not fit: {sample.refused}"] if sample.refused else []
        misfits = [f"! does not fit the schema: {each}" for each in sample.misfits]
        lines = [*refused, *sample.differences] or ["unchanged"]
        lines += misfits
        typer.echo("\n".join((f"\nEdit of letter {sample.letter_id}", *(f"  {escape(line)}" for line in lines))))


def outcome_record(outcome: LetterOutcome) -> dict[str, Any]:
    return msgspec.structs.asdict(outcome)


def print_run(report: RunReport, history: Sequence[Happening], now: datetime) -> None:
    from rich.text import Text  # noqa: PLC0415  not needed for JSON

    out = console()
    for style, line in page(report, history, now):
        out.print(Text(line, style=style), soft_wrap=True)


def page(report: RunReport, history: Sequence[Happening], now: datetime) -> Iterator[tuple[str, str]]:
    """Style and text of each part of the page, from top to bottom."""
    run = report.run
    yield "bold", f"Run {run.id}  {run.status}{f': {escape(run.why)}' if run.why else ''}"
    yield "", f"  {report.summary}"
    if report.in_doubt:
        yield "bold", f"  {doubt_text(report)}"
    for label, value in _facts(report, now):
        yield "", f"  {label:<{_LABEL_WIDTH}}{cell(value)}"
    if history:
        yield from section("History", "\n".join(map(history_line, history)))


def doubt_text(report: RunReport) -> str:
    whose = "1 letter is" if report.in_doubt == 1 else f"{report.in_doubt} letters are"
    settle = f"redrive runs settle {report.run.id}"
    return f"{whose} in doubt: sent or not, nobody knows. `{settle} --send-again`, or `--sent` if you do"


def _facts(report: RunReport, now: datetime) -> Iterator[tuple[str, object]]:
    run = report.run
    yield "letters", f"{run.total}, {unsent(run)} to be sent"
    yield "selection", selection_text(run.plan.selection)
    yield from _plan_facts(run.plan, run.stage)
    yield "requested by", run.requested_by
    yield "made", f"{cell(run.created_at)} ({age(run.created_at, now)} ago)"
    if run.ended_at is not None:
        yield "ended", f"{cell(run.ended_at)} ({age(run.ended_at, now)} ago)"
    if report.estimated_end is not None:
        left = max((report.estimated_end - now).total_seconds(), 0)
        yield "estimated end", f"{cell(report.estimated_end)} (in {short(left)})"
    if run.approval is not None:
        yield "approval", _approval_text(run.approval)


def _plan_facts(plan: RunPlan, stage: int) -> Iterator[tuple[str, object]]:
    if plan.at_most is not None:
        yield "at most", plan.at_most
    if plan.target is not None or plan.to_origin:
        yield "sent to", plan.target or "the exchanges that their producers sent to"
    yield "rate", "as fast as it goes" if plan.rate is None else f"{plan.rate:g} per second"
    if plan.canary.steps:
        ramp = " -> ".join(map(str, plan.canary.steps))
        yield "canary", f"{ramp}, {stage} behind it; {plan.canary.at_most_back:.0%} may come back"
    yield from edit_facts(plan)
    if plan.reason:
        yield "reason", plan.reason
    if plan.rule:
        yield "rule", plan.rule


def _approval_text(approval: Approval) -> str:
    if approval.by is not None and approval.at is not None:
        return f"by {approval.by} at {cell(approval.at)} ({approval.why})"
    return f"needed until {cell(approval.expires_at)}: {approval.why}"


def selection_text(selection: LetterQuery) -> str:
    """As a filter, or as options of `list` where the language has no word for it."""
    parts = [
        f"{key}:{value}" for key in ("queue", "handler", "type", "group") if (value := getattr(selection, key))
    ]
    if selection.ids is not None:
        number = len(selection.ids)
        parts.append(f"{number} named letter{'' if number == 1 else 's'}")
    if selection.where.terms:
        parts.append(unparse(selection.where))
    return " ".join(parts)


@contextmanager
def run_progress(total: int) -> Iterator[Callable[[Run], None]]:
    """Gives a function to call with what the run is now. A bar on a terminal (stderr), else nothing."""
    if not sys.stderr.isatty():
        yield lambda _run: None
        return
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415  only where a bar is shown

    columns = (BarColumn(bar_width=20), TextColumn("{task.fields[told]}", markup=False))
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=total, told="0 sent")

        def show(run: Run) -> None:
            told = progress_line(run, datetime.now(run.created_at.tzinfo))
            bar.update(task, completed=total - unsent(run), told=told)

        yield show


def progress_line(run: Run, now: datetime) -> str:
    told = run.progress
    numbers = {"sent": told.sent, "confirmed": told.confirmed, "back": told.came_back, "refused": told.refused}
    parts = [f"{number} {what}" for what, number in numbers.items() if number or what in {"sent", "confirmed"}]
    parts.append(f"{unsent(run)} left")
    end = estimated_end(run, now)
    if end is not None:
        parts.append(f"{short(max(float(round((end - now).total_seconds())), 0.0))} to go")
    return ", ".join(parts)
