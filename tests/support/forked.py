"""Python processes that start in milliseconds: one has imported what the product needs and forks the others.

Each is a process of its own, with its own environment, folder, files and signals, and dies of a `kill -9` like any
other. Only the imports are behind it when it begins: whoever tests those starts `sys.executable`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REDRIVE = "from redrive.cli.main import main; main()"
"""The program that is the command `redrive`."""
_starting = threading.Lock()
_started: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []


class Forked:
    """`python -c PROGRAM ARGUMENTS`, with the methods of a `subprocess.Popen` that the tests use."""

    def __init__(
        self,
        program: str,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int = -1,
        stdout: int = -1,
        stderr: int = -1,
    ) -> None:
        """What is no open file is /dev/null."""
        self._told, theirs = socket.socketpair()
        order = {"program": program, "arguments": arguments, "folder": str(cwd), "environment": dict(env)}
        nothing = os.open(os.devnull, os.O_RDWR)
        files = [nothing if file < 0 else file for file in (stdin, stdout, stderr)]
        with theirs:
            socket.send_fds(_forking(), [json.dumps(order).encode()], [*files, theirs.fileno()])
        os.close(nothing)
        self.returncode: int | None = None
        self.pid = self._heard()

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            self.returncode = self._heard()
            self._told.close()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def would_die_of(self, number: signal.Signals) -> bool:
        """Whether it has no handler for that signal, or none yet. Only Linux tells; elsewhere nobody would."""
        status = Path(f"/proc/{self.pid}/status")
        if self.poll() is not None or not status.exists():
            return False
        [caught] = [line for line in status.read_text().splitlines() if line.startswith("SigCgt:")]
        return not int(caught.split()[1], 16) >> (number - 1) & 1

    def _heard(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            part = self._told.recv(1)
            assert part, "the process that forks the others is gone"
            line += part
        return int(line)


class Recorded(Forked):
    """A process of which everything it writes can be read in the end."""

    def __init__(self, program: str, *arguments: str, cwd: Path, env: Mapping[str, str]) -> None:
        self._files = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]  # noqa: SIM115  closed when it has ended
        self._written: list[str] = []
        out, err = (file.fileno() for file in self._files)
        super().__init__(program, *arguments, cwd=cwd, env=env, stdout=out, stderr=err)

    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        while self._files:
            with self._files.pop(0) as file:
                file.seek(0)
                self._written.append(file.read().decode())
        return code

    def ended(self) -> subprocess.CompletedProcess[str]:
        """Waits for it."""
        code = self.wait()
        return subprocess.CompletedProcess((), code, *self._written)


def _forking() -> socket.socket:
    """Where to send orders. It ends when our end of this is closed, which the end of our process does."""
    with _starting:
        if not _started:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-c", "from support.forking import main; main()", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "REDRIVE_FAULTS": ""},
                    start_new_session=True,  # Ctrl-C in the terminal is for pytest
                )
            _started.append((ours, process))
    return _started[0][0]
