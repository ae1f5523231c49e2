"""One run of one peer, whatever the broker: a process, its reports, and a look at what is left behind."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from bench.peers.run import Task

_PATIENCE = 120.0
_LOOK_EVERY = 0.005


@dataclass(frozen=True)
class Program:
    """How the process of a peer is started."""

    module: str
    function: str = "consume"
    variant: str = ""
    """Which of its own ways."""
    stored: bool = False
    """Whether its dead letters go to PostgreSQL."""


@dataclass(frozen=True)
class Measured:
    """Of one run: what a message took, and the most memory the process ever had."""

    per_second: float
    cpu_microseconds: float
    megabytes: float


class Job(Protocol):
    """What is looked for while and after the process of the peer works."""

    @property
    def program(self) -> Program: ...

    @property
    def task(self) -> Task: ...

    def is_done(self) -> bool:
        """Whether everything has arrived where it should."""

    def is_settled(self) -> bool:
        """Whether the process may be ended. Nobody's clock runs."""

    def check(self) -> None: ...


def measure(job: Job) -> Measured:
    with Child(job.program, job.task) as child:
        told = child.next_report()
        if not job.is_done():
            until(job.is_done, "the dead letters did not arrive")
            told["finished"] = time.monotonic()
        until(job.is_settled, "some messages were not acknowledged")
        told |= child.end()
    job.check()
    return Measured(
        per_second=job.task.messages / (told["finished"] - told["started"]),
        cpu_microseconds=told["cpu_seconds"] * 1e6 / (job.task.messages + job.task.prefetch),
        megabytes=told["rss"] / 2**20,
    )


class Child:
    """The process of a peer. What it logs goes to a file, as that of a service does."""

    def __init__(self, program: Program, task: Task) -> None:
        self._log = Path(task.folder) / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.peers", program.module, program.function, task.written()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=Path(__file__).parent.parent,
                env=os.environ | {"PYTHONWARNINGS": "ignore"},
            )

    def next_report(self) -> dict[str, float]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        assert line, f"no report within {_PATIENCE:g} s:\n{self._log.read_text(errors='replace')[-4000:]}"
        report: dict[str, float] = json.loads(line)
        return report

    def end(self) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write("enough\n")
        self._process.stdin.flush()
        return self.next_report()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(_LOOK_EVERY)
