"""Wall-clock time of whole commands, each in a fresh process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from bench.measuring import Aim, Benchmark

REPEATS = 5


def milliseconds(*arguments: str) -> Callable[[], float]:
    def run() -> float:
        best = float("inf")
        for _ in range(REPEATS):
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            best = min(best, time.perf_counter() - started)
        return best * 1000

    return run


def main() -> None:
    benchmark = Benchmark(
        "startup", "ms", ("typer", "rich", "pydantic", "sqlalchemy"), "fastest of five starts per run"
    )
    benchmark.measure(
        "start",
        {
            "redrive --help": milliseconds("-m", "redrive", "--help"),
            "redrive list --help": milliseconds("-m", "redrive", "list", "--help"),
            "python -c pass": milliseconds("-c", "pass"),
        },
    )
    benchmark.compare(Aim("start", "redrive --help", "python -c pass", "redrive --help under 300 ms"))
    benchmark.save()
