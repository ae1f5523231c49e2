from __future__ import annotations

import ast
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redrive
from redrive import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(redrive.__file__).parent
POINT = "worker.before_ack"


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    faults.arm("")


def calls(called: str) -> Iterator[ast.Call]:
    """Every call in the source of what ends with that name, `GroupCommit[Connection](…)` included."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
                if ast.unparse(function) == called:
                    yield node


def text_of(node: ast.expr, names: list[str]) -> list[str]:
    """A point's name as written; one made from a writer's name once for each writer."""
    if isinstance(node, ast.JoinedStr):
        end = node.values[-1]
        assert isinstance(end, ast.Constant), "a point's name ends as it is written"
        return [f"{name}{end.value!s}" for name in names]
    assert isinstance(node, ast.Constant), "a point's name is written where it is called"
    return [str(node.value)]


def test_every_registered_point_is_in_the_source_and_every_point_of_the_source_is_registered() -> None:
    writers = [text for call in calls("GroupCommit") for text in text_of(call.args[0], [])]
    assert {"broker", "store", "journal"} <= set(writers)
    used = [text for call in calls("faults.point") for text in text_of(call.args[0], writers)]
    assert set(used) == set(faults.POINTS)


def test_every_point_says_what_is_done_there() -> None:
    assert all(told.strip() for told in faults.POINTS.values())


def test_points_do_nothing_unless_they_are_armed() -> None:
    assert [faults.point(name) for name in faults.POINTS] == [None] * len(faults.POINTS)
    faults.arm("worker.after_ack=raise")
    assert faults.point(POINT) is None


def test_what_is_armed_happens_at_its_point() -> None:
    faults.arm(f"{POINT}=raise, spool.write=enospc,spool.before_sync=eio")
    with pytest.raises(faults.FaultInjected, match=r"worker\.before_ack"):
        faults.point(POINT)
    for name, number in (("spool.write", errno.ENOSPC), ("spool.before_sync", errno.EIO)):
        with pytest.raises(OSError, match=os.strerror(number)) as full:
            faults.point(name)
        assert full.value.errno == number


@pytest.mark.parametrize(("argument", "written"), [("", 1), (":7", 7), (":0", 0)])
def test_a_short_write_says_how_many_bytes(argument: str, written: int) -> None:
    faults.arm(f"spool.write=short{argument}")
    assert faults.point("spool.write") == written


def test_a_probability_of_zero_never_strikes_and_one_of_one_always() -> None:
    faults.arm(f"{POINT}=raise:0")
    assert {faults.point(POINT) for _ in range(1000)} == {None}
    faults.arm(f"{POINT}=raise:1")
    for _ in range(100):
        with pytest.raises(faults.FaultInjected):
            faults.point(POINT)


def test_a_hang_of_no_time_goes_on() -> None:
    faults.arm(f"{POINT}=hang:0")
    assert faults.point(POINT) is None


def test_an_empty_text_disarms_all() -> None:
    faults.arm(f"{POINT}=raise")
    faults.arm("")
    assert faults.point(POINT) is None
    assert faults.parse(" , ,") == {}


@pytest.mark.parametrize(
    "wrong",
    [
        "worker.before_acc=raise",
        "worker.before_ack",
        "worker.before_ack=",
        "worker.before_ack=explode",
        "worker.before_ack:raise",
        "=raise",
        "raise",
        "worker.before_ack=raise:often",
        "worker.before_ack=raise:-1",
        "worker.before_ack=raise:nan",
        "worker.before_ack=hang:inf",
        "spool.write=short:-7",
        "worker.before_ack=raise;spool.write=eio",
    ],
)
def test_a_typing_error_does_not_pass(wrong: str) -> None:
    with pytest.raises(ValueError, match="REDRIVE_FAULTS"):
        faults.parse(wrong)


def test_a_typing_error_leaves_what_was_armed() -> None:
    faults.arm(f"{POINT}=raise")
    with pytest.raises(ValueError, match="REDRIVE_FAULTS"):
        faults.arm("nonsense")
    with pytest.raises(faults.FaultInjected):
        faults.point(POINT)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        faults.parse(text)
    except ValueError as error:
        assert "REDRIVE_FAULTS" in str(error)  # noqa: PT017  refusing is one of two right answers


def run(code: str, setting: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "REDRIVE_FAULTS": setting}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_kill9_from_the_environment_kills_the_process_and_nothing_runs_after_it() -> None:
    code = f"from redrive import faults; print('before', flush=True); faults.point({POINT!r}); print('after')"
    ended = run(code, f"{POINT}=kill9")
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout == "before\n"


def test_an_environment_with_a_typing_error_does_not_start() -> None:
    ended = run("from redrive import faults", "worker.before_acc=kill9")
    assert ended.returncode == 1
    assert "no point or action" in ended.stderr
