"""Alternating runs, medians, one JSON file per benchmark."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
RUNS = 5
MOST_CALLS = 20
NO_AIM = "none"


@dataclass(frozen=True)
class Aim:
    """`ours` measured against `other`: the ratio (ours / other) should be `wanted`."""

    case: str
    ours: str
    other: str
    wanted: str


@dataclass(frozen=True)
class Limit:
    """The median of `system` should be under `under`, in the benchmark's unit."""

    case: str
    system: str
    under: float


@dataclass
class Benchmark:
    name: str
    unit: str
    packages: Sequence[str]
    about: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    ratios: list[dict[str, Any]] = field(default_factory=list)
    limits: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """What else was found, such as sizes and settings."""
    percentile: str = "p95"
    """That is shown beside medians."""

    def measure(self, case: str, systems: Mapping[str, Callable[[], float]], *, runs: int = RUNS) -> None:
        """Every system once per round, in turns from the first to the last and from the last to the first, so that
        what the machine does meanwhile hits all of them.
        """
        for name, values in self._rounds(case, systems, runs).items():
            self._add(case, name, statistics.median(values), values)

    def measure_calls(
        self, case: str, systems: Mapping[str, Callable[[], float]], *, runs: int = RUNS, most: int = MOST_CALLS
    ) -> None:
        """As `measure`, for single calls, each system once before the clock counts. A fast call is made many times
        in each round, at most `most`: the median and the 95th and 99th percentiles are of all calls, a run is the
        median of its round.
        """
        repeats = {name: _repeats(run(), most) for name, run in systems.items()}
        calls: dict[str, list[float]] = {name: [] for name in systems}

        def some(name: str) -> float:
            values = [systems[name]() for _ in range(repeats[name])]
            calls[name] += values
            return statistics.median(values)

        for name, values in self._rounds(case, {name: partial(some, name) for name in systems}, runs).items():
            every = sorted(calls[name])
            p95, p99 = (every[math.ceil(len(every) * share) - 1] for share in (0.95, 0.99))
            self._add(case, name, statistics.median(every), values, p95=p95, p99=p99, calls=len(every))

    def _rounds(self, case: str, systems: Mapping[str, Callable[[], float]], runs: int) -> dict[str, list[float]]:
        measured: dict[str, list[float]] = {name: [] for name in systems}
        for number in range(runs):
            for name, run in list(systems.items())[:: -1 if number % 2 else 1]:
                print(f"\r{self.name} {case}: round {number + 1} of {runs}, {name:<30}", end="", file=sys.stderr)
                measured[name].append(run())
        print(file=sys.stderr)
        return measured

    def _add(self, case: str, system: str, median: float, runs: list[float], **more: float) -> None:
        row = {"case": case, "system": system, "median": median, "unit": self.unit, "runs": runs}
        self.rows.append(row | more)

    def keep_under(self, limit: Limit) -> None:
        median = self._median(limit.case, limit.system)
        aim = f"under {limit.under:g} {self.unit}"
        self.limits.append(
            {"case": limit.case, "system": limit.system, "median": median, "aim": aim, "met": median < limit.under}
        )

    def compare(self, aim: Aim, *, paired: bool = False) -> None:
        """Of both medians; `paired`: the median of the ratio of each round, for what differs by less than the
        machine does from one round to the next.
        """
        ours, other = self._row(aim.case, aim.ours), self._row(aim.case, aim.other)
        rounds = zip(ours["runs"], other["runs"], strict=True)
        ratio = statistics.median(a / b for a, b in rounds) if paired else ours["median"] / other["median"]
        self.ratios.append(
            {"case": aim.case, "ours": aim.ours, "other": aim.other, "ratio": ratio, "aim": aim.wanted}
        )

    def save(self) -> Path:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}.json"
        content: dict[str, Any] = {
            "name": self.name,
            "about": self.about,
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "versions": {"python": platform.python_version(), **{each: version(each) for each in self.packages}},
            "percentile": self.percentile,
            "rows": self.rows,
            "ratios": self.ratios,
        }
        content |= {name: each for name, each in (("limits", self.limits), ("facts", self.facts)) if each}
        path.write_text(json.dumps(content, indent=2) + "\n")
        return path

    def _median(self, case: str, system: str) -> float:
        return float(self._row(case, system)["median"])

    def _row(self, case: str, system: str) -> dict[str, Any]:
        return next(row for row in self.rows if row["case"] == case and row["system"] == system)


def _repeats(first: float, most: int) -> int:
    """How often a call that took so many milliseconds is made in a round: for a quarter of a second, or once; for
    longer where percentiles of many calls are wanted.
    """
    return max(1, min(most, int(250 * most / MOST_CALLS / max(first, 0.1))))
