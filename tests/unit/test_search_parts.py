"""What a letter gives to the search index: nothing is lost, and no part is more than a database holds."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from redrive.message import Headers
from redrive.search import DataTerm, HeaderTerm, Op
from redrive.search_match import data_matches, header_matches
from redrive.stores.search_parts import BORDER, Part, as_tokens, as_vector, parts_of
from redrive.stores.search_tokens import LOOSE, MOST_TOKENS, are_exact, tokens_for, tokens_of
from redrive.testing.letters import a_message
from redrive.words import LONGEST_PHRASE

words_of_body = st.lists(
    st.sampled_from(["a", "b", "cc", "x" * 64, "word"]) | st.text("abc", min_size=1), max_size=3000
)


@given(words_of_body)
def test_every_phrase_is_whole_in_some_part_and_no_part_is_too_large(body: list[str]) -> None:
    parts = list(parts_of("Error", "text", a_message(body=" ".join(body).encode())))
    whole = ["error", "text", BORDER, *body]

    rebuilt = list(parts[0].words)
    for part in parts[1:]:
        assert rebuilt[-LONGEST_PHRASE:] == part.words[:LONGEST_PHRASE]
        rebuilt += part.words[LONGEST_PHRASE:]
    assert rebuilt == whole
    for part in parts:
        assert max(Counter(part.words).values()) <= 255
        assert len(part.words) <= 10_000
        assert len(as_vector(part)) < 1024 * 1024


def test_a_tsvector_has_every_place_of_a_word_and_none_of_a_token() -> None:
    part = Part(["no", "customer", BORDER, "no"], ["·0123"])

    assert as_vector(part) == "'·0123' 'no':1,4 'customer':2"
    assert as_tokens(part) == "·0123 no customer · no"


def test_facts_are_json_with_exact_numbers() -> None:
    message = a_message(
        body=b'{"n": 12345678901234567890.10, "big": 123456789012345678901234567890}', headers=(("x", 1),)
    )

    [part] = parts_of("", "", message)

    assert json.loads(part.facts or "", parse_float=Decimal) == {
        "headers": {"x": ["1"]},
        "data": {"n": Decimal("12345678901234567890.10"), "big": 123456789012345678901234567890},
    }


keys = st.sampled_from(["a", "b", "0", "1", ""])
scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, 100, -1, 2**70, Decimal("1.0"), Decimal("1E+2"), Decimal("-0"), Decimal("0.10")])
    | st.sampled_from(["", "1", "true", "null", "x", "1.0"])
)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)
data_terms = st.builds(
    DataTerm,
    path=st.lists(keys, min_size=1, max_size=3).map(tuple),
    op=st.sampled_from([Op.IS, Op.EXISTS, Op.BEGINS, Op.MORE]),
    values=st.sampled_from([("1",), ("1.00",), ("1e2", "x"), ("true",), ("null",), ("",), ("-0",), (str(2**70),)]),
)


@given(documents, data_terms)
def test_tokens_find_every_document_that_matches_and_exact_ones_no_other(document: object, term: DataTerm) -> None:
    wanted = term if term.op is not Op.EXISTS else DataTerm(path=term.path, op=term.op)
    there, asked = set(tokens_of(document, ())), {*tokens_for(wanted), LOOSE}

    matches = data_matches(wanted, document)

    if matches:
        assert there & asked
    elif are_exact(wanted) and LOOSE not in there:
        assert not there & asked


@pytest.mark.parametrize("term", ["acme", "Acme", "", "5"])
def test_tokens_of_headers_are_exact(term: str) -> None:
    headers: Headers = (("tenant", "acme"), ("tenant", 5), ("empty", ""), ("none", None))
    there = set(tokens_of(UNSET, headers))

    for name in ("tenant", "empty", "none", "other"):
        asked = HeaderTerm(name=name, op=Op.IS, values=(term,))
        assert bool(there & set(tokens_for(asked))) is header_matches(asked, headers)
        exists = HeaderTerm(name=name, op=Op.EXISTS)
        assert bool(there & set(tokens_for(exists))) is header_matches(exists, headers)


def test_no_key_can_look_like_a_value() -> None:
    term = DataTerm(path=("a",), op=Op.IS, values=("x",))

    for disguised in ({"a": {"": {"=sx": 1}}}, {"a": {"=sx": 1}}, {"a": {"": "x"}}, {"a": {"sx": 1}}):
        assert not set(tokens_of(disguised, ())) & set(tokens_for(term))


def test_a_document_of_very_many_values_is_loose() -> None:
    assert tokens_of({"many": list(range(MOST_TOKENS * 2))}, ()) == [LOOSE]
    assert tokens_of({"nested": [[1]]}, ()) == [LOOSE]
    assert LOOSE not in tokens_of({"many": list(range(100))}, ())


def test_very_many_headers_are_loose_for_a_tsvector_holds_a_megabyte() -> None:
    headers: Headers = tuple((f"header-{number}", "value") for number in range(MOST_TOKENS))

    assert tokens_of(UNSET, headers) == [LOOSE]
    assert LOOSE not in tokens_of(UNSET, headers[:100])
