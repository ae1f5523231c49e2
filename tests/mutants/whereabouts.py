"""A plugin for the runs of mutants: the tests see the copy and nothing else, and none of them is skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import redrive

COPY = "REDRIVE_MUTANTS_COPY"
SKIPPED = 64
"""The exit code of a run in which a test did not run: what is skipped notices nothing."""


class _Skips:
    def __init__(self) -> None:
        self.seen = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seen = self.seen or report.skipped

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.seen and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = SKIPPED


def pytest_configure(config: pytest.Config) -> None:
    imported, copy = Path(redrive.__file__).resolve(), Path(os.environ[COPY]).resolve()
    if not imported.is_relative_to(copy):
        raise pytest.UsageError(f"the tests would see {imported}, not the copy in {copy}")
    config.pluginmanager.register(_Skips())
