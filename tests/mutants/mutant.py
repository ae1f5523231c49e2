"""One wrong order of events in the product, and the tests that must notice it."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    name: str
    file: str
    """Below src/redrive."""
    old: str
    """Found exactly once in the file, or the mutant has rotted."""
    new: str
    why: str
    """What it would lose, double or hide."""
    tests: tuple[str, ...]
    """What pytest is told, below tests/. At least one of them must fail."""
