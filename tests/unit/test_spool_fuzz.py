"""F15: a spool of three records with its bytes cut and flipped at every place."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from redrive.dead_letter import Entry
from redrive.upkeep.spool import ReplayReport, Spool
from redrive.upkeep.spool_record import MARK_BYTES, OPENING_BYTES, scan
from support.spooled import MEGABYTE, Sink, an_entry, files, segment_files

ENTRIES = [an_entry("first", body=None), an_entry("second", body=b""), an_entry("third", body=b"\x00\xff")]


class Segment(NamedTuple):
    name: str
    records: list[bytes]

    @property
    def data(self) -> bytes:
        return b"".join(self.records)

    @property
    def ends(self) -> list[int]:
        return list(accumulate(map(len, self.records)))


class Replayed(NamedTuple):
    entries: list[Entry]
    report: ReplayReport
    corrupt: bytes
    left: list[Path]


@pytest.fixture
async def segment(tmp_path: Path) -> Segment:
    """Written by the spool itself, and cut where its records end."""
    folder = tmp_path / "whole"
    spool = Spool(folder, max_bytes=MEGABYTE)
    sizes = [0]
    for entry in ENTRIES:
        await spool.append(entry)
        sizes.append(spool.pending().bytes)
    await spool.close()
    (path,) = segment_files(folder)
    data = path.read_bytes()
    return Segment(path.name, [data[begin:end] for begin, end in pairwise(sizes)])


async def replay(folder: Path, name: str, data: bytes) -> Replayed:
    """What a spool makes of a dead process's segment, twice: the second time there is nothing left to do."""
    plant(folder / name, data)
    spool, sink = Spool(folder, max_bytes=MEGABYTE), Sink()
    report = await spool.replay(sink.take)
    assert await spool.replay(sink.take) == ReplayReport(0, 0)
    await spool.close()
    kept = folder / f"{name}.corrupt"
    corrupt = kept.read_bytes() if kept.exists() else b""
    kept.unlink(missing_ok=True)
    return Replayed(sink.entries, report, corrupt, files(folder))


def plant(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


async def test_cut_at_every_length_every_whole_record_is_replayed_once_and_the_torn_one_kept(
    segment: Segment, tmp_path: Path
) -> None:
    for length in range(len(segment.data) + 1):
        whole = sum(end <= length for end in segment.ends)
        torn = segment.data[:length][([0, *segment.ends])[whole] :]

        found = await replay(tmp_path / "cut", segment.name, segment.data[:length])

        assert found.entries == ENTRIES[:whole], length
        assert found.corrupt == torn, length
        assert found.report == ReplayReport(whole, 1 if torn else 0), length
        assert found.left == [], length


async def test_with_a_bit_flipped_in_every_byte_the_other_records_are_replayed_once_and_the_bad_one_kept(
    segment: Segment, tmp_path: Path
) -> None:
    for place in range(len(segment.data)):
        hit = sum(end <= place for end in segment.ends)
        data = bytearray(segment.data)
        data[place] ^= 1 << place % 8
        bad = bytes(data[([0, *segment.ends])[hit] : segment.ends[hit]])

        found = await replay(tmp_path / "flipped", segment.name, bytes(data))

        assert found.entries == [entry for number, entry in enumerate(ENTRIES) if number != hit], place
        assert found.corrupt == bad, place
        assert found.report == ReplayReport(2, 1), place
        assert found.left == [], place


def test_with_any_byte_taken_out_the_other_records_are_found(segment: Segment) -> None:
    mark = segment.data[OPENING_BYTES - MARK_BYTES : OPENING_BYTES]
    for place in range(len(segment.data)):
        hit = sum(end <= place for end in segment.ends)

        found = scan(segment.data[:place] + segment.data[place + 1 :], mark)

        assert found.entries == [entry for number, entry in enumerate(ENTRIES) if number != hit], place
        assert len(b"".join(found.damage)) == len(segment.records[hit]) - 1, place


@pytest.mark.parametrize("filler", [b"\x00" * 4096, b"\xd7RSP" * 100, b"\xff"])
async def test_garbage_between_the_records_is_kept_and_hides_none_of_them(
    filler: bytes, segment: Segment, tmp_path: Path
) -> None:
    first, second, third = segment.records
    data = filler + first + filler + second + filler + third + filler

    found = await replay(tmp_path / "garbage", segment.name, data)

    assert found.entries == ENTRIES
    assert found.corrupt == filler * 4
    assert found.report == ReplayReport(3, 4)


async def test_a_segment_of_garbage_alone_is_kept_and_blocks_nobody(segment: Segment, tmp_path: Path) -> None:
    garbage = "spool-1-00000000-0000-7000-8000-000000000000.seg"
    plant(tmp_path / "both" / segment.name, segment.data)

    found = await replay(tmp_path / "both", garbage, b"not a spool at all")

    assert found.entries == ENTRIES
    assert found.corrupt == b"not a spool at all"
