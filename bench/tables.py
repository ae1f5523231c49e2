"""bench/README.md: its words are in bench/README.in.md, its tables come from the result files."""

from __future__ import annotations

import json
from pathlib import Path

from bench.measuring import RESULTS, table

HERE = Path(__file__).parent


def write_readme() -> None:
    text = (HERE / "README.in.md").read_text()
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text())
        versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
        made = f"{table(result)}\n\n{result['machine']}; {versions}."
        text = text.replace(f"<!-- table: {result['name']} -->", made)
    (HERE / "README.md").write_text(text)
