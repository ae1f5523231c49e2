"""bench/README.md: its words are in bench/README.in.md, its tables come from the result files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measuring import NO_AIM, RESULTS

HERE = Path(__file__).parent
_COSTS = {"cpu_us": "CPU µs per message", "peak_mib": "peak MiB"}


def write_readme() -> None:
    text = (HERE / "README.in.md").read_text()
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text())
        versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
        made = f"{table(result)}\n\n{result['machine']}; {versions}."
        text = text.replace(f"<!-- table: {result['name']} -->", made)
    (HERE / "README.md").write_text(text)


def table(result: Mapping[str, Any]) -> str:
    """The result as Markdown."""
    if "p95" in result["rows"][0]:  # the medians stand side by side, so that only ratios with an aim say more
        aimed = [each for each in result["ratios"] if each["aim"] != NO_AIM]
        return "\n".join([*_by_case(result), *_ratios(aimed), *_facts(result)])
    return "\n".join([*_by_system(result), *_ratios(result["ratios"]), *_facts(result)])


def _by_system(result: Mapping[str, Any]) -> Iterator[str]:
    """One line per case and system, with its runs."""
    costs = {key: name for key, name in _COSTS.items() if key in result["rows"][0]}
    yield _line("case", "system", f"median {result['rows'][0]['unit']}", *costs.values(), "runs")
    yield "|---|---|---:|" + "---:|" * len(costs) + "---|"
    for row in result["rows"]:
        runs = ", ".join(number(each) for each in row["runs"])
        yield _line(row["case"], row["system"], number(row["median"]), *(number(row[key]) for key in costs), runs)


def _by_case(result: Mapping[str, Any]) -> Iterator[str]:
    """One line per case, with the medians of all systems and, in brackets, a percentile."""
    percentile = result.get("percentile", "p95")
    systems = list(dict.fromkeys(row["system"] for row in result["rows"]))
    limits = {limit["case"]: limit for limit in result["limits"]}
    yield _line(f"median {result['rows'][0]['unit']} ({percentile})", *systems, "aim", "met")
    yield "|---|" + "---:|" * len(systems) + "---|---|"
    for case in dict.fromkeys(row["case"] for row in result["rows"]):
        found = {row["system"]: row for row in result["rows"] if row["case"] == case}
        cells = [_median_and(percentile, found.get(system)) for system in systems]
        yield _line(case, *cells, limits[case]["aim"], "yes" if limits[case]["met"] else "**no**")


def _ratios(ratios: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "| case | ratio | measured | aim |", "|---|---|---:|---|")
    for each in ratios:
        yield _line(each["case"], f"{each['ours']} / {each['other']}", _ratio(each["ratio"]), each["aim"])


def _facts(result: Mapping[str, Any]) -> Iterator[str]:
    for name, fact in result.get("facts", {}).items():
        yield f"\n{name}: {fact}."


def _median_and(percentile: str, row: Mapping[str, Any] | None) -> str:
    return "" if row is None else f"{number(row['median'])} ({number(row[percentile])})"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _ratio(value: float) -> str:
    return f"1/{1 / value:,.0f}" if value < 0.01 else f"{value:.2f}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
