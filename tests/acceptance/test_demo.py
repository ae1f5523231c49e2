"""`redrive demo`: the story to its end, and the commands it tells to type."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from support.terminal import on_terminal

PROGRAM = [sys.executable, "-m", "redrive"]


def redrive(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, redrive(folder, "demo", "--once")


def commands(text: str) -> list[list[str]]:
    """What the demo tells to type, without the name of the program."""
    lines = [shlex.split(line) for line in text.splitlines() if " -c " in line and line.startswith("  ")]
    return [line[line.index("-c") :] for line in lines]


def test_once_tells_the_story_to_its_end_and_exits_0(
    told: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, done = told
    assert done.returncode == 0, done.stderr
    for line in ("retry    orders", "retry    payments", "dead     orders", "dead     emails"):
        assert line in done.stdout
    assert "3 of 3 came through: RESOLVED, confirmed by the handler" in done.stdout


def test_the_commands_it_tells_work_and_put_a_message_back(
    told: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = told
    listing, retry, work, show = commands(done.stderr)
    assert "ZeroDivisionError" in redrive(folder, *listing).stdout
    for step in (retry, work):
        finished = redrive(folder, *step)
        assert finished.returncode == 0, finished.stderr
    letter = json.loads(redrive(folder, *show, "--output", "json").stdout)
    assert letter["status"] == "RESOLVED"
    assert letter["how"] == "confirmed"


def test_on_a_terminal_it_paints_queues_and_causes_and_leaves_the_commands(tmp_path: Path) -> None:
    seen = on_terminal(tmp_path, "demo", "--once", columns=110)
    assert seen.code == 0
    for word in ("what just happened", "dead letters by cause", "waiting for a retry", "Now you."):
        assert word in seen.text


@contextmanager
def open_shop(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Until Ctrl-C, which it is given in the end."""
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            [*PROGRAM, "demo"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def line_of(process: subprocess.Popen[str], beginning: str) -> str:
    assert process.stdout is not None
    return next(line for line in process.stdout if line.startswith(beginning))


def test_ctrl_c_is_clean(tmp_path: Path) -> None:
    with open_shop(tmp_path) as process:
        line_of(process, "dead")
    errors = (tmp_path / "errors").read_text()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "the shop is closed" in errors
    assert commands(errors)


def test_the_console_is_served_beside_the_shop_with_a_link_that_signs_in_once(tmp_path: Path) -> None:
    own = {"sec-fetch-site": "same-origin"}
    with open_shop(tmp_path) as process:
        url, _, code = line_of(process, "console").split()[1].partition("/sign-in#code=")
        with httpx2.Client(base_url=url, headers=own) as browser:
            assert browser.post("/api/v1/session", json={"code": code}).status_code == 204
            line_of(process, "dead")
            assert browser.get("/api/v1/dlq").json()["items"]
            assert browser.get("/api/v1/about").json()["environment"] == "demo"
        assert httpx2.post(f"{url}/api/v1/session", json={"code": code}, headers=own).status_code == 401
    assert process.returncode == 0
