"""Kafka's programs in a folder of the user's cache, where they stay between the runs of the tests.

`make kafka` fetches them once, with Maven and from wherever this machine's Maven fetches (kafka/pom.xml), and
formats the empty disk that every broker of the tests begins with. Two may do so at once: the folder is given its
name when it is complete.
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

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent / "kafka"
HOW = "apt-get install default-jdk-headless maven, then make kafka"
_POM = HERE / "pom.xml"
_OLDEST_JAVA = 17
_TO_FORMAT = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:2
log.dirs={data}
"""  # formatting asks for addresses and does not keep them
_SPARING = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A broker of the tests lives for minutes: what it compiles thoroughly is never paid back."""


class NotHere(Exception):
    """Why it cannot be had."""


def folder() -> Path:
    """Where the programs are, or would be: another version is in another place."""
    cache = os.environ.get("XDG_CACHE_HOME")
    written = _POM.read_bytes()
    version = re.search(rb"kafka_[\d.]+</artifactId>\s*<version>([^<]+)<", written)
    assert version is not None, f"no version of Kafka in {_POM}"
    name = f"kafka-{version[1].decode()}-{hashlib.sha256(written).hexdigest()[:8]}"
    return (Path(cache) if cache else Path.home() / ".cache").resolve() / "redrive" / name


def require() -> None:
    """Raises NotHere where a broker cannot be started."""
    if shutil.which("java") is None or not folder().is_dir():
        raise NotHere(f"no Kafka here: {HOW}")


def archive() -> Path:
    """Where the classes of a broker are, or would be, as this Java keeps them in memory: with them a start is a
    third less work. Java goes without where the file is missing, or not its own.
    """
    java = Path(shutil.which("java") or "java").resolve()
    return folder() / f"broker-{int(java.stat().st_mtime)}.jsa"


def copy_of_empty_disk(to: Path) -> None:
    shutil.copytree(folder() / "formatted", to)


def java(log: Path, options: Sequence[str] = ()) -> list[str]:
    """How a program that uses Kafka's is called, but for its name."""
    return _java(folder() / "jars", log, options)


def make() -> None:
    """Does nothing if it is there. Raises NotHere."""
    made = folder()
    if made.is_dir():
        return
    _require_what_it_takes()
    made.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix="kafka-half-made-", dir=made.parent))
    try:
        half.chmod(0o755)
        _fetch(half / "jars")
        _format(half)
        _give_name(half, made)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _java(jars: Path, log: Path, options: Sequence[str]) -> list[str]:
    said = [f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}", f"-Dredrive.log={log}"]
    return ["java", *_SPARING, *options, *said, "-cp", ":".join(map(str, sorted(jars.glob("*.jar"))))]


def _require_what_it_takes() -> None:
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        raise NotHere(f"this machine lacks {' and '.join(missing)}: {HOW}")
    told = re.search(r'version "(\d+)', _run("java", "-version"))
    if told is None or int(told[1]) < _OLDEST_JAVA:
        raise NotHere(f"it needs Java {_OLDEST_JAVA} or newer, and `java` is not: {HOW}")


def _fetch(jars: Path) -> None:
    _run("mvn", "-B", "-q", "-f", str(_POM), "dependency:copy-dependencies", f"-DoutputDirectory={jars}")


def _format(half: Path) -> None:
    settings = half / "format.properties"
    settings.write_text(_TO_FORMAT.format(data=half / "formatted"))
    command = _java(half / "jars", half / "format.log", ())
    identity = _run(*command, "kafka.tools.StorageTool", "random-uuid").strip()
    _run(*command, "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(settings))


def _give_name(half: Path, made: Path) -> None:
    try:
        half.rename(made)
    except OSError:
        if not made.is_dir():  # else somebody else was quicker
            raise


def _run(*command: str) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line] or done.stdout.splitlines()
        raise NotHere(f"{command[0]} failed: {' '.join(errors[:1])}")
    return done.stdout
