"""A text in the person's own editor ($VISUAL, else $EDITOR, else vi)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from redrive.cli.interrupting import left_to_the_editor
from redrive.errors import Refused, UsageError


class Draft:
    """A file in a folder of its own, both for their owner alone; gone when `close` is called."""

    def __init__(self, name: str, content: bytes) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="redrive-edit-")) / f"{name}.json"
        self.path.touch(mode=0o600)
        self.path.write_bytes(content)

    def edit(self) -> bytes:
        """What the person left in the file. Refused if the editor ended with an error."""
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _on_terminal("vi")
        try:
            with left_to_the_editor():
                ended = subprocess.run([*shlex.split(command), str(self.path)], check=False)  # noqa: S603  the person's own editor
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot start the editor {command!r}: {error}", remedy="set EDITOR") from None
        if ended.returncode:
            raise Refused(f"the editor ended with code {ended.returncode}: nothing was changed")
        return self.path.read_bytes()

    def close(self) -> None:
        shutil.rmtree(self.path.parent, ignore_errors=True)  # editors leave backups and swap files beside it


def _on_terminal(editor: str) -> str:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("nobody can edit here, so nothing was changed", remedy="give the new text with --from FILE")
    return editor
