"""What is said of a message that is given to the broker's own dead letters: a reason and a description.

Both are texts with a limit, and nothing else can be put beside the message then. The description begins with the
error, for people, and ends with the story of all failures, for whoever collects it.
"""

from __future__ import annotations

import base64
import binascii

from redrive.errors import TrailTooLong
from redrive.message import printable

LONGEST_REASON = 1024
LONGEST_DESCRIPTION = 4000
_FOR_PEOPLE = 1000
_MARK = "\nx-redrive:"
_ROOM = (LONGEST_DESCRIPTION - _FOR_PEOPLE - len(_MARK)) // 4 * 3
_CUT = "...[cut]"


def reason(text: str) -> str:
    return _within(text, LONGEST_REASON)


def description(text: str, trail: bytes) -> str:
    """TrailTooLong if nothing were left for people."""
    if len(trail) > _ROOM:
        raise TrailTooLong(_ROOM)
    story = f"{_MARK}{base64.b64encode(trail).decode()}" if trail else ""
    return _within(text, LONGEST_DESCRIPTION - len(story)) + story


def for_people(described: str) -> str:
    return described if trail_in(described) is None else described.rpartition(_MARK)[0]


def trail_in(described: str) -> bytes | None:
    """Total: it came over the wire."""
    _, mark, story = described.rpartition(_MARK)
    try:
        return base64.b64decode(story, validate=True) if mark else None
    except (binascii.Error, ValueError):
        return None


def _within(text: str, most: int) -> str:
    """Counted as Azure's own clients do, by which a character may be two."""
    safe = printable(text)
    units = safe.encode("utf-16-le")
    if len(units) <= 2 * most:
        return safe
    return units[: 2 * (most - len(_CUT))].decode("utf-16-le", "ignore") + _CUT
