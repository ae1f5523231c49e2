"""Settings from their sources, in rising order: file, its profile, `REDRIVE_SECTION__KEY`, flags.

Each source is a layer of nested values that can say where a value stands. The layers are laid over each other,
the result is checked as a whole, and every problem is told with its place and the nearest thing that would
have been right. Nothing starts with a setting that nobody reads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from redrive.configuration.environment import read_environment
from redrive.configuration.file import find
from redrive.configuration.layer import Layer, Problem, merged
from redrive.configuration.problem import explain
from redrive.errors import ConfigurationError
from redrive.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from redrive.configuration.file import KeyPath, SettingsFile


@dataclass(frozen=True)
class Configuration:
    settings: Settings
    file: Path | None
    profile: str | None
    layers: tuple[Layer, ...]

    def origin(self, key: KeyPath) -> str:
        """Where the value of that key comes from."""
        for layer in reversed(self.layers):
            if layer.holds(key):
                return layer.place(key)
        return "default"

    def is_set(self, key: KeyPath) -> bool:
        """Whether any source says something about that key."""
        return any(layer.holds(key) for layer in self.layers)


class Flag(NamedTuple):
    """One setting said on the command line."""

    option: str
    key: tuple[str, str]
    value: Any


@dataclass(frozen=True)
class Inspection:
    """What was found out about a configuration; `configuration` is None if it cannot be used."""

    file: Path | None
    profile: str | None
    problems: tuple[Problem, ...]
    configuration: Configuration | None


def load(
    *,
    config: Path | None = None,
    profile: str | None = None,
    flags: Sequence[Flag] = (),
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """The settings to start with. ConfigurationError with the first problem, its place and its remedy."""
    inspection = inspect(config=config, profile=profile, flags=flags, environ=environ)
    if inspection.configuration is not None:
        return inspection.configuration
    first, *others = inspection.problems
    more = f" (and {len(others)} more: `redrive config check`)" if others else ""
    raise ConfigurationError(f"{first}{more}", remedy=first.remedy)


def inspect(
    *,
    config: Path | None = None,
    profile: str | None = None,
    flags: Sequence[Flag] = (),
    environ: Mapping[str, str] | None = None,
) -> Inspection:
    """Every problem at once. ConfigurationError only for a file that cannot be read."""
    surroundings = os.environ if environ is None else environ
    file = find(config, surroundings)
    chosen = profile or surroundings.get("REDRIVE_PROFILE") or None
    variables, problems = read_environment(surroundings)
    base, profiles, more = _file_layers(file, chosen)
    problems += more
    selected = [profiles[chosen]] if chosen in profiles else []
    layers = (*base, *selected, variables, *_flag_layer(flags))
    settings, found = _validate(layers)
    problems += found
    for name, layer in profiles.items():  # a profile that is not in use must be right all the same
        if name != chosen:
            problems += [each for each in _validate((*base, layer))[1] if each.layer is layer]
    path = None if file is None else file.path
    usable = None if problems or settings is None else Configuration(settings, path, chosen, layers)
    return Inspection(path, chosen, tuple(problems), usable)


def _file_layers(
    file: SettingsFile | None, chosen: str | None
) -> tuple[list[Layer], dict[str, Layer], list[Problem]]:
    """The file without its profiles, each profile, and what is wrong about the profiles."""
    if file is None:
        problem = Problem("", f"profile {chosen!r} needs a settings file", "run `redrive init`, or give --config")
        return [], {}, [problem] if chosen else []
    values = {key: value for key, value in file.values.items() if key != "profiles"}
    tables = file.values.get("profiles", {})
    base = Layer(values, lambda key: _place(file, key))
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        problem = Problem(
            _place(file, ("profiles",)), "profiles should be tables", "write [profiles.NAME.SECTION]"
        )
        return [base], {}, [problem]
    profiles = {name: _profile_layer(file, name, table) for name, table in tables.items()}
    if chosen is None or chosen in profiles:
        return [base], profiles, []
    known = ", ".join(profiles) or "none"
    return [base], profiles, [Problem(str(file.path), f"there is no profile {chosen!r}", f"it has: {known}")]


def _profile_layer(file: SettingsFile, name: str, values: dict[str, Any]) -> Layer:
    return Layer(
        values,
        lambda key: _place(file, ("profiles", name, *key)),
        lambda key: ".".join(("profiles", name, *key)),
    )


def _flag_layer(flags: Sequence[Flag]) -> list[Layer]:
    values: dict[str, Any] = {}
    for flag in flags:
        section, name = flag.key
        values.setdefault(section, {})[name] = flag.value
    options: dict[KeyPath, str] = {flag.key: flag.option for flag in flags}
    return [Layer(values, lambda key: f"option {options.get(key, key[-1])}", overrides_queues=True)]


def _place(file: SettingsFile, key: KeyPath) -> str:
    line = file.line(key)
    return str(file.path) if line is None else f"{file.path}, line {line}"


def _validate(layers: Sequence[Layer]) -> tuple[Settings | None, list[Problem]]:
    try:
        return Settings.model_validate(merged(layers)), []
    except ValidationError as error:
        return None, explain(error, layers)
