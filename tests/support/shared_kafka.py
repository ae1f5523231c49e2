"""One Kafka for all of pytest's processes in one run, started by the first that asks.

Whoever uses it holds a lock on one file, in which its address is. A process beside the tests keeps the broker and
waits for that lock alone: it gets it when the last one is gone, even if it was killed, and ends the broker.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support.in_memory import folder_in_memory
from support.kafka_server import KafkaServer, PrivateKafka

# Bytes of the file that are locked. These locks end with their process, and a forked child has none of them. They
# end as well when the process closes the file, however often it opened it: hence no `Path.read_text` here.
_USED, _STARTING = 1_000_000, 1_000_001
_LONGEST = 1_000


class SharedKafka(KafkaServer):
    """A broker that lives until all of its users are gone."""

    def __init__(self, address: str, handle: int) -> None:
        super().__init__(address)
        self._handle = handle

    def clean_up(self) -> None:
        super().clean_up()
        os.close(self._handle)


def of(run: str) -> SharedKafka:
    """The broker of the run that has this name."""
    path = Path(folder_in_memory() or tempfile.gettempdir()) / f"redrive-kafka-of-{run}"
    handle = _joined(path)
    fcntl.lockf(handle, fcntl.LOCK_EX, 1, _STARTING)
    try:
        address = _written(handle) or _started(path, handle)
    finally:
        fcntl.lockf(handle, fcntl.LOCK_UN, 1, _STARTING)
    return SharedKafka(address, handle)


def keep(path: Path) -> None:
    """What the keeper does: a broker for as long as somebody uses it."""
    handle = os.open(path, os.O_RDWR)
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(_remove, handle, path)
        server = PrivateKafka()
        at_the_end.callback(server.clean_up)
        os.pwrite(handle, server.address.encode(), 0)
        print("ready", flush=True)  # noqa: T201  for the one who started us
        fcntl.lockf(handle, fcntl.LOCK_EX, 1, _USED)


def _joined(path: Path) -> int:
    """The file, opened and marked as used: it is still the one of this name when the mark is on it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.lockf(handle, fcntl.LOCK_SH, 1, _USED)
        if _is_of(handle, path):
            return handle
        os.close(handle)


def _is_of(handle: int, path: Path) -> bool:
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _remove(handle: int, path: Path) -> None:
    if _is_of(handle, path):
        path.unlink()


def _written(handle: int) -> str:
    return os.pread(handle, _LONGEST, 0).decode()


def _started(path: Path, handle: int) -> str:
    keeper = subprocess.Popen(
        [sys.executable, "-m", "support.shared_kafka", str(path)],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C in the terminal is for pytest
    )
    with keeper:
        assert keeper.stdout is not None
        first = keeper.stdout.readline()
        assert first == "ready\n", f"Kafka does not start:\n{first}{keeper.stdout.read()}"
    return _written(handle)


if __name__ == "__main__" and os.fork() == 0:  # the keeper outlives whoever started it, and is no child of theirs
    keep(Path(sys.argv[1]))
