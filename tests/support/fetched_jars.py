"""Programs of Java's in a folder of the user's cache, where they stay between the runs of the tests.

Maven fetches them once, from wherever this machine's Maven fetches, as a pom.xml says. Two may do so at once: the
folder is given its name when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

_OLDEST_JAVA = 17
SPARING = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A server of the tests lives for minutes: what it compiles thoroughly is never paid back."""


class NotHere(Exception):
    """Why it cannot be had."""


class FetchedJars(msgspec.Struct, frozen=True):
    name: str
    pom: Path
    artifact: str
    """A pattern for the one that has the version."""
    how: str
    """What a person does to have them."""

    @property
    def folder(self) -> Path:
        """Where they are, or would be: another version is in another place."""
        cache = os.environ.get("XDG_CACHE_HOME")
        written = self.pom.read_bytes()
        version = re.search(rf"{self.artifact}</artifactId>\s*<version>([^<]+)<".encode(), written)
        assert version is not None, f"no version of {self.name} in {self.pom}"
        name = f"{self.name}-{version[1].decode()}-{hashlib.sha256(written).hexdigest()[:8]}"
        return (Path(cache) if cache else Path.home() / ".cache").resolve() / "redrive" / name

    def require(self) -> None:
        """Raises NotHere where they cannot be used."""
        if shutil.which("java") is None or not self.folder.is_dir():
            raise NotHere(f"{self.name} is not here: {self.how}")

    def archive(self) -> Path:
        """Where the classes of a server that ran are, or would be, as this Java keeps them in memory: with them a
        start is a third less work. Java goes without where the file is missing, or not its own.
        """
        java = Path(shutil.which("java") or "java").resolve()
        return self.folder / f"broker-{int(java.stat().st_mtime)}.jsa"

    def make(self, finish: Callable[[Path], None] = lambda _: None) -> None:
        """Does nothing if they are there. `finish` does what is left to do in the folder, whose `jars` are there.
        Raises NotHere.
        """
        made = self.folder
        if made.is_dir():
            return
        self._require_what_it_takes()
        made.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=f"{self.name}-half-made-", dir=made.parent))
        try:
            half.chmod(0o755)
            copying = ("dependency:copy-dependencies", f"-DoutputDirectory={half / 'jars'}")
            run("mvn", "-B", "-q", "-f", str(self.pom), *copying)
            finish(half)
            _give_name(half, made)
        finally:
            shutil.rmtree(half, ignore_errors=True)

    def _require_what_it_takes(self) -> None:
        missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
        if missing:
            raise NotHere(f"this machine lacks {' and '.join(missing)}: {self.how}")
        told = re.search(r'version "(\d+)', run("java", "-version"))
        if told is None or int(told[1]) < _OLDEST_JAVA:
            raise NotHere(f"it needs Java {_OLDEST_JAVA} or newer, and `java` is not: {self.how}")


def class_path(jars: Path) -> tuple[str, str]:
    return "-cp", ":".join(map(str, sorted(jars.glob("*.jar"))))


def run(*command: str) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line] or done.stdout.splitlines()
        raise NotHere(f"{command[0]} failed: {' '.join(errors[:1])}")
    return done.stdout


def _give_name(half: Path, made: Path) -> None:
    try:
        half.rename(made)
    except OSError:
        if not made.is_dir():  # else somebody else was quicker
            raise
