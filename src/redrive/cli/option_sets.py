"""Options that several commands have, or that are too many for one signature, as one dataclass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

Command = Callable[..., int]


def taking(kind: type[Any], parameter: str) -> Callable[[Command], Command]:
    """Gives a command the options of the dataclass `kind`, one for each field, in the place of `parameter`."""
    hints = get_type_hints(kind, include_extras=True)
    named = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(each.name, named, default=each.default, annotation=hints[each.name])
        for each in fields(kind)
    ]

    def given_options(command: Command) -> Command:
        @functools.wraps(command)
        def taken(*arguments: Any, **given: Any) -> int:
            chosen = {each.name: given.pop(each.name) for each in options}
            return command(*arguments, **{parameter: kind(**chosen)}, **given)

        # Typer reads a command's options from its signature.
        taken.__signature__ = _with_options(command, parameter, options)  # type: ignore[attr-defined]
        return taken

    return given_options


def _with_options(command: Command, parameter: str, options: list[inspect.Parameter]) -> inspect.Signature:
    own = inspect.signature(command, eval_str=True)
    others = [each for each in own.parameters.values() if each.name != parameter]
    places = [each for each in others if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    named = [each for each in others if each.kind is inspect.Parameter.KEYWORD_ONLY]
    return own.replace(parameters=[*places, *options, *named])
