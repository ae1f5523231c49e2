"""One way to cut text into words, the same for what is searched and for what is searched for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.words import LONGEST, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("... !?", []),
        ("Connection REFUSED", ["connection", "refused"]),
        ("shop.errors.NoCustomer", ["shop", "errors", "nocustomer"]),
        ("order_id=17", ["order_id", "17"]),
        ("don't", ["don", "t"]),
        ("Não é possível", ["nao", "e", "possivel"]),
        ("Straße", ["strasse"]),
        ("İstanbul", ["istanbul"]),
        ("ΣΊΣΥΦΟΣ", ["σισυφοσ"]),
        ("\uff21\uff22\uff23 \ufb01ne x\u00b2", ["abc", "fine", "x2"]),
        ("नमस्ते", ["नमसत"]),
        ("你好", ["你好"]),
        ("a\x00b\ud800c", ["a", "b", "c"]),
        ("x" * 100 + " y", ["x" * LONGEST, "y"]),
        ("\ufdfa" * 10, None),
    ],
)
def test_words_are_what_a_person_would_look_for(text: str, found: list[str] | None) -> None:
    if found is not None:
        assert words(text) == found
    assert all(len(word) <= LONGEST for word in words(text))


@given(st.text(st.characters()))
def test_the_words_of_words_are_the_same_words(text: str) -> None:
    assert words(" ".join(words(text))) == words(text)


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_text_has_the_words_that_it_has_among_other_text(text: str) -> None:
    assert words(f"{text} é") == [*words(text), "e"]


@given(st.text(st.characters()))
def test_no_word_holds_what_a_search_language_could_mistake(text: str) -> None:
    assert not any(sign in word for word in words(text) for sign in "\"'\\ :*&|!<>()^·")
