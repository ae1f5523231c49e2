"""One TOML file of settings: where it is looked for, what it says, and on which line it says it."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redrive.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME = "redrive.toml"
_SYSTEM_FOLDER = Path("/etc/redrive")

KeyPath = tuple[str, ...]


@dataclass(frozen=True)
class SettingsFile:
    path: Path
    text: str = field(repr=False)  # either may hold a secret
    values: dict[str, Any] = field(repr=False)

    def line(self, key: KeyPath) -> int | None:
        """The line where the key, or the table of that name, is first written; None if it cannot be told.

        The TOML parser gives no positions. So the file is read up to each line that could be the one: the key
        is there from its own line on, and not before.
        """
        lines = self.text.splitlines(keepends=True)
        for number, line in enumerate(lines, start=1):
            if key[-1] in line and _holds(_first_statement(lines, number), key):
                return number
        return None


def find(config: Path | None, environ: Mapping[str, str]) -> SettingsFile | None:
    """The first of: `--config`, $REDRIVE_CONFIG, ./redrive.toml, the user's, the system's. None without any.

    A file that was named must be there; one that is found must be readable.
    """
    named = config or (Path(environ["REDRIVE_CONFIG"]) if environ.get("REDRIVE_CONFIG") else None)
    if named is not None:
        return read(named)
    found = next((path for path in _places(environ) if os.path.lexists(path)), None)
    return None if found is None else read(found)


def read(path: Path) -> SettingsFile:
    try:
        text = path.read_text("utf-8")
        return SettingsFile(path, text, tomllib.loads(text))
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no settings file {path}",
            remedy="correct --config or $REDRIVE_CONFIG, or run `redrive init`",
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror}", remedy="it should be a file that this user may read"
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not text", remedy="save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}", remedy="correct that line") from None


def _places(environ: Mapping[str, str]) -> Iterator[Path]:
    yield Path(NAME)
    if environ.get("XDG_CONFIG_HOME"):
        yield Path(environ["XDG_CONFIG_HOME"]) / "redrive" / NAME
    elif environ.get("HOME"):
        yield Path(environ["HOME"]) / ".config" / "redrive" / NAME
    yield _SYSTEM_FOLDER / NAME


def _first_statement(lines: list[str], number: int) -> dict[str, Any]:
    """What the file says up to the end of the statement that begins on that line: a list may take several."""
    for end in range(number, len(lines) + 1):
        try:
            return tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
    return {}


def _holds(values: Any, key: KeyPath) -> bool:
    for part in key:
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True
