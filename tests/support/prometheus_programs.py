"""Prometheus's own programs, Debian's: `make prometheus` installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        missing = f"no {name} here: make prometheus (as root), or apt-get install prometheus"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def promtool(*arguments: str | Path, given: bytes | None = None) -> str:
    """What it says; it has to be content."""
    ended = subprocess.run(
        [program("promtool"), *map(str, arguments)], input=given, capture_output=True, timeout=60, check=False
    )
    said = (ended.stdout + ended.stderr).decode()
    assert ended.returncode == 0, said
    return said
