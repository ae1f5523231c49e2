"""Settings from variables: `REDRIVE_SECTION__KEY`, and `REDRIVE_SECTION__KEY_FILE` for secrets.

Names that people give are lower case there: `REDRIVE_QUEUES__ORDERS__CONCURRENCY` is about the queue `orders`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from redrive.configuration.layer import Layer, Problem
from redrive.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redrive.configuration.file import KeyPath

PREFIX = "REDRIVE_"
SECRETS: frozenset[KeyPath] = frozenset(
    {
        ("audit", "key"),
        ("encryption", "key"),
        ("masking", "search_key"),
        ("broker", "url"),
        ("broker", "servicebus", "connection_string"),
        ("broker", "rabbitmq", "management_url"),
        ("metrics", "token"),
        ("oidc", "client_secret"),
        ("retention", "copy_to"),
        ("store", "url"),
    }
)
NAMED_SECRETS: frozenset[KeyPath] = frozenset(
    {
        ("alerts", "channels", "*", "secret"),
        ("alerts", "channels", "*", "url"),
    }
)
"""Those of tables whose names people give; `*` stands for the name."""


def variable(key: KeyPath) -> str:
    section_alone = "__KEY" if len(key) == 1 else ""
    return PREFIX + "__".join(key).upper() + section_alone


def read_environment(environ: Mapping[str, str]) -> tuple[Layer, list[Problem]]:
    values: dict[str, Any] = {}
    origins: dict[KeyPath, str] = {}
    problems: list[Problem] = []
    for name in sorted(each for each in environ if each.startswith(PREFIX)):
        key = tuple(name[len(PREFIX) :].lower().split("__"))
        if len(key) == 1:
            problems += _check_single(name)
            continue
        secret = _named_by_file(key)
        origins[secret or key] = name
        if secret is None:
            _put(values, key, environ[name])
        elif variable(secret) in environ:
            problems.append(
                Problem(f"variable {name}", f"{variable(secret)} is set as well", "unset one of the two")
            )
        else:
            problems += _put_secret(values, secret, Path(environ[name]), name)
    return Layer(values, lambda key: f"variable {_origin(origins, key)}", variable), problems


def _origin(origins: Mapping[KeyPath, str], key: KeyPath) -> str:
    """The variable of that key, or the first one of that section."""
    return next((name for each, name in origins.items() if each[: len(key)] == key), variable(key))


def _check_single(name: str) -> list[Problem]:
    """REDRIVE_CONFIG and its like are no settings; REDRIVE_BROKER_URL was meant to be one."""
    given = name[len(PREFIX) :].lower()
    for section in Settings.model_fields:
        rest = given.removeprefix(section + "_")
        if rest != given:
            meant = variable((section, rest))
            return [Problem(f"variable {name}", "unknown setting", f"write two underscores: {meant}")]
    return []


def _named_by_file(key: KeyPath) -> KeyPath | None:
    secret = (*key[:-1], key[-1].removesuffix("_file"))
    return secret if secret != key and _is_secret(secret) else None


def _is_secret(key: KeyPath) -> bool:
    return key in SECRETS or (*key[:-2], "*", *key[-1:]) in NAMED_SECRETS


def _put(values: dict[str, Any], key: KeyPath, value: str) -> None:
    table = values
    for part in key[:-1]:
        below = table.get(part)
        table[part] = below = below if isinstance(below, dict) else {}
        table = below
    table[key[-1]] = value


def _put_secret(values: dict[str, Any], key: KeyPath, path: Path, name: str) -> list[Problem]:
    try:
        _put(values, key, path.read_text("utf-8").strip())
    except OSError as error:
        return [Problem(f"variable {name}", f"cannot read {path}: {error.strerror}", "name a readable file")]
    except UnicodeDecodeError:
        return [Problem(f"variable {name}", f"{path} is not text", "it should hold the URL alone, as UTF-8")]
    return []
