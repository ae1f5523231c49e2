"""Why a person changes something: from `--reason`, or asked for on a terminal."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from redrive.cli.interrupting import interruptible
from redrive.errors import UsageError

ReasonOption = Annotated[
    str | None, typer.Option("--reason", "-r", help="Why: the letter's history keeps it.", show_default=False)
]


def given_reason(reason: str | None) -> str:
    """The reason, asked for if there is somebody to ask. UsageError if there is none."""
    if reason is None and sys.stdin.isatty() and sys.stderr.isatty():
        with interruptible():
            reason = str(typer.prompt("Why", err=True))
    if reason is None or not reason.strip():
        raise UsageError("a reason is needed", remedy="say why with --reason: the letter's history keeps it")
    return reason.strip()
