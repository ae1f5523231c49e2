"""Text of unknown origin made harmless for a terminal and for a spreadsheet: the attacker is the message."""

from __future__ import annotations

import re

# C0, DEL, C1, line and paragraph separators, the characters that turn the direction of writing, and halves of
# surrogate pairs. Each could move the cursor, forge a line, hide text, or fail to encode.
_CONTROL = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[{_CONTROL}]")
_UNSAFE_IN_BLOCK = re.compile(f"(?!\n)[{_CONTROL}]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def escape(text: str) -> str:
    r"""One line, every control character written out: `\n`, `\x1b`, `\u202e`."""
    return _UNSAFE.sub(_written_out, text)


def escape_block(text: str) -> str:
    """As `escape`, but lines stay lines and tabs become spaces: for payloads and stack traces."""
    return _UNSAFE_IN_BLOCK.sub(_written_out, text.replace("\t", "    ").replace("\r\n", "\n"))


def escape_json(text: str) -> str:
    r"""JSON text with the same characters as `\uXXXX`; it still means the same."""
    return _UNSAFE_IN_BLOCK.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def defuse(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _written_out(found: re.Match[str]) -> str:
    character = found[0]
    if character in _NAMED:
        return _NAMED[character]
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004  two digits where they do
