"""An error as fields of a log line: what it is and where it came from, never what a payload made it say."""

from __future__ import annotations

import traceback

from redrive.errors import RedriveError
from redrive.failure import type_name

_PLACES = 5


def error_facts(error: BaseException) -> dict[str, str]:
    """`error` is the text of one of ours, and of any other its type alone: others may quote what they failed on,
    and a traceback with variables shows it. `remedy` is that of one of ours, if there is one. `at` names the
    innermost places, the last one first.
    """
    frames = traceback.extract_tb(error.__traceback__)[-_PLACES:]
    at = ", ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    name = type_name(type(error))
    if not isinstance(error, RedriveError):
        return {"error": name, "at": at}
    remedy = {"remedy": error.remedy} if error.remedy else {}
    return {"error": f"{name}: {error}", **remedy, "at": at}
