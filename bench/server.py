"""A PostgreSQL of the benchmark's own, the same one for everybody who is measured.

As it comes, with `fsync` and `synchronous_commit` on, except for the memory and the log that a server of this size
would be given.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.postgres_server import PrivatePostgres  # found on the path above

SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "max_connections": "50"}

_PORTION = 2**24


class Broker(Protocol):
    def clean_up(self) -> None: ...


B = TypeVar("B", bound=Broker)


class BenchServer(PrivatePostgres):
    """In a folder of its own on a disk, where it may be kept and started again."""

    def __init__(self, folder: Path) -> None:
        self._kept = folder
        super().__init__(SETTINGS)

    def _make(self) -> None:
        self._folder.rmdir()  # the temporary one
        self._folder = self._kept
        if not (self._folder / "data").exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            super()._make()

    def facts(self) -> dict[str, str]:
        """What the numbers depend on."""
        asked = ["stat", "--file-system", "--format=%T", str(self._folder)]
        held = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
        version = str(self.fetch("SHOW server_version")[0][0])
        given = ", ".join(f"{name} {value}" for name, value in SETTINGS.items())
        return {"PostgreSQL": f"{version}, {given}, the rest as it comes; its files on {held}"}

    def count(self, table: str, *, url: str) -> int:
        """The rows of a table of ours."""
        found: int = self.fetch(f"SELECT count(*) FROM {table}", url=url)[0][0]  # noqa: S608  a name of our own
        return found

    def databases(self) -> set[str]:
        return {name for (name,) in self.fetch("SELECT datname FROM pg_database")}

    def warm(self) -> None:
        """Reads every file once, so that no question waits for the disk, whoever asks first."""
        for path in (self._folder / "data" / "base").glob("*/*"):
            with contextlib.suppress(FileNotFoundError), path.open("rb", buffering=0) as file:
                while file.read(_PORTION):
                    pass

    def clean_up(self) -> None:
        self.stop()


@contextlib.contextmanager
def running(keep: Path | None = None) -> Iterator[BenchServer]:
    """A server that stops afterwards; its folder goes too, unless it is one to `keep`."""
    folder = keep or Path(tempfile.mkdtemp(prefix="redrive-bench-"))
    try:
        server = BenchServer(folder)
    except pytest.skip.Exception as missing:
        sys.exit(str(missing))
    try:
        yield server
    finally:
        server.clean_up()
        if keep is None:
            shutil.rmtree(folder)


@contextlib.contextmanager
def running_beside(start: Callable[[], B]) -> Iterator[tuple[B, BenchServer]]:
    """A broker of our own, and a server; both stop afterwards."""
    try:
        broker = start()
    except pytest.skip.Exception as missing:
        sys.exit(str(missing))
    with contextlib.ExitStack() as ending:
        ending.callback(broker.clean_up)
        yield broker, ending.enter_context(running())
