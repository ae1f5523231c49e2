"""Kafka's programs: `make kafka` fetches them once (kafka/pom.xml) and formats the empty disk that every broker of
the tests begins with.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from support.fetched_jars import SPARING, FetchedJars, class_path, run

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent / "kafka"
KAFKA = FetchedJars(
    "kafka", HERE / "pom.xml", r"kafka_[\d.]+", how="apt-get install default-jdk-headless maven, then make kafka"
)
_TO_FORMAT = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:2
log.dirs={data}
"""  # formatting asks for addresses and does not keep them


def copy_of_empty_disk(to: Path) -> None:
    shutil.copytree(KAFKA.folder / "formatted", to)


def java(log: Path, options: Sequence[str] = ()) -> list[str]:
    """How a program that uses Kafka's is called, but for its name."""
    return _java(KAFKA.folder / "jars", log, options)


def make() -> None:
    """Does nothing if it is there. Raises NotHere."""
    KAFKA.make(_format)


def _java(jars: Path, log: Path, options: Sequence[str]) -> list[str]:
    said = [f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}", f"-Dredrive.log={log}"]
    return ["java", *SPARING, *options, *said, *class_path(jars)]


def _format(half: Path) -> None:
    settings = half / "format.properties"
    settings.write_text(_TO_FORMAT.format(data=half / "formatted"))
    command = _java(half / "jars", half / "format.log", ())
    identity = run(*command, "kafka.tools.StorageTool", "random-uuid").strip()
    run(*command, "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(settings))
