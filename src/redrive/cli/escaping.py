"""Text of unknown origin made harmless for a terminal and for a spreadsheet: the attacker is the message."""

from __future__ import annotations

# C0, DEL, C1, line and paragraph separators, the characters that turn the direction of writing, and halves of
# surrogate pairs. Each could move the cursor, forge a line, hide text, or fail to encode.
_CONTROL = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)
_NAMED = {0x09: r"\t", 0x0A: r"\n", 0x0D: r"\r"}
_LINE = {code: f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" for code in _CONTROL} | _NAMED  # noqa: PLR2004  two digits where they do
_BLOCK = {code: written for code, written in _LINE.items() if code != ord("\n")}
_JSON = {code: f"\\u{code:04x}" for code in _BLOCK}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def escape(text: str) -> str:
    r"""One line, every control character written out: `\n`, `\x1b`, `\u202e`."""
    return text.translate(_LINE)


def escape_block(text: str) -> str:
    """As `escape`, but lines stay lines and tabs become spaces: for payloads and stack traces."""
    return text.replace("\t", "    ").replace("\r\n", "\n").translate(_BLOCK)


def escape_json(text: str) -> str:
    r"""JSON text with the same characters as `\uXXXX`; it still means the same."""
    return text.translate(_JSON)


def defuse(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
