"""What detectors find, by a corpus of 400 values of each kind, and what they leave alone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from redrive.privacy import detectors
from redrive.privacy.check_digits import is_card, is_cnpj, is_cpf
from redrive.privacy.masking import Masker
from support import privacy_corpus as corpus

RECALL = 0.98
MASKER = Masker()


def masked(body: str) -> str:
    shown = MASKER.payload(body.encode())
    assert shown is not None
    return shown.decode()


def share_masked(shown: Iterator[tuple[str, str]]) -> float:
    """Of values and the texts in which they must not be seen."""
    seen = [value in text for value, text in shown]
    assert len(seen) >= corpus.PER_KIND
    return 1 - sum(seen) / len(seen)


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_recall_in_texts(kind: str) -> None:
    shown = [(each.value, MASKER.text(each.text)) for each in corpus.planted(kind)]
    assert share_masked(iter(shown)) >= RECALL
    assert sum(f"[{kind}]" in text for _, text in shown) / len(shown) >= 0.97


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_recall_in_json_however_its_strings_are_escaped(kind: str) -> None:
    dice = corpus.seeded(kind)
    texts = ((each.value, corpus.as_json_string(each.text, dice)) for each in corpus.planted(kind))
    shown = ((value, json.loads(masked(f'{{"a": [1, {text}]}}'))["a"][1]) for value, text in texts)
    assert share_masked(shown) >= RECALL


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_recall_in_json_that_lies_in_a_string(kind: str) -> None:
    bodies = ((each.value, json.dumps({"raw": json.dumps({"x": each.text})})) for each in corpus.planted(kind))
    shown = ((value, json.loads(json.loads(masked(body))["raw"])["x"]) for value, body in bodies)
    assert share_masked(shown) >= RECALL


@pytest.mark.parametrize("kind", ["cpf", "cnpj", "card", "e-mail", "phone"])
def test_recall_in_addresses_with_percent_signs(kind: str) -> None:
    written = (corpus.percent_encoded(each.value) for each in corpus.planted(kind))
    shown = ((value, MASKER.text(f"GET https://example.com/a?b={value}&c=1")) for value in written)
    assert share_masked(shown) >= RECALL


@pytest.mark.parametrize("kind", ["cpf", "cnpj", "card"])
def test_recall_of_numbers_that_are_json_numbers(kind: str) -> None:
    digits = ["".join(filter(str.isalnum, each.value)) for each in corpus.planted(kind)]
    numbers = [str(int(each)) for each in digits if each.isdigit()]
    left = sum(number in masked(f'{{"n": {number}, "m": [{number}]}}') for number in numbers)
    assert len(numbers) > 150
    assert left / len(numbers) <= 0.03, (
        "a CPF that has lost two zeros in front, or reads as a Unix time, is not found"
    )


def test_a_number_of_a_spreadsheet_is_found() -> None:
    assert masked('{"n": 52998224725.0}') == '{"n": "[cpf]"}'
    assert masked("52998224725") == '"[cpf]"'


def test_nothing_harmless_is_masked() -> None:
    """24 forms of ids, times and amounts; measured: none of 4,800."""
    alarms = [text for text in corpus.harmless(4_800) if MASKER.text(text) != text]
    assert alarms == []


@pytest.mark.parametrize(
    ("first", "length", "bound"),
    [("", 11, 0.02), ("", 14, 0.02), ("4", 16, 0.12), ("9", 16, 0.001), ("", 12, 0.001)],
)
def test_random_numbers_are_masked_no_more_often_than_their_check_digits_say(
    first: str, length: int, bound: float
) -> None:
    dice = corpus.seeded(length)
    numbers = [first + "".join(dice.choices("0123456789", k=length - len(first))) for _ in range(3_000)]
    assert sum(MASKER.text(each) != each for each in numbers) / len(numbers) <= bound


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter2 x", "password=[masked] x"),
        ("{'senha': 'a b', 'x': 1}", "{'senha': '[masked]', 'x': 1}"),
        ('invalid: {\\"apiKey\\": \\"abc def\\"}', 'invalid: {\\"apiKey\\": \\"[masked]\\"}'),
        ("GET /?page=2&access_token=abc&x=1", "GET /?page=2&access_token=[masked]&x=1"),
        ("Password: hunter", "Password: [masked]"),
        ("unexpected token: end", "unexpected token: end"),
        ("token: abc123", "token: [masked]"),
        ("password=None", "password=None"),
        ("the password is wrong", "the password is wrong"),
        ("<a><ns:Senha>x y</ns:Senha><b>1</b></a>", "<a><ns:Senha>[masked]</ns:Senha><b>1</b></a>"),
        ("<token><b>1</b></token> a token> 5", "<token><b>1</b></token> a token> 5"),
        ("{:password=>x}", "{:password=>[masked]}"),
        ("Cookie: a=b; c=d\nHost: x", "[token]\nHost: x"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: [token]"),
        ("basic subscription, bearer certificates", "basic subscription, bearer certificates"),
        ("postgres://shop:p@ss:w@db/x", "postgres://[password]@db/x"),
        ("https://example.com:8443/@user", "https://example.com:8443/@user"),
        ("react@18.2.0 and a@b", "react@18.2.0 and a@b"),
        ("529.982.247-25 111.444.777-35", "[cpf] [cpf]"),
        ("111.111.111-11", "111.111.111-11"),
        ("0.52998224725", "0.52998224725"),
        ("4111 1111 1111 1111 123", "[card] 123"),
        ("(11) 98765-4321/11 98765-4321", "[phone]/[phone]"),
        ("a52998224725 a529.982.247-25", "a52998224725 a529.982.247-25"),
        ("52998224725b, 529.982.247-25b", "52998224725b, 529.982.247-25b"),
        ("12ABC34501DE35", "[cnpj]"),
        ("hooks.slack.com/services/T000/B000/abcdefgh", "[key]"),
    ],
)
def test_one_by_one(text: str, shown: str) -> None:
    assert MASKER.text(text) == shown
    assert MASKER.text(shown) == shown


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_what_is_found_has_the_signs_that_are_looked_for_first(kind: str) -> None:
    dice = corpus.seeded(kind)
    for each in corpus.planted(kind):
        assert detectors.may_hold(each.text.encode())
        assert detectors.signs_in_json.search(corpus.as_json_string(each.text, dice).encode()) is not None


def test_check_digits() -> None:
    assert is_cpf(b"52998224725")
    assert not is_cpf(b"52998224726")
    assert not is_cpf(b"52998224735")
    assert not is_cpf(b"00000000000")
    assert is_cnpj(b"11222333000181")
    assert is_cnpj(b"12ABC34501DE35")
    assert not is_cnpj(b"11222333000182")
    assert not is_cnpj(b"12ABC34501DE3A")
    assert is_card(b"4111111111111111")
    assert is_card(b"378282246310005")
    assert not is_card(b"4111111111111112")
    assert not is_card(b"1111111111111117")
