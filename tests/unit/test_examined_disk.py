"""The doctor's look at disks: real folders, in memory and on a disk, and a real small file system."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive import disk
from redrive.disk import Ground, ground_of, is_temporary, kind_in, nearest
from redrive.finding import Finding, FindingLevel
from redrive.upkeep import examined_disk
from redrive.upkeep.examined_disk import Holds, Kept, examine_disks

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  it is looked at
MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
23 22 0:22 / /srv rw - nfs4 files:/srv rw
24 23 0:23 / /srv/local rw - xfs /dev/sdb1 rw
25 22 0:24 / /mnt/a\\040share rw master:1 - cifs //host/share rw
26 22 0:25 / /over rw - ext4 /dev/sdc1 rw
27 22 0:26 / /over rw - tmpfs tmpfs rw
no line of a mount
"""


def kept(path: Path, name: str = "the spool", **given: object) -> Kept:
    values: dict[str, object] = {"holds": Holds.LETTERS, "setting": "spool.folder", **given}
    return Kept(name=name, path=path, **values)  # type: ignore[arg-type]


def told(found: list[Finding]) -> set[tuple[str, FindingLevel]]:
    return {(each.check, each.level) for each in found}


@pytest.fixture
def lasting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is temporary here is a place like any other."""
    monkeypatch.setattr(examined_disk, "is_temporary", lambda _: False)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/redrive", "ext4"),
        ("/srv/store.db", "nfs4"),
        ("/srv/local/store.db", "xfs"),
        ("/srvs", "ext4"),
        ("/mnt/a share/x", "cifs"),
        ("/over/x", "tmpfs"),
    ],
)
def test_the_kind_is_that_of_the_deepest_and_last_mount(path: str, kind: str) -> None:
    assert kind_in(MOUNTS, Path(path)) == kind


def test_what_is_not_there_yet_is_where_its_nearest_folder_is(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    assert nearest(tmp_path / "link" / "a" / "b") == tmp_path.resolve()
    assert ground_of(tmp_path / "a" / "b").device == tmp_path.stat().st_dev
    assert list(tmp_path.iterdir()) == [tmp_path / "link"]


def test_memory_is_told_from_a_disk(disk_path: Path) -> None:
    assert not ground_of(disk_path).in_memory
    assert is_temporary(disk_path)
    if not SHARED_MEMORY.is_dir():
        pytest.skip("this machine has no /dev/shm")
    assert ground_of(SHARED_MEMORY).in_memory


@pytest.mark.usefixtures("lasting")
def test_a_place_as_it_should_be_is_well(disk_path: Path) -> None:
    assert told(examine_disks([kept(disk_path / "spool")])) == {("disk", FindingLevel.OK)}


def test_what_lies_in_memory_loses_letters_and_secrets_but_not_notes() -> None:
    if not SHARED_MEMORY.is_dir():
        pytest.skip("this machine has no /dev/shm")
    here = SHARED_MEMORY / "nobody-makes-this"
    assert told(examine_disks([kept(here)])) == {("in-memory", FindingLevel.PROBLEM)}
    assert told(examine_disks([kept(here, holds=Holds.SECRET)])) == {("in-memory", FindingLevel.PROBLEM)}
    assert told(examine_disks([kept(here, holds=Holds.NOTES)])) == {("in-memory", FindingLevel.WARN)}


def test_folders_for_temporary_files_are_a_warning(disk_path: Path) -> None:
    assert told(examine_disks([kept(disk_path)])) == {("temporary", FindingLevel.WARN)}


@pytest.mark.usefixtures("lasting")
class TestOnADisk:
    def test_what_everybody_may_read_is_a_warning_and_keys_are_not_for_groups(self, disk_path: Path) -> None:
        store = disk_path / "store.db"
        store.touch()
        for mode, holds, found in (
            (0o600, Holds.LETTERS, ("disk", FindingLevel.OK)),
            (0o640, Holds.LETTERS, ("disk", FindingLevel.OK)),
            (0o644, Holds.LETTERS, ("file-access", FindingLevel.WARN)),
            (0o602, Holds.LETTERS, ("file-access", FindingLevel.WARN)),
            (0o640, Holds.SECRET, ("file-access", FindingLevel.WARN)),
        ):
            store.chmod(mode)
            assert told(examine_disks([kept(store, holds=holds)])) == {found}, oct(mode)

    def test_what_cannot_be_made_is_a_problem_unless_it_is_told_elsewhere(self, disk_path: Path) -> None:
        (disk_path / "file").touch(mode=0o600)
        there = disk_path / "file" / "archive"
        assert told(examine_disks([kept(there)])) == {("writable", FindingLevel.PROBLEM)}
        assert told(examine_disks([kept(there, told_elsewhere=True)])) == {("disk", FindingLevel.OK)}

    def test_the_spool_on_the_disk_of_the_store_is_a_warning(self, disk_path: Path) -> None:
        store, spool = kept(disk_path / "store.db", "the store"), kept(disk_path / "spool", spills="the store")
        assert told(examine_disks([store, spool])) == {("one-disk", FindingLevel.WARN)}
        assert told(examine_disks([spool])) == {("disk", FindingLevel.OK)}

    def test_less_room_than_may_be_written_is_a_warning(self, disk_path: Path) -> None:
        free = ground_of(disk_path).free
        assert told(examine_disks([kept(disk_path, grows=2 * free)])) == {("disk-space", FindingLevel.WARN)}

    def test_sqlite_on_a_network_file_system_is_a_problem(
        self, disk_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        far = disk_path / "mountinfo"
        far.write_text(f"1 0 0:1 / {disk_path.resolve()} rw - nfs4 files:/ rw\n")
        monkeypatch.setattr(disk, "_MOUNTS", far)
        assert told(examine_disks([kept(disk_path / "s.db", sqlite=True)])) == {
            ("network-disk", FindingLevel.PROBLEM)
        }
        assert told(examine_disks([kept(disk_path / "spool")])) == {("disk", FindingLevel.OK)}

    def test_a_system_that_does_not_tell_its_mounts_is_said_so(
        self, disk_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(disk, "_MOUNTS", disk_path / "nothing")
        assert told(examine_disks([kept(disk_path / "s.db", sqlite=True)])) == {
            ("network-disk", FindingLevel.UNKNOWN)
        }

    def test_a_place_that_cannot_be_looked_at_is_said_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: Path) -> Ground:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(examined_disk, "ground_of", refuse)
        assert told(examine_disks([kept(Path("/x"))])) == {("disk", FindingLevel.UNKNOWN)}


@contextlib.contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let us mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607  wherever the system has it


def test_a_disk_that_gets_full_is_first_a_warning_then_a_problem(disk_path: Path) -> None:
    small = disk_path / "small"
    small.mkdir()
    mib = 2**20
    with mounted(small, 4096 * mib):
        assert ("disk-space", FindingLevel.WARN) not in told(examine_disks([kept(small)]))
        with (small / "somebody else's").open("wb") as file:
            file.truncate(0)
            for left, level in ((150 * mib, FindingLevel.WARN), (32 * mib, FindingLevel.PROBLEM)):
                taken = ground_of(small).free - left
                subprocess.run(["fallocate", "-o", str(file.seek(0, 2)), "-l", str(taken), file.name], check=True)  # noqa: S607  as above
                assert ("disk-space", level) in told(examine_disks([kept(small)]))
