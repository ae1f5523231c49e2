"""A filter with a caret under the character that is wrong."""

from __future__ import annotations

import shutil

from redrive.cli.escaping import escape

_CUT = "…"


def pointer(text: str, column: int) -> str:
    """Two lines that fit the terminal: the filter, or what stands around that column, and the caret."""
    from rich.cells import cell_len  # noqa: PLC0415  not needed until something is wrong

    width = shutil.get_terminal_size().columns - 1
    before, after = escape(text[: column - 1]), escape(text[column - 1 :])
    shown = before
    while cell_len(shown) > width // 2:
        before = before[1:]
        shown = _CUT + before
    caret = " " * cell_len(shown) + "^"
    line = shown + after
    while cell_len(line) > width:
        after = after[:-1]
        line = shown + after + _CUT
    return f"{line}\n{caret}\n"
