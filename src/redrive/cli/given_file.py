"""A file that an option names; `-` is stdin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from redrive.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STDIN = "-"


def read(source: Path, *, at_most: int | None = None) -> bytes:
    """UsageError if it cannot be read, or is larger than `at_most` bytes."""
    most = -1 if at_most is None else at_most + 1
    try:
        if str(source) == STDIN:
            found = sys.stdin.buffer.read(most)
        else:
            with source.open("rb") as file:
                found = file.read(most)
    except OSError as error:
        raise UsageError(f"cannot read {source}: {error.strerror}", remedy="check the file's name") from None
    if at_most is not None and len(found) > at_most:
        raise UsageError(f"{source} has more than {at_most:,} bytes", remedy="give a smaller file")
    return found


def check_stdin_once(sources: Iterable[Path | str]) -> None:
    """Whoever reads it second would find nothing."""
    if sum(str(source) == STDIN for source in sources) > 1:
        raise UsageError("stdin (-) can be read once only", remedy="write the others to files, and name those")
