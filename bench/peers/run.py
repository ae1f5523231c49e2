"""What every peer does the same: count its messages, fail some of them, tell when the first and the last came.

The clock runs from the first call of the handler behind the ones that warm it up to the last, so that nobody's
start counts, nor what goes on beside its first messages. Afterwards the process waits until it is told that
everything has arrived where it should, reports what it took, and ends.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO

QUEUE = "orders"
DEAD = "orders_dlq"


@dataclass(frozen=True)
class Task:
    """What one process is to do, given to it as JSON."""

    messages: int
    size: int
    prefetch: int = 0
    """As many messages more are in the queue, so that nobody is measured while it waits for another one."""
    warming: int = 0
    """So many come first, and do not count."""
    failing: int = 0
    """How many of a hundred."""
    url: str = ""
    variant: str = ""
    """Which of the peer's own ways."""
    store: str = ""
    folder: str = ""
    queue: str = QUEUE
    group: str = ""
    """The consumer group, where there are such."""
    settings: dict[str, int] = field(default_factory=dict)
    """What the peer is told beyond what it does by itself."""

    def written(self) -> str:
        return json.dumps(asdict(self))

    @property
    def all_messages(self) -> int:
        return self.warming + self.messages + self.prefetch

    @property
    def last(self) -> int:
        """The number of the last message that counts."""
        return self.warming + self.messages - 1

    @property
    def dead(self) -> str:
        """Where dead letters of the queue go."""
        return f"{self.queue}_dlq"

    def letters(self, messages: int) -> int:
        """How many of so many messages fail."""
        return messages * self.failing // 100

    def check_letters(self, found: int) -> None:
        """None is missing, and none is there twice."""
        wanted = self.letters(self.all_messages)
        assert found == wanted, f"{found} dead letters instead of {wanted}"


class OrderFailed(Exception):
    """What a failing handler raises."""


class Run:
    """In the process of a peer: its task, its count and its report."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._numbers = itertools.count()  # its next() is one step, whichever thread takes it
        self._first, self._last = task.warming, task.last
        self._some_fail = task.failing > 0
        self._started = 0.0
        self._processor = 0.0
        self._reports = _private_output()
        threading.Thread(target=self._wait_for_the_end, daemon=True).start()

    def take(self) -> None:
        """One call of the handler: counts it, and fails if it is one of those that do."""
        number = next(self._numbers)
        if number == self._first:
            self.start()
        if number == self._last:
            self.finish()
        if self._some_fail and self.task.letters(number) != self.task.letters(number + 1):
            raise OrderFailed(f"order {number} cannot be paid")

    def start(self) -> None:
        self._processor = time.process_time()
        self._started = time.monotonic()

    def finish(self) -> None:
        self._report({"started": self._started, "finished": time.monotonic()})

    def _wait_for_the_end(self) -> None:
        sys.stdin.readline()
        self._report({"cpu_seconds": time.process_time() - self._processor, "rss": _peak_memory()})
        os._exit(0)

    def _report(self, facts: dict[str, float]) -> None:
        print(json.dumps(facts), file=self._reports, flush=True)


def _private_output() -> TextIO:
    """The real standard output; what a peer prints goes where its log goes."""
    kept = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return kept


def _peak_memory() -> int:
    """Bytes. Not `ru_maxrss`, which begins with what the parent had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
