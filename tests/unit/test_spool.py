from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import stat
import threading
from collections.abc import AsyncIterator
from datetime import timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from redrive import faults
from redrive.dead_letter import Entry
from redrive.errors import NotDurable, Unreachable
from redrive.upkeep import spool_segment
from redrive.upkeep.spool import ReplayReport, Spool
from redrive.upkeep.spool_record import encode_record, opening
from redrive.upkeep.spool_segment import SEGMENT_BYTES, AdoptedSegment, LiveSegment, make_folder
from support.spooled import MEGABYTE, NOON, Sink, an_entry, armed, segment_files


@pytest.fixture
async def spool(tmp_path: Path) -> AsyncIterator[Spool]:
    made = Spool(tmp_path / "spool", max_bytes=64 * MEGABYTE)
    yield made
    await made.close()


async def test_what_was_appended_is_replayed_once_in_its_order_and_then_gone(spool: Spool) -> None:
    entries = [an_entry(f"{number}") for number in range(200)]
    for entry in entries:
        await spool.append(entry)
    sink = Sink()

    assert await spool.replay(sink.take) == ReplayReport(replayed=200, corrupt=0)
    assert sink.entries == entries
    assert await spool.replay(sink.take) == ReplayReport(replayed=0, corrupt=0)
    assert (spool.pending().bytes, spool.pending().segments) == (0, 0)


async def test_a_spool_that_was_never_used_is_empty_and_makes_no_folder(spool: Spool, tmp_path: Path) -> None:
    assert await spool.replay(Sink().take) == ReplayReport(0, 0)
    assert spool.pending().segments == 0
    assert not (tmp_path / "spool").exists()


async def test_letters_are_readable_by_their_user_only(spool: Spool, tmp_path: Path) -> None:
    await spool.append(an_entry("a"))

    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in segment_files(tmp_path / "spool")] == [0o600]


async def test_appends_that_wait_together_are_all_durable_before_the_spool_is_closed(
    spool: Spool, tmp_path: Path
) -> None:
    await asyncio.gather(*(spool.append(an_entry(f"{number}")) for number in range(100)))
    (segment,) = segment_files(tmp_path / "spool")
    (tmp_path / "copy").mkdir()
    shutil.copy(segment, tmp_path / "copy")
    copy, sink = Spool(tmp_path / "copy", max_bytes=MEGABYTE), Sink()
    await copy.replay(sink.take)
    await copy.close()

    assert sink.identities == [f"{number}" for number in range(100)]


class Syscalls:
    """What reaches the operating system, in its order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        self._watch(monkeypatch, os, "pwrite", "write")
        self._watch(monkeypatch, spool_segment, "_sync_data", "sync")
        self._watch(monkeypatch, os, "fsync", "sync of the folder")

    def _watch(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, shown: str) -> None:
        real = getattr(owner, name)

        def watched(*arguments: object) -> object:
            self.made.append(shown)
            return real(*arguments)

        monkeypatch.setattr(owner, name, watched)


async def test_a_letter_is_called_durable_after_its_sync_and_the_new_segments_name_is_synced_first(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path / "spool")
    syscalls = Syscalls(monkeypatch)

    await spool.append(an_entry("a"))
    syscalls.made.append("durable")
    await spool.append(an_entry("b"))

    assert syscalls.made == ["sync of the folder", "write", "sync", "durable", "write", "sync"]


async def test_appends_that_wait_together_share_a_sync(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    syscalls, all_wait = Syscalls(monkeypatch), threading.Event()
    spool._thread.submit(all_wait.wait)
    appends = asyncio.gather(*(spool.append(an_entry(f"{number}")) for number in range(100)))
    await asyncio.sleep(0)
    all_wait.set()
    await appends

    assert [made for made in syscalls.made if made != "sync of the folder"] == ["write"] * 100 + ["sync"]


async def test_a_sink_that_fails_stops_the_replay_and_everything_is_kept(spool: Spool) -> None:
    for number in range(5):
        await spool.append(an_entry(f"{number}"))

    with pytest.raises(Unreachable):
        await spool.replay(Sink(away_after=2).take)

    sink = Sink()
    assert (await spool.replay(sink.take)).replayed == 5
    assert sink.identities == ["0", "1", "2", "3", "4"]


async def test_a_store_that_is_still_away_is_asked_for_one_letter_only(spool: Spool) -> None:
    for number in range(50):
        await spool.append(an_entry(f"{number}"))
    asked: list[str] = []

    async def refuse(entry: Entry) -> None:
        asked.append(entry.identity)
        raise Unreachable("the store is away")

    with pytest.raises(Unreachable):
        await spool.replay(refuse)
    assert asked == ["0"]


class Choosy:
    """A store that is there and never takes one letter."""

    def __init__(self, never: str) -> None:
        self.taken: list[str] = []
        self._never = never

    async def take(self, entry: Entry) -> None:
        if entry.identity == self._never:
            raise ValueError("no place for it")
        self.taken.append(entry.identity)


@pytest.mark.parametrize("never", ["0", "70", "99"])
async def test_a_letter_the_sink_never_takes_holds_up_no_other_and_stays(spool: Spool, never: str) -> None:
    for number in range(100):
        await spool.append(an_entry(f"{number}"))
    choosy = Choosy(never)

    with pytest.raises(ValueError, match="no place"), capture_logs() as logs:
        await spool.replay(choosy.take)

    assert choosy.taken == [f"{number}" for number in range(100) if f"{number}" != never]
    assert [line["refused"] for line in logs] == [1]
    sink = Sink()
    assert await spool.replay(sink.take) == ReplayReport(replayed=100, corrupt=0)
    assert never in sink.identities


async def test_only_the_segment_of_a_refused_letter_is_kept(spool: Spool, tmp_path: Path) -> None:
    large = b"x" * (SEGMENT_BYTES // 2 + 1)
    for number in range(5):
        await spool.append(an_entry(f"{number}", body=large))
    first, *_ = segment_files(tmp_path / "spool")
    choosy = Choosy("0")

    with pytest.raises(ValueError, match="no place"):
        await spool.replay(choosy.take)

    assert choosy.taken == ["1", "2", "3", "4"]
    assert segment_files(tmp_path / "spool") == [first]


async def test_a_store_that_goes_away_after_a_refusal_is_asked_no_further(spool: Spool) -> None:
    for number in range(200):
        await spool.append(an_entry(f"{number}"))
    asked: list[str] = []

    async def refuse_then_go_away(entry: Entry) -> None:
        asked.append(entry.identity)
        if entry.identity == "0":
            raise ValueError("no place for it")
        raise Unreachable("the store is away")

    with pytest.raises(Unreachable):
        await spool.replay(refuse_then_go_away)

    assert len(asked) < 200
    assert (await spool.replay(Sink().take)).replayed == 200


async def test_two_letters_of_one_identity_are_never_with_the_sink_together(spool: Spool) -> None:
    for identity in "abcab":
        await spool.append(an_entry(identity))
    inside: set[str] = set()
    seen: list[str] = []

    async def take(entry: Entry) -> None:
        assert entry.identity not in inside
        inside.add(entry.identity)
        await asyncio.sleep(0)
        inside.discard(entry.identity)
        seen.append(entry.identity)

    await spool.replay(take)
    assert seen == list("abcab")


async def test_appending_while_a_replay_runs_loses_and_repeats_nothing(spool: Spool) -> None:
    for number in range(10):
        await spool.append(an_entry(f"before-{number}"))
    seen: list[str] = []

    async def take_and_append(entry: Entry) -> None:
        seen.append(entry.identity)
        await spool.append(an_entry(f"during-{entry.identity}"))

    assert (await spool.replay(take_and_append)).replayed == 10
    sink = Sink()
    assert (await spool.replay(sink.take)).replayed == 10
    assert len({*seen, *sink.identities}) == 20


async def test_a_segment_that_is_full_is_followed_by_another(spool: Spool, tmp_path: Path) -> None:
    large = b"x" * (SEGMENT_BYTES // 2 + 1)
    for number in range(5):
        await spool.append(an_entry(f"{number}", body=large))

    assert len(segment_files(tmp_path / "spool")) == 3
    sink = Sink()
    await spool.replay(sink.take)
    assert sink.identities == ["0", "1", "2", "3", "4"]
    assert all(entry.message.body == large for entry in sink.entries)


async def test_what_a_closed_spool_left_is_replayed_by_the_next(tmp_path: Path) -> None:
    first = Spool(tmp_path, max_bytes=MEGABYTE)
    await first.append(an_entry("a"))
    await first.close()
    await first.close()
    with pytest.raises(NotDurable):
        await first.append(an_entry("b"))

    second, sink = Spool(tmp_path, max_bytes=MEGABYTE), Sink()
    await second.replay(sink.take)
    await second.close()
    assert sink.identities == ["a"]


async def test_the_live_segment_of_another_is_left_alone(spool: Spool, tmp_path: Path) -> None:
    await spool.append(an_entry("alive"))
    other, sink = Spool(tmp_path / "spool", max_bytes=MEGABYTE), Sink()

    assert (await other.replay(sink.take)).replayed == 0
    await spool.append(an_entry("still alive"))
    await spool.replay(sink.take)
    await other.close()
    assert sink.identities == ["alive", "still alive"]


async def test_a_segment_in_the_hands_of_one_adopter_is_not_given_to_another(tmp_path: Path) -> None:
    dead = Spool(tmp_path, max_bytes=MEGABYTE)
    await dead.append(an_entry("a"))
    await dead.close()
    first, second = (Spool(tmp_path, max_bytes=MEGABYTE) for _ in range(2))
    second_sink = Sink()
    reports: list[ReplayReport] = []

    async def let_the_other_try(_: Entry) -> None:
        reports.append(await second.replay(second_sink.take))

    assert (await first.replay(let_the_other_try)).replayed == 1
    await first.close()
    await second.close()
    assert reports == [ReplayReport(0, 0)]
    assert second_sink.entries == []


async def test_a_segment_replayed_by_another_between_opening_and_locking_it_is_not_replayed_again(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await spool.append(an_entry("a"))
    await spool.close()
    (segment,) = segment_files(tmp_path / "spool")
    _another_deletes_it_before_the_lock(monkeypatch, segment.parent)

    assert AdoptedSegment.adopt(segment) is None


def test_a_new_segment_that_an_adopter_takes_for_an_empty_one_of_the_dead_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _another_deletes_it_before_the_lock(monkeypatch, tmp_path)
    made = LiveSegment.create(tmp_path)

    assert segment_files(tmp_path) == [made.path]
    made.close()


def _another_deletes_it_before_the_lock(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    lock = fcntl.flock

    def too_late(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        for path in segment_files(folder):
            path.unlink()
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", too_late)


async def test_a_replay_cancelled_half_way_keeps_no_segment_locked(spool: Spool) -> None:
    await spool.append(an_entry("a"))
    asked = asyncio.Event()

    async def hang(_: Entry) -> None:
        asked.set()
        await asyncio.Event().wait()

    replay = asyncio.create_task(spool.replay(hang))
    await asked.wait()
    replay.cancel()
    with pytest.raises(asyncio.CancelledError):
        await replay

    assert (await spool.replay(Sink().take)).replayed == 1


async def test_a_spool_at_its_limit_refuses_and_keeps_what_it_has(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=4096)
    refused = None
    for taken in range(100):
        try:
            await spool.append(an_entry(f"{taken}"))
        except NotDurable as error:
            refused = error
            break
    assert refused is not None
    assert "limit" in refused.remedy
    assert 0 < spool.pending().bytes <= 4096

    sink = Sink()
    await spool.replay(sink.take)
    assert sink.identities == [f"{number}" for number in range(taken)]
    await spool.append(an_entry("after"))
    await spool.close()


async def test_the_limit_counts_the_files_of_every_process_and_what_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "spool-1-old.seg.corrupt").write_bytes(bytes(4000))
    spool = Spool(tmp_path, max_bytes=4096)

    with pytest.raises(NotDurable):
        await spool.append(an_entry("a"))
    await spool.close()


async def test_a_group_over_the_limit_is_told_apart_letter_by_letter(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=4096)
    outcomes = await asyncio.gather(
        spool.append(an_entry("small")),
        spool.append(an_entry("large", body=bytes(8192))),
        spool.append(an_entry("small too")),
        return_exceptions=True,
    )
    sink = Sink()
    await spool.replay(sink.take)
    await spool.close()

    assert [type(outcome) for outcome in outcomes] == [type(None), NotDurable, type(None)]
    assert sink.identities == ["small", "small too"]


async def test_writes_that_take_a_few_bytes_at_a_time_still_write_everything(spool: Spool) -> None:
    with armed("spool.write=short:7"):
        await spool.append(an_entry("a"))
        await spool.append(an_entry("b"))
    sink = Sink()

    assert await spool.replay(sink.take) == ReplayReport(replayed=2, corrupt=0)
    assert sink.entries == [an_entry("a"), an_entry("b")]


@pytest.mark.parametrize("point", ["spool.before_write", "spool.write"])
async def test_a_full_disk_is_not_durable_and_the_same_segment_goes_on_later(
    point: str, spool: Spool, tmp_path: Path
) -> None:
    await spool.append(an_entry("a"))
    with armed(f"{point}=enospc"), pytest.raises(NotDurable) as refused:
        await spool.append(an_entry("b"))
    assert "space" in refused.value.remedy
    await spool.append(an_entry("c"))
    assert len(segment_files(tmp_path / "spool")) == 1

    sink = Sink()
    assert await spool.replay(sink.take) == ReplayReport(replayed=2, corrupt=0)
    assert sink.identities == ["a", "c"]


async def test_f14_an_error_of_the_disk_while_writing_begins_a_new_segment(spool: Spool, tmp_path: Path) -> None:
    await spool.append(an_entry("a"))
    with armed("spool.write=eio"), pytest.raises(NotDurable):
        await spool.append(an_entry("b"))
    await spool.append(an_entry("c"))
    assert len(segment_files(tmp_path / "spool")) == 2

    sink = Sink()
    assert await spool.replay(sink.take) == ReplayReport(replayed=2, corrupt=0)
    assert sink.identities == ["a", "c"]


async def test_f14_a_failed_sync_makes_all_who_shared_it_not_durable_and_begins_a_new_segment(
    spool: Spool, tmp_path: Path
) -> None:
    await spool.append(an_entry("a"))
    with armed("spool.before_sync=eio"):
        outcomes = await asyncio.gather(
            spool.append(an_entry("b")), spool.append(an_entry("c")), return_exceptions=True
        )
    await spool.append(an_entry("d"))

    assert [type(outcome) for outcome in outcomes] == [NotDurable, NotDurable]
    assert len(segment_files(tmp_path / "spool")) == 2
    sink = Sink()
    await spool.replay(sink.take)
    assert {"a", "d"} <= set(sink.identities)


async def test_a_segment_in_which_nothing_became_durable_leaves_no_file(spool: Spool, tmp_path: Path) -> None:
    for _ in range(3):
        with armed("spool.before_sync=eio"), pytest.raises(NotDurable):
            await spool.append(an_entry("a"))
    await spool.append(an_entry("b"))

    assert len(segment_files(tmp_path / "spool")) == 1


async def test_a_fault_that_is_no_error_of_the_disk_is_not_durable_either(spool: Spool) -> None:
    with armed("spool.write=raise"), pytest.raises(NotDurable):
        await spool.append(an_entry("a"))
    await spool.append(an_entry("b"))


async def test_letters_are_not_written_into_a_segment_somebody_deleted(spool: Spool, tmp_path: Path) -> None:
    await spool.append(an_entry("deleted by hand"))
    for path in segment_files(tmp_path / "spool"):
        path.unlink()
    await spool.append(an_entry("after"))
    sink = Sink()
    await spool.replay(sink.take)

    assert sink.identities == ["after"]


async def test_a_folder_that_cannot_be_written_is_not_durable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    spool = Spool(tmp_path / "file" / "spool", max_bytes=MEGABYTE)

    with pytest.raises(NotDurable) as refused:
        await spool.append(an_entry("a"))
    assert "not acknowledged" in refused.value.remedy
    await spool.close()


async def test_damage_is_kept_before_its_segment_is_deleted(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=MEGABYTE)
    await spool.append(an_entry("a"))
    (segment,) = segment_files(tmp_path)
    with segment.open("ab") as file:
        file.write(b"half a record")

    with armed("spool.before_delete=raise"), pytest.raises(faults.FaultInjected):
        await spool.replay(Sink().take)
    assert segment.exists()
    corrupt = tmp_path / f"{segment.name}.corrupt"
    assert corrupt.read_bytes() == b"half a record"
    assert stat.S_IMODE(corrupt.stat().st_mode) == 0o600

    with capture_logs() as logs:
        assert await spool.replay(Sink().take) == ReplayReport(replayed=1, corrupt=1)
    assert [(line["log_level"], line["kept"], line["damaged_bytes"]) for line in logs] == [
        ("warning", corrupt.name, 13)
    ]
    assert corrupt.read_bytes() == b"half a record"
    assert spool.pending().corrupt == 1
    await spool.close()


async def test_a_segment_that_cannot_be_deleted_is_kept_for_the_next_replay(spool: Spool) -> None:
    await spool.append(an_entry("a"))
    with armed("spool.before_delete=eio"):
        assert await spool.replay(Sink().take) == ReplayReport(replayed=1, corrupt=0)

    assert await spool.replay(Sink().take) == ReplayReport(replayed=1, corrupt=0)
    assert await spool.replay(Sink().take) == ReplayReport(replayed=0, corrupt=0)


async def test_a_record_hidden_in_a_damaged_message_is_not_believed(tmp_path: Path) -> None:
    other_mark = bytes(range(16))
    forged = opening(other_mark) + encode_record(an_entry("forged"))
    spool = Spool(tmp_path, max_bytes=MEGABYTE)
    await spool.append(an_entry("real", body=forged))
    await spool.append(an_entry("next"))
    (segment,) = segment_files(tmp_path)
    data = bytearray(segment.read_bytes())
    data[30] ^= 1
    segment.write_bytes(data)
    sink = Sink()

    assert await spool.replay(sink.take) == ReplayReport(replayed=1, corrupt=1)
    assert sink.identities == ["next"]
    await spool.close()


async def test_times_in_other_zones_are_the_same_moments(spool: Spool) -> None:
    elsewhere = timezone(timedelta(hours=-3))
    entry = msgspec.structs.replace(an_entry("a"), at=NOON.astimezone(elsewhere))
    await spool.append(entry)
    sink = Sink()
    await spool.replay(sink.take)

    assert sink.entries == [entry]
