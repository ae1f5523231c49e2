"""Every code that the doctor can tell stands in docs/doctor.md, and none stands there that it cannot tell."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "redrive"
TABLE = ROOT / "docs" / "doctor.md"

_TELLS = {"ok", "unknown", "warn", "problem"}
_CHOSEN = {"told", "finding"}
"""Names for one of those, which of them is decided where it is called."""
_NAMES_ONE = {"_failed", "Part", "Question"}
"""Whose first argument is the code of what they tell."""
_ROW = re.compile(r"^\| `([a-z-]+)` \| ([^|]+) \|")


def told_by_the_code() -> dict[str, set[str]]:
    """Each code and the levels that the source has for it; `?` where that is decided elsewhere."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        if "redrive.finding" not in text and "postgres_questions" not in text and "doctor_parts" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args:
                first = call.args[0]
                if call.func.id in _TELLS | _CHOSEN | _NAMES_ONE and isinstance(first, ast.Constant):
                    found[str(first.value)].add(call.func.id if call.func.id in _TELLS else "?")
    return found


def told_by_the_table() -> dict[str, set[str]]:
    rows = (_ROW.match(line) for line in TABLE.read_text("utf-8").splitlines())
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row is not None:
            found[row[1]] |= {each.strip() for each in row[2].split(",")}
    return found


def test_no_code_is_without_a_line_and_no_line_without_a_code() -> None:
    code, table = told_by_the_code(), told_by_the_table()
    assert sorted(code.keys() - table.keys()) == []
    assert sorted(table.keys() - code.keys()) == []


def test_the_levels_of_each_line_are_those_that_the_code_has() -> None:
    code, table = told_by_the_code(), told_by_the_table()
    for check, levels in code.items():
        assert levels - {"?"} <= table[check], check
        if "?" not in levels:
            assert table[check] <= levels, check


def test_a_code_is_a_fixed_word() -> None:
    """Else the two tests above would not see it. The exceptions pass on what one of `_NAMES_ONE` was given."""
    passed_on = {"finding.py", "postgres_examination.py", "doctor_parts.py", "doctor.py"}
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        if "redrive.finding import" not in text or path.name in passed_on:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _TELLS:
                assert call.args, f"{path}:{call.lineno}"
                assert isinstance(call.args[0], ast.Constant), f"{path}:{call.lineno}"
