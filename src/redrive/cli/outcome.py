"""How a command ends: the exit codes, and the one line (two with its remedy) that an error becomes."""

from __future__ import annotations

import os
import sys
import traceback
from enum import IntEnum

import typer

from redrive.cli.escaping import escape
from redrive.errors import RedriveError


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    """Wrong arguments or settings."""
    NOTHING = 3
    """Nothing matched."""
    PARTLY = 4
    """Some were done, some were not."""
    REFUSED = 5
    UNREACHABLE = 6
    """The store or the broker cannot be reached."""
    INTERRUPTED = 130


def report(error: Exception) -> int:
    """Tells stderr what went wrong and gives the exit code. A stack trace only if REDRIVE_TRACEBACK is set."""
    if os.environ.get("REDRIVE_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(error, RedriveError):
        complain(str(error), error.remedy)
        return error.exit_code
    if isinstance(error, typer.TyperException):
        return _report_usage(error)
    complain(
        f"unexpected {type(error).__name__}: {_first_line(error)}",
        "set REDRIVE_TRACEBACK=1 to see where it comes from",
    )
    return ExitCode.FAILED


def complain(text: str, remedy: str = "") -> None:
    sys.stderr.write(f"error: {escape(text)}\n")
    if remedy:
        sys.stderr.write(f"  hint: {escape(remedy)}\n")


def _report_usage(error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "redrive")
    complain(" ".join(error.format_message().split()), f"{command} --help")
    return error.exit_code


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "no further text")
