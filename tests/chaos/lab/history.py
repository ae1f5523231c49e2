"""What was promised and what was seen, one JSON line each, as the witnesses wrote it down.

A line is one write to a file opened for appending, so lines of several processes never mix, and a process that is
killed afterwards has said what it has said. Nothing here knows the product.

| op | who | means |
|---|---|---|
| send | producer | about to send: `id`, `body` (SHA-256), and what is to become of it (`expect`) |
| sent | producer | `send` returned: acknowledged, from now on it must not be lost |
| again | producer | nobody said whether the last `send` arrived, so the same message is sent once more |
| ok | handler | handled with success; `redrive` is the redrive id it carried, if any |
| failed | handler | about to raise |
| struck | failpoint | it raises or stands still now; `id` is its name |
| listens | worker | from now on SIGTERM asks it to stop, and does not kill it |
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SEND, SENT, AGAIN, OK, FAILED, STRUCK = "send", "sent", "again", "ok", "failed", "struck"
LISTENS = "listens"


class History:
    """For writing; open until the process ends."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, op: str, message_id: str, **facts: Any) -> None:
        line = json.dumps({"op": op, "id": message_id, "process": os.getpid(), **facts}) + "\n"
        os.write(self._descriptor, line.encode())

    def close(self) -> None:
        os.close(self._descriptor)


def read_history(path: Path) -> list[dict[str, Any]]:
    """Whole lines: of one that is being written only the beginning may be there yet."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
