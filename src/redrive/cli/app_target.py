"""`MODULE:APP` on the command line: the module is imported from the working folder, the App found in it."""

from __future__ import annotations

import os
import sys
import traceback
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from redrive.app import App
from redrive.errors import ConfigurationError, RedriveError, UsageError

if TYPE_CHECKING:
    from types import ModuleType


def load_app(target: str) -> App:
    """The App. UsageError or ConfigurationError says what is missing and where it was looked for."""
    module_name, colon, attribute = target.partition(":")
    if not (colon and module_name and attribute) or "/" in target:
        raise UsageError(
            f"{target!r} does not name an App",
            remedy="write MODULE:APP, such as app:app for `app = App(...)` in app.py",
        )
    return _find(_import(module_name), attribute)


def _import(name: str) -> ModuleType:
    folder = os.getcwd()  # noqa: PTH109  sys.path takes text
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return import_module(name)
    except RedriveError:
        raise
    except ModuleNotFoundError as error:
        raise _missing(name, error) from error
    except Exception as error:  # whatever the module does when it is imported
        place = _place(error)
        raise ConfigurationError(
            f"cannot import {name}: {type(error).__name__}: {error}{place}",
            remedy="correct it; REDRIVE_TRACEBACK=1 shows the whole way there",
        ) from error


def _missing(name: str, error: ModuleNotFoundError) -> RedriveError:
    if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
        return UsageError(
            f"there is no module {error.name!r} in {os.getcwd()} or among the installed packages",  # noqa: PTH109  text
            remedy="go to the folder that holds it, or run `redrive init` to begin with an example",
        )
    return ConfigurationError(
        f"{name} needs {error.name!r}, which is not installed{_place(error)}",
        remedy="install it into the environment that redrive runs in",
    )


def _place(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return ""  # its text says the place
    folder = os.getcwd()  # noqa: PTH109  text to compare with
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(folder)]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def _find(module: ModuleType, attribute: str) -> App:
    apps = [name for name, value in vars(module).items() if isinstance(value, App)]
    found = getattr(module, attribute, None)
    if isinstance(found, App):
        return found
    close = get_close_matches(attribute, apps, n=1) or apps
    remedy = f"did you mean {module.__name__}:{close[0]}?" if close else "make one: app = App('name')"
    if hasattr(module, attribute):
        kind = type(found).__name__
        raise UsageError(f"{attribute!r} of {module.__name__} is no App but a {kind}", remedy=remedy)
    raise UsageError(f"{module.__name__} has no {attribute!r}", remedy=remedy)
