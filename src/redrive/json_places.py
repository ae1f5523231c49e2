"""Where the values of a JSON object stand in its text, so that one is exchanged and every other byte stays (G2).

Decoding and encoding again would rewrite what nobody touched: spacing, key order, `1.10`, escapes.
"""

from __future__ import annotations

import json

# Numbers are only stepped over: as text they have no limit of digits and lose nothing.
_stepping = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)
_SPACE = " \t\n\r"


def places(text: str) -> dict[str, tuple[int, int]]:
    """Begin and end of each value of the outermost object; of a name that comes twice, the last counts, as in the
    reader. ValueError or RecursionError: it cannot be told.
    """
    found: dict[str, tuple[int, int]] = {}
    at = _skip(text, _skip(text, 0) + 1)  # behind the opening brace
    while text[at : at + 1] == '"':
        name, at = _stepping.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)  # behind the colon
        _, end = _stepping.raw_decode(text, start)
        found[name] = start, end
        at = _skip(text, _skip(text, end) + 1)  # behind the comma
    return found


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in _SPACE and at < len(text):
        at += 1
    return at
