"""What changing commands have in common: `--dry-run`, `--yes`, `--limit`, `--rate`, a question, a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from redrive.cli.escaping import escape
from redrive.cli.interrupting import interruptible
from redrive.errors import Refused

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done and change nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where nobody can be asked.")]
RateOption = Annotated[
    float | None, typer.Option("--rate", metavar="N", help="Send at most N per second.", show_default=False)
]
LimitOption = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Change at most this many.")]


def confirm(question: str, *, yes: bool) -> None:
    """Returns if the person agrees or said so before. Refused (exit 5) if they do not, or if this is no
    terminal where somebody could be asked.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            f"{question} Nobody can be asked here, so nothing was changed",
            remedy="add --yes to do it, or --dry-run to see what would be done",
        )
    with interruptible():
        agreed = typer.confirm(escape(question), err=True)
    if not agreed:
        raise Refused("nothing was changed")


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with the number of things done. A bar on a terminal (stderr), else nothing."""
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.progress import Progress  # noqa: PLC0415  only where a bar is shown

    from redrive.cli.output import console  # noqa: PLC0415  as above

    with Progress(console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(escape(label), total=total)
        yield lambda done: bar.advance(task, done)
