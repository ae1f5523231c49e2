"""F13: a full disk. What is not durable is not called durable, nothing torn is accepted, and space heals it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.errors import NotDurable
from redrive.upkeep.spool import ReplayReport, Spool
from support.spooled import MEGABYTE, Sink, an_entry

SIZE = 256 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB. Where mounting is not allowed, the same is tested with a fault point."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", place],  # noqa: S607  wherever the system has it
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("this machine does not let us mount a file system")
    yield place
    subprocess.run(["umount", place], check=True)  # noqa: S607  as above


async def fill(spool: Spool, *, body: bytes) -> tuple[list[str], NotDurable]:
    """The identities that were called durable, and what the first refusal said."""
    durable: list[str] = []
    while len(durable) < SIZE:
        identity = f"{len(durable)}"
        try:
            await spool.append(an_entry(identity, body=body))
        except NotDurable as refused:
            return durable, refused
        durable.append(identity)
    raise AssertionError("the disk never became full")


@pytest.mark.parametrize("body_bytes", [10, 1000, 5000, 100_000])
async def test_letters_called_durable_on_a_disk_that_fills_up_are_all_there(
    body_bytes: int, small_disk: Path
) -> None:
    ballast = small_disk / "somebody else's"
    ballast.write_bytes(bytes(SIZE // 4))
    spool, sink = Spool(small_disk / "spool", max_bytes=MEGABYTE), Sink()

    durable, refused = await fill(spool, body=bytes(body_bytes))
    assert durable
    assert "No space left" in str(refused)
    with pytest.raises(NotDurable):
        await spool.append(an_entry("still full", body=bytes(body_bytes)))

    ballast.unlink()
    await spool.append(an_entry("space again", body=bytes(body_bytes)))
    assert await spool.replay(sink.take) == ReplayReport(len(durable) + 1, 0)
    assert sink.identities == [*durable, "space again"]
    await spool.close()


def fill_up(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


async def test_a_full_disk_and_a_replay_again_and_again_lose_nothing(small_disk: Path) -> None:
    spool = Spool(small_disk / "spool", max_bytes=MEGABYTE)
    for _ in range(5):
        durable, _refused = await fill(spool, body=bytes(2000))
        sink = Sink()
        assert await spool.replay(sink.take) == ReplayReport(len(durable), 0)
        assert sink.identities == durable
    await spool.close()


async def test_damage_that_cannot_be_kept_apart_for_want_of_space_stays_in_its_segment(small_disk: Path) -> None:
    folder = small_disk / "spool"
    spool = Spool(folder, max_bytes=MEGABYTE)
    await spool.append(an_entry("good"))
    (segment,) = folder.glob("*.seg")
    with segment.open("ab") as file:
        file.write(b"torn" * 2000)
    fill_up(small_disk / "somebody else's")

    assert await spool.replay(Sink().take) == ReplayReport(replayed=1, corrupt=0)
    assert segment.exists()

    (small_disk / "somebody else's").unlink()
    assert await spool.replay(Sink().take) == ReplayReport(replayed=1, corrupt=1)
    assert (folder / f"{segment.name}.corrupt").read_bytes() == b"torn" * 2000
    await spool.close()
