"""Alternating runs, medians, one JSON file per benchmark."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
RUNS = 5


@dataclass(frozen=True)
class Aim:
    """`ours` measured against `other`: the ratio (ours / other) should be `wanted`."""

    case: str
    ours: str
    other: str
    wanted: str


@dataclass
class Benchmark:
    name: str
    unit: str
    packages: Sequence[str]
    about: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    ratios: list[dict[str, Any]] = field(default_factory=list)

    def measure(self, case: str, systems: Mapping[str, Callable[[], float]], *, runs: int = RUNS) -> None:
        """Every system once per round, so that what the machine does meanwhile hits all of them."""
        measured: dict[str, list[float]] = {name: [] for name in systems}
        for number in range(runs):
            for name, run in systems.items():
                print(f"\r{self.name} {case}: round {number + 1} of {runs}, {name:<30}", end="", file=sys.stderr)
                measured[name].append(run())
        print(file=sys.stderr)
        for name, values in measured.items():
            self.rows.append(
                {
                    "case": case,
                    "system": name,
                    "median": statistics.median(values),
                    "unit": self.unit,
                    "runs": values,
                }
            )

    def compare(self, aim: Aim) -> None:
        ratio = self._median(aim.case, aim.ours) / self._median(aim.case, aim.other)
        self.ratios.append(
            {"case": aim.case, "ours": aim.ours, "other": aim.other, "ratio": ratio, "aim": aim.wanted}
        )

    def save(self) -> Path:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}.json"
        content = {
            "name": self.name,
            "about": self.about,
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "versions": {"python": platform.python_version(), **{each: version(each) for each in self.packages}},
            "rows": self.rows,
            "ratios": self.ratios,
        }
        path.write_text(json.dumps(content, indent=2) + "\n")
        return path

    def _median(self, case: str, system: str) -> float:
        return next(float(row["median"]) for row in self.rows if row["case"] == case and row["system"] == system)


def table(result: Mapping[str, Any]) -> str:
    """The result as Markdown."""
    lines = [f"| case | system | median {result['rows'][0]['unit']} | runs |", "|---|---|---:|---|"]
    lines += [
        f"| {row['case']} | {row['system']} | {number(row['median'])} | "
        f"{', '.join(number(each) for each in row['runs'])} |"
        for row in result["rows"]
    ]
    lines += ["", "| case | ratio | measured | aim |", "|---|---|---:|---|"]
    lines += [
        f"| {each['case']} | {each['ours']} / {each['other']} | {each['ratio']:.2f} | {each['aim']} |"
        for each in result["ratios"]
    ]
    return "\n".join(lines)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
