"""Commands that are written down somewhere: read by the command line itself, which then does nothing."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from functools import cache
from typing import Any

from typer.main import get_command

from redrive.cli.main import app
from redrive.search import parse


def parsed(arguments: list[str], *, in_text: bool = False) -> None:
    """Raises what the command line would say against it. A filter has to be one too. In a text, a command that is
    only named need not be given what it asks for.
    """
    context: Any = _redrive().make_context("redrive", list(arguments))
    while hasattr(context.command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        if not rest and context.command.invoke_without_command:
            return
        name, below, rest = context.command.resolve_command(context, rest)
        if not rest and in_text:
            return
        context = below.make_context(name, rest, parent=context)
    if context.params.get("where") is not None:
        parse(context.params["where"], now=datetime.now(UTC))


@cache
def _redrive() -> Any:
    return get_command(app)


def commands_in(page: str) -> list[list[str]]:
    """The arguments of each `redrive ...` in its text, and of each line of its examples that is one."""
    spans = [span.replace("\n", " ") for span in re.findall(r"`(redrive [^`]+)`", page)]
    examples = "\n".join(re.findall(r"```.*?```", page, re.DOTALL))
    lines = re.findall(r"^(?:\$ )?(redrive .+)$", examples, re.MULTILINE)
    return [shlex.split(each, comments=True)[1:] for each in (*spans, *lines)]
