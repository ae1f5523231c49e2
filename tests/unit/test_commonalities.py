"""What letters of a group have in common against others: the numbers, and whatever producers send."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from redrive.commonalities import MOST_FACTS, MOST_TOLD, Commonality, Relation, compare
from redrive.message import Message
from redrive.search import parse
from support.dead_letters import foreign

NOW = datetime(2026, 5, 17, tzinfo=UTC)


def sent(data: Any, **headers: Any) -> Message:
    raw = data if isinstance(data, bytes) else msgspec.json.encode(data)
    return foreign(raw, headers=tuple(headers.items()))


def some(number: int, data: Any, **headers: Any) -> list[Message]:
    return [sent(data, **headers) for _ in range(number)]


def told(here: list[Message], elsewhere: list[Message]) -> list[tuple[str, str, str | None, int, int]]:
    found = compare(here, elsewhere).commonalities
    return [(each.name, each.relation, each.value, each.here, each.elsewhere) for each in found]


def test_a_value_that_is_frequent_here_and_rare_elsewhere_is_told_with_its_numbers() -> None:
    here = some(97, {"country": "PT"}) + some(3, {"country": "BR"})
    elsewhere = some(12, {"country": "PT"}) + some(88, {"country": "BR"})

    found = compare(here, elsewhere)

    assert (found.here, found.elsewhere) == (100, 100)
    assert found.commonalities == (
        Commonality(
            name="data.country",
            relation=Relation.IS,
            value="PT",
            value_type="string",
            here=97,
            elsewhere=12,
            filter="data.country:PT",
        ),
    )


def test_what_all_letters_have_says_nothing() -> None:
    both = some(100, {"country": "PT", "order_id": 1}, tenant="acme")

    assert told(both, both) == []


def test_values_of_each_letter_alone_say_nothing() -> None:
    here = [sent({"order_id": number}) for number in range(200)]
    elsewhere = [sent({"order_id": number}) for number in range(500, 700)]

    assert told(here, elsewhere) == []


def test_headers_are_compared_as_data_is() -> None:
    assert told(some(50, {}, tenant="acme"), some(50, {}, tenant="globex")) == [
        ("header.tenant", "is", "acme", 50, 0)
    ]


def test_a_field_that_only_these_have_or_lack_is_told_once() -> None:
    here, elsewhere = some(50, {"coupon": {"code": "A"}}), some(50, {"email": "x"})

    assert told(here, elsewhere) == [
        ("data.coupon", "exists", None, 50, 0),
        ("data.coupon.code", "is", "A", 50, 0),
        ("data.email", "missing", None, 50, 0),
    ]


def test_a_difference_that_chance_makes_is_not_told() -> None:
    assert told(some(3, {"a": 1}) + some(1, {}), some(1, {"a": 1}) + some(3, {})) == []


@pytest.mark.parametrize(("value", "text", "kind"), [
    (2**80 + 1, "1208925819614629174706177", "number"),
    (b"1.10", "1.10", "number"),
    (True, "true", "boolean"),
    (None, "null", "null"),
    ("1", "1", "string"),
])  # fmt: skip
def test_values_are_exact_and_tell_their_type(value: Any, text: str, kind: str) -> None:
    raw = value if isinstance(value, bytes) else msgspec.json.encode(value)
    here = some(50, b'{"a":' + raw + b"}")

    (found,) = compare(here, some(50, {"a": "other"})).commonalities

    assert (found.value, found.value_type) == (text, kind)


def test_a_number_and_the_same_digits_as_text_are_two_values() -> None:
    assert told(some(50, {"a": 1}), some(50, {"a": "1"})) == [("data.a", "is", "1", 50, 0)]


def test_places_in_a_list_have_names_that_a_filter_knows() -> None:
    (found,) = compare(some(50, {"items": [{"sku": "X"}]}), some(50, {"items": [{"sku": "Y"}]})).commonalities

    assert found.filter == "data.items.0.sku:X"


@pytest.mark.parametrize("data", [{"a b": "c d"}, {"Ä": 'say "x"'}, {"a": "two\nlines"}, {"a.b": "c:d"}], ids=str)
def test_each_filter_finds_the_letters_that_it_is_of(data: Any) -> None:
    message = sent(data)

    for each in compare([message] * 50, some(50, {"z": 1})).commonalities:
        assert each.filter is not None
        parse(each.filter, now=NOW)


def test_what_is_masked_is_told_as_that_and_has_no_filter() -> None:
    (found,) = compare(some(50, {"cpf": "[cpf]"}), some(50, {"cpf": ""})).commonalities

    assert (found.value, found.filter) == ("[cpf]", None)


def test_nothing_is_told_where_there_is_nothing_to_compare_with() -> None:
    found = compare(some(50, {"a": 1}), [])

    assert (found.here, found.elsewhere, found.commonalities) == (50, 0, ())


HOSTILE = {
    "deep": b"[" * 20_000 + b"]" * 20_000,
    "deep objects": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "wide": msgspec.json.encode({f"key{number}": number for number in range(20_000)}),
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "NaN": b'{"a": NaN, "b": -Infinity}',
    "huge integer": b'{"a": ' + b"9" * 5000 + b"}",
    "huge exponent": b'{"a": 1e99999999999999999999}',
    "long keys": msgspec.json.encode({"k" * 50_000: 1}),
    "long values": msgspec.json.encode({"a": "v" * 100_000}),
    "repeated keys": b'{"a": 1, "a": 2, "a": 1}',
    "surrogates": rb'{"\ud800": "\udfff\u0000"}',
    "no JSON": b"<xml/>",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_a_body_is_it_is_compared_and_what_is_told_is_bounded(name: str) -> None:
    here = [foreign(HOSTILE[name], headers=tuple((f"h{each}", "v") for each in range(5000)))] * 20

    found = compare(here, some(20, {"z": 1}))

    assert found.here == 20
    assert len(found.commonalities) <= MOST_TOLD
    assert all(len(each.value or "") <= 200 and len(each.name) < 1000 for each in found.commonalities)
    msgspec.json.encode(found)


def test_a_body_that_was_not_looked_through_to_its_end_lacks_nothing() -> None:
    some_keys = {f"key{number:05}": 1 for number in range(MOST_FACTS - 1)}
    wide = {f"key{number:05}": 1 for number in range(2000)} | {"zzz": 1}

    found = told(some(50, wide), some(50, some_keys | {"zzz": 1}))

    assert [name for name, relation, *_ in found if relation == "missing"] == []


def test_no_more_places_are_looked_at_than_a_bound_allows() -> None:
    def objects(last: str) -> dict[str, dict[str, str]]:
        found = {f"o{number}": {f"k{each:03}": "same" for each in range(100)} for number in range(10)}
        return found | {"o9": found["o9"] | {"k099": last}}

    assert told(some(50, objects("A")), some(50, objects("B"))) == []


def test_a_sample_of_none_is_no_error() -> None:
    assert compare([], []).commonalities == ()
