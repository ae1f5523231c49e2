"""TH22: a spool with encryption on. Nothing of a letter is in its files, damage is found as in a plain one, and
what cannot be opened is kept.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import pytest
from structlog.testing import capture_logs

from redrive.dead_letter import Entry
from redrive.errors import KeyMissing, NotDurable, Unreachable
from redrive.failure import Failure, FailureKind, Frame, Raised
from redrive.privacy.encryption.file_keys import NO_KEYS, FileKeys
from redrive.privacy.encryption.key_source import Wrapped
from redrive.privacy.encryption.local_keys import LocalKeys
from redrive.upkeep.spool import ReplayReport, Spool
from redrive.upkeep.spool_record import OPENING_BYTES, encode_record, opening, scan
from redrive.upkeep.spool_segment import SEGMENT_BYTES
from support.private_letters import canaries
from support.sealing import KEY, OF_OTHERS, OLD_KEY, SEALING
from support.spooled import MEGABYTE, NOON, Sink, an_entry, files, segment_files

ENTRIES = [an_entry("first", body=None), an_entry("second", body=b""), an_entry("third", body=b"\x00\xff")]


class Written(NamedTuple):
    path: Path
    mark: bytes
    records: list[bytes]

    @property
    def data(self) -> bytes:
        return b"".join(self.records)

    def hit(self, place: int) -> int:
        """The record that has the byte at that place."""
        return sum(len(b"".join(self.records[: number + 1])) <= place for number in range(len(self.records)))


async def written(folder: Path, entries: list[Entry], keys: FileKeys = SEALING) -> Written:
    spool, sizes = Spool(folder, max_bytes=64 * MEGABYTE, keys=keys), [0]
    for entry in entries:
        await spool.append(entry)
        sizes.append(spool.pending().bytes)
    await spool.close()
    (path,) = segment_files(folder)
    data = path.read_bytes()
    mark = data[OPENING_BYTES - 16 : OPENING_BYTES]
    return Written(path, mark, [data[begin:end] for begin, end in pairwise(sizes)])


async def replayed(folder: Path, keys: FileKeys = SEALING) -> tuple[list[Entry], ReplayReport]:
    spool, sink = Spool(folder, max_bytes=64 * MEGABYTE, keys=keys), Sink()
    report = await spool.replay(sink.take)
    await spool.close()
    return sink.entries, report


async def test_what_was_sealed_is_replayed_and_gone(tmp_path: Path) -> None:
    await written(tmp_path, ENTRIES)

    assert await replayed(tmp_path) == (ENTRIES, ReplayReport(3, 0))
    assert files(tmp_path) == []


async def test_a_version_that_knows_plain_segments_alone_does_not_take_a_sealed_one_for_damage(
    tmp_path: Path,
) -> None:
    sealed = await written(tmp_path, ENTRIES)

    assert not sealed.path.name.endswith(".seg"), "what it looks for"
    spool = Spool(tmp_path, max_bytes=MEGABYTE)
    assert (spool.pending().segments, spool.pending().bytes) == (1, len(sealed.data))
    await spool.close()


async def test_no_canary_is_in_any_byte_of_the_files(tmp_path: Path) -> None:
    planted = canaries(200)
    entries = [_entry_with(each.value) for each in planted]
    plain = await written(tmp_path / "plain", entries, NO_KEYS)
    sealed = await written(tmp_path / "sealed", entries)

    lying = sealed.path.read_bytes() + b"".join(path.name.encode() for path in files(tmp_path / "sealed"))
    assert [each for each in planted if each.value.encode() not in plain.data] == [], "they are looked for rightly"
    assert [each for each in planted if each.value.encode() in lying] == []
    assert [word for word in (b"orders", b"charge", b"ValueError", b"identity") if word in lying] == []
    assert (await replayed(tmp_path / "sealed"))[0] == entries


def _entry_with(value: str) -> Entry:
    told = Raised("ValueError", f"refused: {value}", (Frame("shop.py", 3, "charge", f"pay({value})", own=True),))
    failure = Failure(attempt=1, at=NOON, kind=FailureKind.PERMANENT, handler="charge", chain=(told,))
    bare = an_entry(
        f"id/{value}", body=json.dumps({"v": value}).encode(), headers=(("h", value),), key=value.encode()
    )
    return Entry(**{name: getattr(bare, name) for name in Entry.__struct_fields__} | {"failures": (failure,)})


async def test_each_segment_has_a_key_of_its_own(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=64 * MEGABYTE, keys=SEALING)
    for number in range(4):
        await spool.append(an_entry(f"{number}", body=bytes(SEGMENT_BYTES // 2 + 1)))
    await spool.close()

    first, second = (path.read_bytes() for path in segment_files(tmp_path))
    header = slice(OPENING_BYTES + 12, OPENING_BYTES + 12 + 95)
    assert first[header].startswith(b"\x10" + KEY.id.encode())
    assert second[header].startswith(b"\x10" + KEY.id.encode())
    assert first[header] != second[header]
    assert (await replayed(tmp_path))[1] == ReplayReport(4, 0)


# Plain and sealed


async def test_plain_segments_of_before_are_read_by_who_seals(tmp_path: Path) -> None:
    await written(tmp_path, ENTRIES[:1], NO_KEYS)
    both = Spool(tmp_path, max_bytes=MEGABYTE, keys=SEALING)
    await both.append(ENTRIES[1])
    await both.close()

    assert await replayed(tmp_path) == (ENTRIES[:2], ReplayReport(2, 0))


async def test_sealed_segments_are_read_when_encryption_is_off_again(tmp_path: Path) -> None:
    await written(tmp_path, ENTRIES)
    off = FileKeys(LocalKeys([KEY]), seals=False)
    spool = Spool(tmp_path, max_bytes=MEGABYTE, keys=off)
    await spool.append(an_entry("plain"))
    await spool.close()
    assert b"plain" in segment_files(tmp_path)[1].read_bytes()

    assert [entry.identity for entry in (await replayed(tmp_path, off))[0]] == [
        "first",
        "second",
        "third",
        "plain",
    ]


async def test_what_an_older_key_sealed_is_read_beside_the_new_one(tmp_path: Path) -> None:
    await written(tmp_path, ENTRIES, FileKeys(LocalKeys([OLD_KEY]), seals=True))

    assert await replayed(tmp_path, FileKeys(LocalKeys([KEY, OLD_KEY]), seals=True)) == (
        ENTRIES,
        ReplayReport(3, 0),
    )


@pytest.mark.parametrize("keys", [NO_KEYS, OF_OTHERS], ids=["no key", "another key"])
async def test_without_its_key_a_segment_is_kept_as_it_is_and_told(keys: FileKeys, tmp_path: Path) -> None:
    sealed = await written(tmp_path, ENTRIES)

    with capture_logs() as logs:
        assert await replayed(tmp_path, keys) == ([], ReplayReport(0, 0))

    assert files(tmp_path) == [sealed.path], "neither deleted nor taken for damage"
    assert sealed.path.read_bytes() == sealed.data
    [line] = logs
    assert (line["log_level"], line["segment"]) == ("warning", sealed.path.name)
    assert KEY.id in line["error"]
    assert await replayed(tmp_path) == (ENTRIES, ReplayReport(3, 0))


async def test_a_segment_whose_key_is_missing_holds_up_no_other(tmp_path: Path) -> None:
    await written(tmp_path, ENTRIES[:1], OF_OTHERS)
    both = Spool(tmp_path, max_bytes=MEGABYTE, keys=SEALING)
    await both.append(ENTRIES[1])
    await both.close()

    assert (await replayed(tmp_path))[0] == ENTRIES[1:2]
    assert len(segment_files(tmp_path)) == 1


# Not durable


class NoAnswer(LocalKeys):
    def wrap(self, _secret: bytes, _context: bytes) -> Wrapped:
        raise Unreachable("the key service does not answer", remedy="bring the key service back")


async def test_without_a_key_to_seal_with_nothing_is_called_durable_nor_written_in_plain(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=MEGABYTE, keys=FileKeys(NoAnswer([KEY]), seals=True))

    with pytest.raises(NotDurable, match="key service") as told:
        await spool.append(an_entry("a"))
    await spool.close()

    assert told.value.remedy.startswith("bring the key service back")
    assert files(tmp_path) == []


async def test_the_limit_counts_what_lies_on_the_disk(tmp_path: Path) -> None:
    size = len((await written(tmp_path / "one", ENTRIES[:1])).data)
    spool = Spool(tmp_path / "spool", max_bytes=3 * size - 1, keys=SEALING)
    for _ in range(2):
        await spool.append(ENTRIES[0])
    with pytest.raises(NotDurable, match="no room"):
        await spool.append(ENTRIES[0])
    assert spool.pending().bytes == 2 * size
    await spool.close()


# Damage: as in a plain spool


async def test_cut_at_every_length_every_whole_record_is_read(tmp_path: Path) -> None:
    segment = await written(tmp_path, ENTRIES)
    for length in range(len(segment.data)):
        found = scan(segment.data[:length], segment.mark, SEALING)
        whole = segment.hit(length)
        assert found.entries == ENTRIES[:whole], length
        assert b"".join(found.damage) == segment.data[:length][len(b"".join(segment.records[:whole])) :], length


async def test_with_a_bit_flipped_in_every_byte_the_other_records_are_read_and_the_bad_one_kept(
    tmp_path: Path,
) -> None:
    segment = await written(tmp_path, ENTRIES)
    for place in range(len(segment.data)):
        hit = segment.hit(place)
        data = bytearray(segment.data)
        data[place] ^= 1 << place % 8
        found = scan(bytes(data), segment.mark, SEALING)
        assert found.entries == [entry for number, entry in enumerate(ENTRIES) if number != hit], place
        assert sum(map(len, found.damage)) == len(segment.records[hit]), place


async def test_with_any_byte_taken_out_the_other_records_are_read(tmp_path: Path) -> None:
    segment = await written(tmp_path, ENTRIES)
    for place in range(len(segment.data)):
        same = len(segment.data) - len(segment.data[place:].lstrip(segment.data[place : place + 1]))
        hit = segment.hit(same - 1)  # of equal bytes it is as if the last one were gone, be it another record's
        found = scan(segment.data[:place] + segment.data[place + 1 :], segment.mark, SEALING)
        assert found.entries == [entry for number, entry in enumerate(ENTRIES) if number != hit], place


async def test_damage_is_kept_sealed_and_the_others_are_replayed(tmp_path: Path) -> None:
    segment = await written(tmp_path, ENTRIES)
    torn = segment.records[1][:-20]
    segment.path.write_bytes(segment.records[0] + torn + segment.records[2])

    with capture_logs():
        assert await replayed(tmp_path) == ([ENTRIES[0], ENTRIES[2]], ReplayReport(2, 1))
    [kept] = files(tmp_path)
    assert kept.read_bytes() == torn


# Tampering: by somebody who knows the format and makes the checksums fit


def _with_checksum(record: bytes) -> bytes:
    checksum = int(google_crc32c.value(record[OPENING_BYTES + 4 :])).to_bytes(4)
    return record[:OPENING_BYTES] + checksum + record[OPENING_BYTES + 4 :]


async def test_whatever_is_changed_under_a_fitting_checksum_is_never_replayed_as_something_else(
    tmp_path: Path,
) -> None:
    segment = await written(tmp_path, ENTRIES[:1])
    [record] = segment.records
    for place in range(OPENING_BYTES + 4, len(record)):
        changed = bytearray(record)
        changed[place] ^= 1 << place % 8
        try:
            found = scan(_with_checksum(bytes(changed)), segment.mark, SEALING)
        except KeyMissing:
            assert place < OPENING_BYTES + 12 + 17, "its key's id was changed"
            continue
        assert found.entries == [], place
        assert sum(map(len, found.damage)) == len(record), place


async def test_a_record_carried_into_another_segment_is_not_believed(tmp_path: Path) -> None:
    one, other = [await written(tmp_path / name, ENTRIES) for name in ("one", "other")]
    carried = opening(other.mark, sealed=True) + one.records[0][OPENING_BYTES:]

    found = scan(carried + other.data, other.mark, SEALING)

    assert found.entries == ENTRIES
    assert found.damage == [carried]


async def test_a_body_of_one_record_under_the_header_of_another_is_not_believed(tmp_path: Path) -> None:
    one, other = [await written(tmp_path / name, ENTRIES[:1]) for name in ("one", "other")]
    header = slice(OPENING_BYTES + 12, OPENING_BYTES + 12 + 95)
    mixed = bytearray(one.records[0])
    mixed[header] = other.records[0][header]

    found = scan(_with_checksum(bytes(mixed)), one.mark, SEALING)

    assert (found.entries, len(found.damage)) == ([], 1)


def test_a_plain_record_that_claims_to_be_sealed_is_damage() -> None:
    mark = bytes(16)
    record = opening(mark, sealed=True) + encode_record(an_entry("a"))

    assert scan(record, mark, SEALING).damage == [record]
