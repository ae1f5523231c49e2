"""Parts of the doctor that hang, fail and break: each is told, and keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from redrive import doctor_wiring
from redrive.errors import ConfigurationError
from redrive.finding import Finding, FindingLevel, FoundAt, ok
from redrive.settings import Settings
from redrive.upkeep.doctor_parts import Part, bounded


async def well() -> list[Finding]:
    return [ok("ttl", "it is well")]


async def test_what_is_found_says_where() -> None:
    (found,) = await bounded(Part("disk", FoundAt.DISK, "the disks", well), 30.0)
    assert (found.check, found.place, found.level) == ("ttl", FoundAt.DISK, FindingLevel.OK)


async def test_a_part_that_hangs_is_told_and_stopped() -> None:
    stopped = asyncio.Event()

    async def hang() -> list[Finding]:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError

    (broker,) = await bounded(Part("broker", FoundAt.BROKER, "the broker", hang), 0.01)
    assert (broker.level, broker.unreachable) == (FindingLevel.PROBLEM, True)
    assert broker.what == "the broker did not answer within 0.01 s"
    await stopped.wait()
    (disk,) = await bounded(Part("disk", FoundAt.DISK, "the disks", hang), 0.01)
    assert (disk.level, disk.unreachable, disk.place) == (FindingLevel.PROBLEM, False, FoundAt.DISK)


async def test_an_error_of_ours_is_a_problem_with_its_remedy() -> None:
    async def refuse() -> list[Finding]:
        raise ConfigurationError("kafka:// needs a package", remedy="pip install it")

    (found,) = await bounded(Part("broker", FoundAt.BROKER, "the broker", refuse), 30.0)
    assert (found.level, found.remedy) == (FindingLevel.PROBLEM, "pip install it")
    assert "kafka:// needs a package" in found.what


async def test_a_fault_of_ours_is_a_problem_and_quotes_nothing() -> None:
    async def fail() -> list[Finding]:
        raise KeyError("4111 1111 1111 1111")

    (found,) = await bounded(Part("disk", FoundAt.DISK, "the disks", fail), 30.0)
    assert found.level is FindingLevel.PROBLEM
    assert "KeyError" in found.what
    assert "4111" not in found.what + found.remedy


async def test_a_thread_that_hangs_keeps_neither_the_others_nor_the_end_of_the_process_waiting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gate = threading.Event()
    monkeypatch.chdir(tmp_path)

    def hang(_: object) -> list[Finding]:
        gate.wait()
        return []

    monkeypatch.setattr(doctor_wiring, "examine_disks", hang)
    found = await doctor_wiring.examine(Settings(), within=2.0)
    waiting = [
        each for each in threading.enumerate() if each.name.startswith("redrive-handler") and each.is_alive()
    ]
    gate.set()
    assert waiting
    assert all(each.daemon for each in waiting)
    assert "the disks did not answer within 2 s" in [each.what for each in found]
    assert {"store", "settings", "spool"} <= {each.check for each in found}


LOOK = """
import asyncio, sys, threading

class Watch:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is not threading.main_thread():
            print(name)

sys.meta_path.insert(0, Watch())
from redrive.doctor_wiring import examine
from redrive.settings import Settings
asyncio.run(examine(Settings()))
"""


def test_no_thread_of_the_doctor_is_the_first_to_import_anything(tmp_path: Path) -> None:
    """Two that import SQLAlchemy at once may find half of it, and a part would be told as a fault of ours."""
    told = subprocess.run([sys.executable, "-c", LOOK], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout == ""


@pytest.mark.parametrize(("sink", "to_broker"), [("store", False), ("queue", True), ("both", True)])
def test_a_broker_is_told_whose_dead_letters_are_put_into_it(sink: str, *, to_broker: bool) -> None:
    settings = Settings.model_validate({"queues": {"orders": {"dead_letters": {"sink": sink}}}})
    [expected] = doctor_wiring._expected(settings, None, ()).queues
    assert expected.to_broker is to_broker
