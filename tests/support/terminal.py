"""A command on a real (pseudo) terminal: what a person would see, and type."""

from __future__ import annotations

import os
import pty
import termios
from typing import TYPE_CHECKING, NamedTuple

from support.forked import REDRIVE, Forked

if TYPE_CHECKING:
    from pathlib import Path


class Seen(NamedTuple):
    code: int
    text: str


def on_terminal(folder: Path, *arguments: str, typed: str = "", columns: int = 80, **environment: str) -> Seen:
    """Runs `redrive ARGUMENTS` with the terminal as stdin, stdout and stderr."""
    return python_on_terminal(folder, REDRIVE, *arguments, typed=typed, columns=columns, **environment)


def python_on_terminal(
    folder: Path, program: str, *arguments: str, typed: str = "", columns: int = 80, **environment: str
) -> Seen:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    variables = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}
    variables |= {"TERM": "xterm-256color", **environment}
    process = Forked(program, *arguments, cwd=folder, env=variables, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, typed.encode())
    text = _read_all(ours)
    os.close(ours)
    return Seen(process.wait(), text.replace("\r\n", "\n"))


def _read_all(terminal: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux: the last one on the other side is gone
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()
