"""What is masked can be searched for by whoever knows it, and by nobody else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from redrive.message import Message
from redrive.privacy.blind_index import MOST, SIZE, BlindIndex
from redrive.privacy.masking import Masker
from redrive.privacy.rules import MaskingRules
from support import privacy_corpus

KEY = bytes(range(32))
INDEX = BlindIndex(KEY)
MASKER = Masker()


def _hashes(data: Any = None, **fields: Any) -> frozenset[bytes]:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return INDEX.hashes(Message.create(id="m", sent_at=at, queue="q", data=data, **fields), MASKER)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("529.982.247-25", "52998224725"),
        ("52998224725", " 529.982.247-25 "),
        (52998224725, "529.982.247-25"),
        ("Joao@Example.com", "joao@EXAMPLE.com"),
        ("call (11) 98765-4321 now", "+55 11 98765-4321"),
        ("+55 11 98765-4321", "(11) 98765-4321"),
        ("+5511987654321", "5511987654321"),
        ("12.ABC.345/01DE-35", "12abc34501de35"),
        ("4111 1111 1111 1111", "4111111111111111"),
        ("mail a\\u0040b.com", "a@b.com"),
        ("https://x.y/?m=a%40b.com", "a@b.com"),
    ],
)
def test_a_value_is_found_however_it_is_written_and_asked_for(written: Any, asked: str) -> None:
    found = _hashes({"x": [written]})
    assert INDEX.query(asked) & found
    assert not INDEX.query("somebody@else.com") & found


def test_hidden_fields_headers_and_keys_are_found_too() -> None:
    found = _hashes(
        {"senha": "Hunter2", "card": {"number": 7}, "name": "João"},
        headers=(("authorization", "abc"), ("x", ["a@b.com", {"token": 12}]), ("n", 52998224725)),
        key=b"529.982.247-25",
        metadata={"secret": "of metadata"},
    )
    for value in ("hunter2", "7", "abc", "A@b.com", "12", "52998224725", "of metadata"):
        assert INDEX.query(value) & found, value
    assert not INDEX.query("João") & found


def test_zeros_that_a_number_has_lost_do_not_matter() -> None:
    assert INDEX.query("012.345.678-90") & _hashes({"cpf": 1234567890})


def test_what_a_team_hides_is_found() -> None:
    message = Message(id="m", queue="q", sent_at=datetime.now(UTC), body='{"name": "João"}'.encode())
    assert INDEX.query("JOÃO") & INDEX.hashes(message, Masker(MaskingRules(hidden=(("name",),))))


@pytest.mark.parametrize("kind", ["cpf", "cnpj", "card", "e-mail", "phone", "jwt", "key"])
def test_every_value_of_the_corpus_is_found_by_itself(kind: str) -> None:
    missed = [each for each in privacy_corpus.planted(kind) if not INDEX.query(each.value) & _hashes([each.text])]
    assert len(missed) <= 8, missed[:3]


def test_hashes_need_the_key_and_say_nothing() -> None:
    found = _hashes({"cpf": "529.982.247-25"})
    assert {len(each) for each in found} == {SIZE}
    assert not BlindIndex(b"another key, which is as long").query("52998224725") & found
    assert "0102" not in repr(INDEX)
    with pytest.raises(ValueError, match="at least 16 bytes"):
        BlindIndex(b"short")


def test_no_message_makes_more_hashes_than_are_kept() -> None:
    found = _hashes([f"u{number}@example.com" for number in range(1000)])
    assert len(found) == MOST
    assert _hashes({"senha": "x" * 5000}) == frozenset()
    assert INDEX.query("") == frozenset()
