"""A person is found wherever the value stands in a letter, however it is written there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from redrive.dead_letter import DeadLetter
from redrive.erasure import Person
from redrive.failure import Raised
from redrive.privacy.maskers import UNMASKED
from redrive.testing.letters import a_failure, a_message
from support.whole_letters import a_whole_letter

CPF, WRITTEN, MAIL = "52998224725", "529.982.247-25", "ana.souza@example.com"


def caused_by(text: str) -> DeadLetter:
    failure = a_failure(1)
    root = Raised("ValueError", text, (), "cause")
    return a_whole_letter(failures=(replace(failure, chain=(root, *failure.chain)),), generations=(1,))


def with_message(**given: Any) -> DeadLetter:
    return a_whole_letter(a_message(**given))


@pytest.mark.parametrize(
    "letter",
    [
        with_message(body=b'{"cpf": "%s"}' % CPF.encode()),
        with_message(key=CPF.encode()),
        with_message(key=WRITTEN.encode()),
        with_message(headers=(("customer", CPF),)),
        with_message(headers=(("customer", WRITTEN.encode()),)),
        with_message(headers=(("customer", int(CPF)),)),
        with_message(headers=(("told", f"sent to {CPF} today"),)),
        with_message(headers=(("table", {"inner": [b"\xff", {"of": WRITTEN}]}),)),
        with_message(id=f"{CPF} 1"),
        with_message(source=CPF),
        with_message(properties=b"\x00\x0b" + CPF.encode() + b"\xce\x01"),
        caused_by(f"no customer {CPF}"),
    ],
    ids=[
        *("body", "key", "written key", "header", "bytes", "number", "among words", "table"),
        *("id", "source", "properties", "cause"),
    ],
)
def test_the_person_is_found_there(letter: DeadLetter) -> None:
    assert Person(CPF).is_in(letter, UNMASKED)


@pytest.mark.parametrize(
    "letter",
    [a_whole_letter(), with_message(key=b"52998224726"), with_message(headers=(("x", None), ("y", [1, {}])))],
)
def test_others_are_not_meant(letter: DeadLetter) -> None:
    assert not Person(CPF).is_in(letter, UNMASKED)


def test_an_address_is_the_same_in_capital_letters() -> None:
    assert Person(MAIL).is_in(with_message(key=MAIL.upper().encode()), UNMASKED)
    assert not Person(MAIL).is_in(with_message(key=b"jo" + MAIL.encode()), UNMASKED)


@pytest.mark.parametrize("given", [{"key": b"1000.2000"}, {"headers": (("customer", "1000-2000"),)}])
def test_a_number_that_nobody_masks_is_the_same_however_it_is_written(given: dict[str, Any]) -> None:
    assert Person("10002000").is_in(with_message(**given), UNMASKED)
