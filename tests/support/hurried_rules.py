"""The shipped rules for Prometheus, in a hurry: the same rules, with minutes made seconds.

One mechanical change: every duration after `for:`, inside `[...]` and after `offset` is replaced as HURRIED says,
and the thresholds that are times themselves as HURRIED_THRESHOLDS says. A duration that stands in no table is
refused, so that a new rule cannot be forgotten here. All else that a rule asks, counts and compares stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SCRAPE_EVERY = "1s"

HURRIED = {"1m": "4s", "5m": "6s", "15m": "10s", "30m": "12s", "1h": "30s"}
"""In their order, and each several scrapes long, for a rate needs two of them."""

HURRIED_THRESHOLDS = {
    "redrive_oldest_dead_letter_age_seconds > 24 * 3600": "redrive_oldest_dead_letter_age_seconds > 20",
    "process_start_time_seconds < 300": "process_start_time_seconds < 6",
}
"""Seconds that a letter has to wait, and that a process is called new."""

_DURATION = re.compile(r"(?<=for: )\w+|(?<=\[)\d\w*(?=\])|(?<=offset )\w+")
_ALERT = re.compile(r"- alert: (\w+)")
_RECORD = re.compile(r"- record: (\w+)")


def hurried(rules: str) -> str:
    for threshold, soon in HURRIED_THRESHOLDS.items():
        rules = rules.replace(threshold, soon)
    return _DURATION.sub(lambda found: HURRIED[found[0]], rules)


def alerts_of(rules: Path) -> list[str]:
    return _ALERT.findall(rules.read_text())


def recorded_by(rules: Path) -> list[str]:
    return _RECORD.findall(rules.read_text())
