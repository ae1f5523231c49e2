"""kill -9 at every point of the spool, and adopters that race for what the dead left."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from redrive.upkeep.spool import Spool
from support.sealing import KINDS
from support.spooled import MEGABYTE, Sink, an_entry, files, segment_files, start

DIES_APPENDING = """
import asyncio, sys
from pathlib import Path
from redrive import faults
from redrive.upkeep.spool import Spool
from support.sealing import KINDS
from support.spooled import an_entry

async def main(folder, point, kind):
    spool = Spool(Path(folder), max_bytes=1 << 20, keys=KINDS[kind])
    async def append(identity):
        await spool.append(an_entry(identity))
        print(identity, flush=True)
    for number in range(3):
        await append(f"alone-{number}")
    await asyncio.gather(*(append(f"together-{number}") for number in range(5)))
    faults.arm(point)
    await asyncio.gather(*(append(f"armed-{number}") for number in range(5)))

asyncio.run(main(*sys.argv[1:]))
"""

DIES_REPLAYING = """
import asyncio, sys
from pathlib import Path
from redrive import faults
from redrive.upkeep.spool import Spool
from support.sealing import KINDS

async def take(entry):
    print(entry.identity, flush=True)

faults.arm(sys.argv[2])
asyncio.run(Spool(Path(sys.argv[1]), max_bytes=1 << 20, keys=KINDS[sys.argv[3]]).replay(take))
"""

ADOPTS = """
import asyncio, sys
from pathlib import Path
from redrive.upkeep.spool import Spool
from support.sealing import SEALING

async def take(entry):
    print(entry.identity, flush=True)

async def main():
    spool = Spool(Path(sys.argv[1]), max_bytes=1 << 30, keys=SEALING)
    print("ready", flush=True)
    sys.stdin.readline()
    await spool.replay(take)
    await spool.close()

asyncio.run(main())
"""


def killed(program: str, *arguments: object) -> list[str]:
    """The lines it printed before it killed itself."""
    with start(program, *arguments) as process:
        printed, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    return printed.split()


async def adopt(folder: Path) -> Sink:
    spool, sink = Spool(folder, max_bytes=MEGABYTE, keys=KINDS["sealed"]), Sink()  # which reads plain ones as well
    await spool.replay(sink.take)
    await spool.close()
    return sink


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", ["spool.before_write", "spool.write", "spool.before_sync", "spool.after_sync"])
async def test_killed_while_appending_every_letter_called_durable_is_replayed(
    point: str, kind: str, tmp_path: Path
) -> None:
    durable = killed(DIES_APPENDING, tmp_path, f"{point}=kill9", kind)
    assert len(durable) == 8

    sink = await adopt(tmp_path)

    assert set(durable) <= set(sink.identities)
    assert len(sink.identities) == len(set(sink.identities))
    assert sink.entries == [an_entry(identity) for identity in sink.identities]
    assert segment_files(tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_killed_after_writing_half_a_record_the_torn_one_is_kept_apart(kind: str, tmp_path: Path) -> None:
    program = DIES_APPENDING.replace("faults.arm(point)", "tear(point)").replace(
        "async def main",
        """
def tear(point):
    import os
    write = os.pwrite
    def once(descriptor, data, at):
        written = write(descriptor, data[:50], at)
        faults.arm(point)
        return written
    os.pwrite = once

async def main""",
        1,
    )
    durable = killed(program, tmp_path, "spool.write=kill9", kind)

    sink = await adopt(tmp_path)

    assert sink.identities == durable
    (corrupt,) = files(tmp_path)
    assert corrupt.name.endswith(".corrupt")
    assert corrupt.stat().st_size == 50


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", ["spool.after_replay", "spool.before_delete"])
async def test_killed_while_replaying_every_letter_reaches_the_store(
    point: str, kind: str, tmp_path: Path
) -> None:
    spool = Spool(tmp_path, max_bytes=MEGABYTE, keys=KINDS[kind])
    for number in range(5):
        await spool.append(an_entry(f"{number}"))
    await spool.close()

    assert killed(DIES_REPLAYING, tmp_path, f"{point}=kill9", kind)
    sink = await adopt(tmp_path)

    assert sink.identities == ["0", "1", "2", "3", "4"]
    assert segment_files(tmp_path) == []


async def test_f15_two_adopters_at_once_share_the_segments_of_the_dead(tmp_path: Path) -> None:
    for number in range(40):
        dead = Spool(tmp_path, max_bytes=MEGABYTE, keys=KINDS["sealed" if number % 2 else "plain"])
        await dead.append(an_entry(f"{number}"))
        await dead.close()

    with start(ADOPTS, tmp_path) as first, start(ADOPTS, tmp_path) as second:
        for process in (first, second):
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in (first, second):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        adopted = [process.communicate()[0].split() for process in (first, second)]

    assert (first.returncode, second.returncode) == (0, 0)
    assert sorted(map(int, [*adopted[0], *adopted[1]])) == list(range(40))
    assert files(tmp_path) == []
