"""docs/metrics.md names every metric that there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "metrics.md").read_text()


def made() -> set[str]:
    """The names in the source, where each is written once as a whole."""
    sources = [*(ROOT / "src/redrive/telemetry").glob("*.py"), ROOT / "src/redrive/metrics_wiring.py"]
    return {name for path in sources for name in re.findall(r'"(redrive_\w+)"', path.read_text())}


def test_every_metric_is_on_the_page_and_every_one_on_the_page_exists() -> None:
    own = PAGE.partition("## From other names")[0]
    assert set(re.findall(r"redrive_\w+", own)) == made()
    named_for_others = {
        re.sub(r"_bucket$", "", name) for name in re.findall(r"redrive_\w+", PAGE) if not name.endswith("_")
    }
    assert named_for_others <= made()
