"""TH22: archives with encryption on. Nothing of a letter is in the file, every kind of damage and tampering is
found, and a missing key is told as that.
"""

from __future__ import annotations

import io
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.dead_letter import DeadLetter
from redrive.errors import CorruptFile, KeyMissing
from redrive.imports import Bad, Found, read
from redrive.privacy.encryption.file_keys import NO_KEYS, FileKeys
from redrive.privacy.encryption.local_keys import LocalKeys
from redrive.testing.letters import a_message
from redrive.upkeep import archive_sealing
from redrive.upkeep.archive import Archive, NewArchive, newest_first
from redrive.upkeep.archive_checking import SoundArchive, check_archive
from redrive.upkeep.archive_file import read_archive
from redrive.upkeep.archive_sealing import DamagedSeal, SealedWriter, sealed_by, unsealed
from support.private_letters import canaries
from support.sealing import KEY, OF_OTHERS, OLD_KEY, SEALING
from support.whole_letters import a_whole_letter

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SEAL_ONLY = "archive"


def written(folder: Path, *letters: DeadLetter, keys: FileKeys = SEALING) -> NewArchive:
    archive = Archive(folder, keys)
    with archive.alone():
        file = archive.begin(NOON, by="redrive test")
        for letter in letters:
            assert file.add(letter)
        file.finish()
        file.abandon()
    return file


def test_what_is_sealed_is_read_back_in_its_order(tmp_path: Path) -> None:
    letters = [a_whole_letter() for _ in range(3)]
    file = written(tmp_path, *letters)
    file.read_back()

    assert list(read_archive(file.path, SEALING)) == letters
    assert list(Archive(tmp_path, SEALING).read(file.path)) == letters
    assert Archive(tmp_path).files() == [file.path]
    assert file.path.name.endswith(".jsonl.gz.sealed")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert check_archive(file.path, SEALING) == SoundArchive(file.path, 3, KEY.id)


def test_no_canary_is_in_any_byte_of_the_file(tmp_path: Path) -> None:
    planted = canaries(200)
    letters = [_letter_with(each.value) for each in planted]
    file = written(tmp_path, *letters)

    plain = unsealed(io.BytesIO(file.path.read_bytes()), SEALING).read()
    assert plain.startswith(b"\x1f\x8b"), "gzip is under the seal"
    lying = file.path.read_bytes()
    assert [each for each in planted if each.value.encode() in lying] == []
    assert plain not in lying
    assert not any(plain[at : at + 16] in lying for at in range(0, len(plain) - 16, 512))
    assert list(read_archive(file.path, SEALING)) == letters


def test_no_canary_is_in_a_sealed_stream_that_is_not_packed_either() -> None:
    planted = canaries(200)
    plain = "\n".join(each.value for each in planted).encode() * 20
    lying = sealed_stream(plain)
    assert [each for each in planted if each.value.encode() in lying] == []
    assert unsealed(io.BytesIO(lying), SEALING).read() == plain


def _letter_with(value: str) -> DeadLetter:
    message = a_message(body=value.encode(), headers=(("h", value),), key=value.encode())
    return a_whole_letter(message, text=f"refused: {value}")


# Plain and sealed, and keys


def test_plain_archives_of_before_are_read_by_who_seals(tmp_path: Path) -> None:
    letter = a_whole_letter()
    file = written(tmp_path, letter, keys=NO_KEYS)

    assert list(read_archive(file.path, SEALING)) == [letter]
    assert check_archive(file.path, SEALING).kek_id is None


def test_plain_and_sealed_ones_lie_in_one_folder_in_the_order_of_their_time(tmp_path: Path) -> None:
    name = "letters-2026030{}T000000Z-018f0000-0000-7000-8000-000000000003.jsonl.gz{}"
    paths = [
        tmp_path / name.format(1, ".sealed"),
        tmp_path / name.format(3, ""),
        tmp_path / name.format(2, ".sealed"),
    ]
    assert newest_first(paths) == [paths[1], paths[2], paths[0]]


def test_what_an_older_key_sealed_is_read_beside_the_new_one(tmp_path: Path) -> None:
    letter = a_whole_letter()
    file = written(tmp_path, letter, keys=FileKeys(LocalKeys([OLD_KEY]), seals=True))

    assert list(read_archive(file.path, FileKeys(LocalKeys([KEY, OLD_KEY])))) == [letter]
    assert check_archive(file.path, FileKeys(LocalKeys([KEY, OLD_KEY]))).kek_id == OLD_KEY.id


@pytest.mark.parametrize("keys", [NO_KEYS, OF_OTHERS], ids=["no key", "another key"])
def test_without_its_key_an_archive_is_told_to_be_sealed_and_not_to_be_damaged(
    keys: FileKeys, tmp_path: Path
) -> None:
    file = written(tmp_path, a_whole_letter())

    with pytest.raises(KeyMissing, match=KEY.id) as told:
        list(read_archive(file.path, keys))

    assert str(file.path) in str(told.value)
    assert "old_keys" in told.value.remedy
    assert file.path.exists()
    [bad] = read(io.BytesIO(file.path.read_bytes()), keys=keys)
    assert isinstance(bad, Bad)
    assert KEY.id in bad.why
    assert "old_keys" in bad.why


def test_a_sealed_archive_is_imported_as_it_was(tmp_path: Path) -> None:
    letters = [a_whole_letter() for _ in range(3)]
    file = written(tmp_path, *letters)
    found = list(read(io.BytesIO(file.path.read_bytes()), keys=SEALING))

    assert [each.letter for each in found if isinstance(each, Found)] == letters
    assert len(found) == 3


def test_an_archive_that_reads_back_differently_is_set_aside(tmp_path: Path) -> None:
    file = written(tmp_path, a_whole_letter())
    other = written(tmp_path / "other", a_whole_letter())
    file.path.write_bytes(other.path.read_bytes())

    with pytest.raises(CorruptFile, match="does not hold what was written"):
        file.read_back()
    assert Archive(tmp_path).files() == []


def test_the_file_is_whole_before_it_is_synced_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(tmp_path, SEALING)
    file = archive.begin(NOON, by="test")
    file.add(a_whole_letter())
    seen: list[int] = []
    real = os.fsync

    def sync(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            seen.append(os.fstat(descriptor).st_size)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    file.finish()
    assert seen == [file.path.stat().st_size]


def test_one_that_is_abandoned_leaves_nothing(tmp_path: Path) -> None:
    file = Archive(tmp_path, SEALING).begin(NOON, by="test")
    file.add(a_whole_letter())
    file.abandon()
    file.abandon()
    assert list(tmp_path.iterdir()) == []


# Damage and tampering


def sealed_stream(data: bytes, keys: FileKeys = SEALING, piece: int | None = None) -> bytes:
    file = io.BytesIO()
    writer = SealedWriter(file, keys.new(SEAL_ONLY))
    for at in range(0, len(data), piece or len(data) or 1):
        writer.write(data[at : at + (piece or len(data))])
    writer.finish()
    return file.getvalue()


@given(st.binary(max_size=400), st.integers(1, 60), st.integers(1, 50))
def test_whatever_is_written_in_whatever_portions_is_read(data: bytes, portion: int, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive_sealing, "PIECE_BYTES", piece)
        sealed = sealed_stream(data, piece=portion)
        assert unsealed(io.BytesIO(sealed), SEALING).read() == data
        assert sealed_by(io.BytesIO(sealed)) == KEY.id


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A stream of five pieces."""
    monkeypatch.setattr(archive_sealing, "PIECE_BYTES", 10)
    return sealed_stream(DATA)


DATA = b"0123456789abcdefghijABCDEFGHIJ9876543210end"
HEAD = 4 + 1 + 4 + 2 + 1 + 16 + 16 + 2 + 60


def pieces_of(sealed: bytes) -> list[bytes]:
    found, at = [], HEAD
    while at < len(sealed):
        end = at + 5 + int.from_bytes(sealed[at + 1 : at + 5])
        found.append(sealed[at:end])
        at = end
    return found


def test_every_bit_counts(small_pieces: bytes) -> None:
    assert len(pieces_of(small_pieces)) == 5
    for place in range(len(small_pieces)):
        for bit in range(8):
            data = bytearray(small_pieces)
            data[place] ^= 1 << bit
            found, damaged = _read_until_damage(bytes(data))
            assert damaged, place
            assert DATA.startswith(found), place


def test_it_cannot_be_cut_off_anywhere(small_pieces: bytes) -> None:
    for length in range(len(small_pieces)):
        found, damaged = _read_until_damage(small_pieces[:length])
        assert damaged, length
        assert DATA.startswith(found), length


def _read_until_damage(data: bytes) -> tuple[bytes, bool]:
    """What is given out before somebody finds that it is damaged."""
    found = b""
    try:
        stream = unsealed(io.BytesIO(data), SEALING)
        while part := stream.read1(10):  # type: ignore[attr-defined]  # it is buffered
            found += part
    except DamagedSeal:
        return found, True
    return found, False


def test_no_piece_can_be_moved_repeated_left_out_or_come_from_elsewhere(small_pieces: bytes) -> None:
    head, own = small_pieces[:HEAD], pieces_of(small_pieces)
    other = pieces_of(sealed_stream(DATA))
    rebuilt = [
        *([*own[:at], *own[at + 1 :]] for at in range(5)),
        *([*own[:at], own[at], *own[at:]] for at in range(5)),
        *([*own[:at], own[at + 1], own[at], *own[at + 2 :]] for at in range(4)),
        *([*own[:at], other[at], *own[at + 1 :]] for at in range(5)),
        [*own[:-1], b"p" + own[-1][1:]],  # the end, as if it went on
        [*own[:2], b"e" + own[2][1:]],  # an earlier piece, as if it were the end
        [*own, own[-1]],
        [*own, b"\x00"],
        [],
    ]
    for pieces in rebuilt:
        found, damaged = _read_until_damage(head + b"".join(pieces))
        assert damaged
        assert DATA.startswith(found)


def test_the_header_of_another_file_does_not_open_it(small_pieces: bytes) -> None:
    other = sealed_stream(DATA)
    assert _read_until_damage(other[:HEAD] + small_pieces[HEAD:]) == (b"", True)


def test_a_piece_that_claims_to_be_huge_fills_no_memory(small_pieces: bytes) -> None:
    class Watched(io.BytesIO):
        most = 0

        def read(self, size: int | None = -1) -> bytes:
            self.most = max(self.most, size or 0)
            return super().read(size)

    huge = Watched(small_pieces[:HEAD] + b"p" + b"\xff\xff\xff\xff" + b"x" * 100)
    with pytest.raises(DamagedSeal):
        unsealed(huge, SEALING).read()
    assert huge.most < 1000


@given(st.binary(max_size=200))
def test_whatever_the_bytes_are_nothing_but_damage_or_a_missing_key_comes_of_it(data: bytes) -> None:
    for begun in (data, archive_sealing.MAGIC + data, archive_sealing.MAGIC + b"\x01" + data):
        with pytest.raises((DamagedSeal, KeyMissing)):
            unsealed(io.BytesIO(begun), SEALING).read()
        assert all(isinstance(each, Bad) for each in read(io.BytesIO(archive_sealing.MAGIC + data), keys=SEALING))


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.01, 0.3, 0.9, 0.9999])
def test_a_file_that_is_cut_off_is_named_and_its_sound_letters_can_be_imported(
    tmp_path: Path, kept: float
) -> None:
    letters = [a_whole_letter(text=os.urandom(3000).hex()) for _ in range(60)]
    file = written(tmp_path, *letters)
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[: int(len(whole) * kept)])

    with pytest.raises(CorruptFile, match=file.path.name):
        list(read_archive(file.path, SEALING))
    found = list(read(io.BytesIO(file.path.read_bytes()), keys=SEALING))
    taken = [each.letter for each in found if isinstance(each, Found)]
    assert taken == letters[: len(taken)]
    assert len(taken) < 60
    assert len(taken) > 20 or kept < 0.9
    assert kept == 0 or any(isinstance(each, Bad) for each in found)


def test_a_flipped_bit_anywhere_in_a_file_is_found_when_it_is_checked(tmp_path: Path) -> None:
    file = written(tmp_path, a_whole_letter(), a_whole_letter())
    whole = file.path.read_bytes()
    for place in range(0, len(whole), 7):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        file.path.write_bytes(data)
        with pytest.raises(CorruptFile, match=file.path.name):
            check_archive(file.path, SEALING)


def test_letters_keep_all_their_fields(tmp_path: Path) -> None:
    letter = a_whole_letter()
    file = written(tmp_path, letter)
    [found] = read_archive(file.path, SEALING)
    assert msgspec.structs.asdict(found) == msgspec.structs.asdict(letter)
