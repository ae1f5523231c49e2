"""A text in the person's own editor ($VISUAL, else $EDITOR, else vi)."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from redrive.errors import Refused, UsageError


class Draft:
    """A file in a folder of its own, both for their owner alone; gone when `close` is called."""

    def __init__(self, name: str, content: bytes) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="redrive-edit-")) / f"{name}.json"
        self.path.touch(mode=0o600)
        self.path.write_bytes(content)

    def edit(self) -> bytes:
        """What the person left in the file. Refused if the editor ended with an error."""
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        try:
            ended = subprocess.run([*shlex.split(command), str(self.path)], check=False)  # noqa: S603  the person's own editor
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot start the editor {command!r}: {error}", remedy="set EDITOR") from None
        if ended.returncode:
            raise Refused(f"the editor ended with code {ended.returncode}: nothing was changed")
        return self.path.read_bytes()

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        self.path.parent.rmdir()
