"""TH22: what is sealed opens in its place and nowhere else, and never as anything but what it was."""

from __future__ import annotations

import pickle
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.errors import KeyMissing, SealBroken
from redrive.privacy.encryption.envelope import (
    KEY_ID_BYTES,
    OVERHEAD,
    SECRET_BYTES,
    DataKey,
    Place,
    UsedUp,
    bound,
    joined,
    key_id_of,
)
from redrive.privacy.encryption.file_keys import NO_KEYS, FileKeys
from redrive.privacy.encryption.key_source import Wrapped
from redrive.privacy.encryption.local_keys import KeyEncryptionKey, LocalKeys
from support.sealing import KEY, OLD_KEY, OTHER_KEY, SEALING, SECRET

texts = st.text(st.characters(), max_size=30) | st.text(st.characters(categories=["Cs", "Cc"]), max_size=5)
places = st.builds(Place, texts, texts, st.integers(0, 2**63))
values = st.binary(max_size=300)
PLACE = Place("018f0000-0000-7000-8000-000000000003", "revisions.body", 1)


def a_data_key(first: int = 1, *, uses: int = 1000) -> DataKey:
    return DataKey(bytes([first]) * KEY_ID_BYTES, bytes([first]) * SECRET_BYTES, uses=uses)


@given(values, places)
def test_what_is_sealed_opens_in_its_place(value: bytes, place: Place) -> None:
    sealed = a_data_key().seal(value, place)

    assert a_data_key(uses=0).open(sealed, place) == value
    assert key_id_of(sealed) == a_data_key().id
    assert len(sealed) == len(value) + OVERHEAD


@given(values, places, places)
def test_it_opens_in_no_other_place(value: bytes, place: Place, other: Place) -> None:
    if other != place:
        with pytest.raises(SealBroken):
            a_data_key().open(a_data_key().seal(value, place), other)


@given(st.lists(st.binary(max_size=6), max_size=5), st.lists(st.binary(max_size=6), max_size=5))
def test_no_two_lists_of_parts_are_bound_to_the_same_bytes(parts: list[bytes], others: list[bytes]) -> None:
    assert (joined(*parts) == joined(*others)) == (parts == others)


def test_places_that_read_the_same_when_they_are_run_together_are_told_apart() -> None:
    alike = [
        Place("ab", "c", 1),
        Place("a", "bc", 1),
        Place("abc", "", 1),
        Place("", "abc1", 1),
        Place("ab", "c1", 1),
    ]
    alike += [Place("ab", "c", 11), Place("ab", "c1", 11)]
    assert len({bound(place, bytes(16)) for place in alike}) == len(alike)


def test_every_bit_of_a_sealed_value_counts() -> None:
    key = a_data_key()
    sealed = key.seal(b"12345678909", PLACE)
    for place, bit in product(range(len(sealed)), range(8)):
        changed = bytearray(sealed)
        changed[place] ^= 1 << bit
        with pytest.raises(SealBroken):
            key.open(bytes(changed), PLACE)


def test_a_sealed_value_that_is_cut_off_or_goes_on_is_broken() -> None:
    key = a_data_key()
    sealed = key.seal(b"12345678909", PLACE)
    for length in range(len(sealed)):
        with pytest.raises(SealBroken):
            key.open(sealed[:length], PLACE)
        with pytest.raises(SealBroken):
            key.open(sealed[length + 1 :], PLACE)
    with pytest.raises(SealBroken):
        key.open(sealed + b"\x00", PLACE)


@given(st.binary(max_size=200))
def test_whatever_the_bytes_are_they_are_broken_and_say_what_to_do(data: bytes) -> None:
    with pytest.raises(SealBroken) as told:
        a_data_key().open(data, PLACE)
    assert told.value.remedy


def test_values_of_two_rows_cannot_change_places() -> None:
    key = a_data_key()
    rows = {
        Place(letter, column, revision) for letter in "ab" for column in ("body", "key") for revision in (0, 1)
    }
    sealed = {place: key.seal(repr(place).encode(), place) for place in rows}
    for place, other in product(rows, rows):
        if place != other:
            with pytest.raises(SealBroken):
                key.open(sealed[other], place)


def test_another_key_opens_nothing_even_if_it_claims_the_same_id() -> None:
    sealed = a_data_key(1).seal(b"x", PLACE)
    for other in (a_data_key(2), DataKey(a_data_key(1).id, bytes([2]) * 32)):
        with pytest.raises(SealBroken):
            other.open(sealed, PLACE)


def test_the_same_value_is_never_sealed_the_same_way() -> None:
    key = a_data_key(uses=2000)
    sealed = [key.seal(b"x", PLACE) for _ in range(2000)]
    assert len({each[17:29] for each in sealed}) == 2000
    assert len(set(sealed)) == 2000


def test_a_key_seals_as_many_values_as_it_may_and_opens_any_number() -> None:
    key = a_data_key(uses=2)
    sealed = [key.seal(b"x", PLACE) for _ in range(2)]
    with pytest.raises(UsedUp):
        key.seal(b"x", PLACE)
    key.allow(1)
    sealed.append(key.seal(b"x", PLACE))
    assert key.left == 0
    assert [key.open(each, PLACE) for each in sealed] == [b"x"] * 3


def test_no_secret_is_shown() -> None:
    shown = f"{a_data_key()!r} {KEY!r} {LocalKeys([KEY])!r} {KEY.id}"
    assert SECRET.hex() not in shown
    assert SECRET.hex()[:16] not in shown
    assert repr(SECRET) not in shown
    assert KEY.id in repr(KEY)
    with pytest.raises(TypeError):
        pickle.dumps(a_data_key())


# Keys of files


def test_the_key_of_a_file_opens_as_that_of_its_purpose_alone() -> None:
    key = SEALING.new("spool")
    sealed = key.seal(b"x", of="a", number=1)
    again = SEALING.read("spool", key.header)
    assert again.open(sealed, of="a", number=1) == b"x"
    for other in ({"of": "b", "number": 1}, {"of": "a", "number": 2}):
        with pytest.raises(SealBroken):
            again.open(sealed, **other)  # type: ignore[arg-type]  # as they are
    with pytest.raises(SealBroken):
        SEALING.read("archive", key.header)


def test_every_bit_of_the_header_of_a_file_counts() -> None:
    header = SEALING.new("spool").header
    for place, bit in product(range(len(header)), range(8)):
        changed = bytearray(header)
        changed[place] ^= 1 << bit
        with pytest.raises((SealBroken, KeyMissing)):
            SEALING.read("spool", bytes(changed))
    for length in range(len(header)):
        with pytest.raises(SealBroken):
            SEALING.read("spool", header[:length])
    with pytest.raises(SealBroken):
        SEALING.read("spool", header + b"\x00")


def test_whoever_has_no_key_neither_seals_nor_opens() -> None:
    with pytest.raises(KeyMissing):
        NO_KEYS.new("spool")
    with pytest.raises(KeyMissing, match=KEY.id):
        NO_KEYS.read("spool", SEALING.new("spool").header)
    with pytest.raises(ValueError, match="needs a key"):
        FileKeys(seals=True)


# Wrapping


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=60), st.binary(max_size=60))
def test_what_is_wrapped_unwraps_in_its_context_alone(secret: bytes, context: bytes, other: bytes) -> None:
    wrapped = LocalKeys([KEY, OLD_KEY]).wrap(secret, context)

    assert wrapped.kek_id == KEY.id
    assert secret not in wrapped.data
    assert LocalKeys([OLD_KEY, KEY]).unwrap(wrapped, context) == secret
    if other != context:
        with pytest.raises(SealBroken):
            LocalKeys([KEY]).unwrap(wrapped, other)


def test_every_bit_of_a_wrapped_key_counts() -> None:
    wrapped = KEY.wrap(bytes(32), b"c")
    for place, bit in product(range(len(wrapped.data)), range(8)):
        changed = bytearray(wrapped.data)
        changed[place] ^= 1 << bit
        with pytest.raises(SealBroken):
            KEY.unwrap(bytes(changed), b"c")
    for length in range(len(wrapped.data)):
        with pytest.raises(SealBroken):
            KEY.unwrap(wrapped.data[:length], b"c")


def test_a_key_that_is_not_known_is_named_and_those_that_are() -> None:
    with pytest.raises(KeyMissing) as told:
        LocalKeys([KEY, OLD_KEY]).unwrap(OTHER_KEY.wrap(bytes(32), b""), b"")
    assert told.value.kek_id == OTHER_KEY.id
    assert all(each.id in str(told.value) for each in (KEY, OLD_KEY, OTHER_KEY))
    assert "old_keys" in told.value.remedy


def test_one_that_claims_to_be_wrapped_by_another_key_is_broken() -> None:
    wrapped = OLD_KEY.wrap(bytes(32), b"")
    with pytest.raises(SealBroken):
        LocalKeys([KEY]).unwrap(Wrapped(KEY.id, wrapped.data), b"")


def test_without_any_key_nothing_is_wrapped() -> None:
    for ask in (lambda: LocalKeys().current, lambda: LocalKeys().wrap(bytes(32), b"")):
        with pytest.raises(KeyMissing, match="no key is set"):
            ask()


def test_ids_tell_keys_apart_and_never_change() -> None:
    assert len({KEY.id, OLD_KEY.id, OTHER_KEY.id}) == 3
    assert KeyEncryptionKey(SECRET).id == "0da61a14ec127785"  # what is sealed on disks names it
    with pytest.raises(ValueError, match="32 bytes"):
        KeyEncryptionKey(b"short")
