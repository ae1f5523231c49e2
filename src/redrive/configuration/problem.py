"""What pydantic found, told with its place and the nearest thing that would have been right."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from redrive.configuration.layer import Problem
from redrive.configuration.tree import field_at, homes_of, keys_in, text_of
from redrive.setting_values import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import ValidationError

    from redrive.configuration.file import KeyPath
    from redrive.configuration.layer import Layer

_CLOSE = 0.65
"""From 0 to 1. A little stricter than usual: `rules` is not what `profiles` was meant to be."""


def explain(error: ValidationError, layers: Sequence[Layer]) -> list[Problem]:
    """One problem per thing that is wrong, and no value in any: it may be a secret."""
    problems = []
    for details in error.errors(include_url=False, include_input=False):
        # Numbers are items of a list, and "[key]" is about the name before it.
        key = tuple(part for part in details["loc"] if isinstance(part, str) and part != "[key]")
        layer = next((layer for layer in reversed(layers) if layer.holds(key)), None)
        if layer is None:
            continue  # a queue inherited it: it is told where it stands
        if details["type"] == "extra_forbidden":
            problems.append(_unknown(key, layer))
        else:
            problems.append(_wrong(key, layer, details["msg"]))
    return problems


def _unknown(key: KeyPath, layer: Layer) -> Problem:
    return Problem(layer.place(key), f"unknown setting '{'.'.join(key)}'", _nearest(key, layer), layer)


def _nearest(key: KeyPath, layer: Layer) -> str:
    *section, name = key
    known = keys_in(tuple(section))
    if close := get_close_matches(name, known, n=1, cutoff=_CLOSE):
        return f"did you mean {layer.spell((*section, close[0]))}?"
    if home := homes_of(name):
        return f"did you mean {layer.spell((*home[0], name))}?"
    return f"known here: {', '.join(known)}"


def _wrong(key: KeyPath, layer: Layer, message: str) -> Problem:
    said = message.removeprefix("Value error, ").removeprefix("Input ")
    if said.startswith("should be a valid dictionary"):
        said = "should be a table"
    name = ".".join(key)
    text = f"{name} {said}" if said.startswith("should") else f"{name}: {said}"
    return Problem(layer.place(key), text, _remedy(key), layer)


def _remedy(key: KeyPath) -> str:
    field = field_at(key)
    if field is None:
        return "correct it, or remove it to have the defaults"
    if REQUIRED in field.metadata:
        return "correct it"
    return f"correct it, or remove it: the default is {text_of(field, field.default)}"
