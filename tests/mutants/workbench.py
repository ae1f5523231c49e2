"""A copy of the tree, one mutant in it, and the run of its tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mutants.whereabouts import COPY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mutants.mutant import Mutant

_ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("src", "tests", "pyproject.toml")
_PER_TEST = 60
_PER_RUN = 900


class Fate(StrEnum):
    KILLED = "killed"
    SURVIVED = "SURVIVED"
    ROTTED = "ROTTED"
    """Its old text is not in the file any more, or more than once."""
    UNUSABLE = "UNUSABLE"
    """pytest could not run its tests: no such test, or the mutant cannot be imported."""


class Ended(NamedTuple):
    fate: Fate
    told: str
    """The test that failed, or what went wrong."""


class Workbench:
    """`environment` is added to this process's own. The tree may change while it works: it keeps a copy."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._unchanged = self._copy("unchanged", _ROOT)

    def try_unchanged(self, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
        return self._run(self._unchanged, tests, "-q")

    def try_mutant(self, mutant: Mutant) -> Ended:
        copy = self._copy(mutant.name, self._unchanged)
        try:
            file = copy / "src" / "redrive" / mutant.file
            found = file.read_text().count(mutant.old) if file.exists() else 0
            if found != 1:
                return Ended(Fate.ROTTED, f"its text is {found} times in {mutant.file}")
            _write(file, file.read_text().replace(mutant.old, mutant.new))
            return _judge(self._run(copy, mutant.tests, "-x", "-q"))
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _copy(self, name: str, tree: Path) -> Path:
        copy = self._folder / name
        for each in _COPIED:
            source, target = tree / each, copy / each
            if source.is_dir():
                shutil.copytree(source, target)  # with the compiled files, which are still right
            else:
                shutil.copy2(source, target)
        return copy

    def _run(self, copy: Path, tests: Iterable[str], *options: str) -> subprocess.CompletedProcess[str]:
        paths = f"{copy / 'src'}{os.pathsep}{copy / 'tests'}"
        return subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-p", "mutants.whereabouts", "-p", "no:cacheprovider"),
                *(f"--timeout={_PER_TEST}", "--tb=line", "-rfE", *options),
                *(f"tests/{each}" for each in tests),
            ],
            cwd=copy,
            env={**os.environ, **self._environment, "PYTHONPATH": paths, COPY: str(copy)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PER_RUN,
            check=False,
        )


def _write(file: Path, text: str) -> None:
    file.write_text(text)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()  # it may have the same size and second


def _judge(run: subprocess.CompletedProcess[str]) -> Ended:
    lines = run.stdout.splitlines()
    failed = next((line for line in lines if line.startswith(("FAILED ", "ERROR "))), "")
    if run.returncode == 0:
        return Ended(Fate.SURVIVED, "no test noticed it")
    if run.returncode != 1 or not failed.startswith("FAILED "):
        return Ended(Fate.UNUSABLE, failed or (lines or run.stderr.splitlines() or ["no output"])[-1])
    return Ended(Fate.KILLED, failed.removeprefix("FAILED ").rpartition("::")[2])
