"""What each term of a filter means, told over one letter."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import UNSET

from redrive.dead_letter import DeadLetter
from redrive.message import Headers, Message
from redrive.search import parse
from redrive.search_document import MAX_DEPTH, MAX_SEARCHED, document, header_text
from redrive.search_match import matches
from redrive.testing.letters import NOON, a_message
from support.letter_facts import a_letter

NOW = NOON + timedelta(days=2)


def found(text: str, letter: DeadLetter, **facts: str | None) -> bool:
    known: dict[str, str | None] = {"event_type": "order.created", "correlation": "abc-123", "owner": None} | facts
    answer = matches(parse(text, now=NOW), letter, **known)
    assert answer is not matches(parse(f"-{text}", now=NOW), letter, **known), "negated, it is the opposite"
    return answer


@pytest.mark.parametrize(
    "text",
    [
        "queue:orders",
        "queue:mail,orders",
        "queue:ord*",
        "queue:*",
        "type:shop.errors.NoCustomer",
        "type:NoCustomer",
        "type:NoCust*",
        "type:shop.*",
        "handler:charge",
        "status:pending",
        "kind:permanent",
        "group:9F2C",
        "source:shop",
        "id:0198F2AB-12",
        "correlation:abc-123",
        "event:order.*",
        "attempts:3",
        "attempts:1,3",
        "attempts:>2",
        "attempts:>=3",
        "attempts:<=3",
        "generation:<3",
        "age:>1d",
        "age:>=2d",
        "age:<=2d",
        "age:<3d",
        "before:1d",
        "after:2d",
        "after:2026-01-01",
        "created:<=2026-01-01T12:00:00Z",
    ],
)
def test_a_field_matches(text: str) -> None:
    assert found(text, a_letter())


@pytest.mark.parametrize(
    "text",
    [
        "queue:order",
        "queue:ORDERS",
        "queue:o_*",
        "queue:%*",
        "type:errors.NoCustomer",
        "type:Customer",
        "owner:*",
        "owner:payments",
        "status:RESOLVED",
        "group:2c00",
        "attempts:>3",
        "attempts:<3",
        "age:>2d",
        "age:<2d",
        "before:2d",
        "created:>2026-01-01T12:00:00Z",
    ],
)
def test_a_field_does_not_match(text: str) -> None:
    assert not found(text, a_letter())


def test_what_is_missing_or_empty_is_no_value() -> None:
    letter = a_letter(handler="")

    assert not found("handler:*", letter)
    assert not found("correlation:*", letter, correlation=None)
    assert found("owner:pay*", letter, owner="payments")


def test_every_term_must_match() -> None:
    assert matches(parse("queue:orders -kind:transient customer", now=NOW), a_letter())
    assert not matches(parse("queue:orders kind:transient", now=NOW), a_letter())
    assert matches(parse("", now=NOW), a_letter())


# header.NAME

HEADERS: Headers = (
    ("tenant", "acme"),
    ("tenant", "other"),
    ("bytes", "caf\u00e9".encode()),
    ("raw", b"\xff"),
    ("count", 3),
    ("ratio", 1.5),
    ("yes", True),
    ("nothing", None),
    ("list", ["a"]),
    ("at", datetime(2026, 1, 1, tzinfo=UTC)),
    ("huge", 10**5000),
    ("empty", ""),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("header.tenant:acme", True),
        ("header.tenant:other", True),
        ("header.tenant:nosuch,acme", True),
        ("header.tenant:ac*", True),
        ("header.Tenant:acme", False),
        ("header.tenant:Acme", False),
        ("header.tenant:*", True),
        ("header.nosuch:*", False),
        ("header.bytes:café", True),
        ("header.raw:*", True),
        ("header.raw:x", False),
        ("header.count:3", True),
        ("header.ratio:1.5", True),
        ("header.yes:true", True),
        ("header.yes:1", False),
        ("header.nothing:*", True),
        ("header.nothing:None", False),
        ("header.list:*", True),
        ("header.list:a", False),
        ("header.at:2026-01-01*", True),
        ("header.huge:*", True),
        ("header.huge:1", False),
        ('header.empty:""', True),
    ],
)
def test_a_header_compares_as_text(text: str, *, expected: bool) -> None:
    assert found(text, a_letter(headers=HEADERS)) is expected


def test_a_number_too_long_to_write_has_no_text() -> None:
    assert header_text(10**999) == "1" + "0" * 999
    assert header_text(-(10**1000)) is None


# data.PATH

DATA = {
    "customer": {"id": 123, "name": "Jo\u00e3o", "vip": True, "phone": None},
    "price": 1.5,
    "text_price": "1.5",
    "big": 12345678901234567890,
    "items": [{"sku": "A-17", "sizes": [1, 2]}, {"sku": "B-1"}, "loose", [{"sku": "nested"}]],
    "tags": ["urgent", 7, None, ["deep"]],
    "empty": [],
    "at": "2026-11-01T00:00:00Z",
    "a.b": {"c d": "x"},
    "": "blank",
    "0": "zero",
    "word": "true",
    "numbers": {"0": "key"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data.customer.id:123", True),
        ("data.customer.id:123.0", True),
        ("data.customer.id:1.23e2", True),
        ("data.customer.id:12", False),
        ("data.customer.id:12*", False),  # a number has no beginning
        ("data.customer.id:9,123", True),
        ("data.customer.name:João", True),
        ("data.customer.name:Jo*", True),
        ("data.customer.name:jo*", False),
        ("data.customer.vip:true", True),
        ("data.customer.vip:false", False),
        ("data.customer.vip:1", False),
        ("data.customer.vip:>0", False),
        ("data.customer.phone:null", True),
        ("data.customer.phone:*", True),
        ('data.customer.phone:""', False),
        ("data.customer:*", True),
        ("data.customer:x", False),
        ("data.nosuch:*", False),
        ("data.customer.id.more:*", False),
        ("data.word:true", True),
        ("data.price:1.50", True),
        ("data.price:>1", True),
        ("data.price:>=1.5", True),
        ("data.price:<1.5", False),
        ("data.text_price:1.5", True),
        ("data.text_price:1.50", False),
        ("data.text_price:>1", False),  # text is no number
        ("data.price:>a", False),  # nor a number text
        ("data.big:12345678901234567890", True),
        ("data.big:12345678901234567891", False),
        ("data.big:>12345678901234567889", True),
        ("data.at:>2026-10-31", True),
        ("data.at:<2026-10-31", False),
        ("data.items.sku:B-1", True),
        ("data.items.0.sku:A-17", True),
        ("data.items.1.sku:A-17", False),
        ("data.items.9.sku:*", False),
        ("data.items.sku:nested", False),
        ("data.items.3.sku:nested", True),
        ("data.items.3.0.sku:nested", True),
        ("data.items.sizes:2", True),
        ("data.items.sizes.1:2", True),
        ("data.items.sizes.0:2", False),
        ("data.items:loose", True),
        ("data.tags:urgent", True),
        ("data.tags:ur*", True),
        ("data.tags:>6", True),
        ("data.tags:null", True),
        ("data.tags:deep", False),
        ("data.tags.3:deep", True),
        ("data.empty:*", True),
        ("data.empty.0:*", False),
        ('data."a.b"."c d":x', True),
        ('data."":blank', True),
        ("data.0:zero", True),
        ("data.numbers.0:key", True),
        ("data.numbers.00:*", False),
    ],
)
def test_a_path_leads_into_the_data(text: str, *, expected: bool) -> None:
    body = json.dumps(DATA).encode()
    envelope = Message.create(id="1", sent_at=NOON, queue="orders", data=DATA)

    assert found(text, a_letter(body)) is expected
    assert found(text, a_letter(message=envelope)) is expected


def test_the_envelope_itself_is_not_data() -> None:
    letter = a_letter(message=Message.create(id="1", sent_at=NOON, queue="orders", data={"a": 1}))

    assert not found("data.message_id:*", letter)
    assert not found("data.data.a:1", letter)


@pytest.mark.parametrize(
    "body",
    [None, b"", b"plain", b"\xff\xfe", b'{"a": NaN}', b'{"a": 1', b"[" * 100_000, '{"a": 1}'.encode("utf-16")],
)
def test_what_is_not_json_has_no_data(body: bytes | None) -> None:
    assert document(a_message(body=body)) is UNSET
    assert not found("data.a:*", a_letter(body))


def test_data_over_the_limit_is_not_looked_into() -> None:
    body = b'{"a": "' + b"x" * MAX_SEARCHED + b'"}'

    assert not found("data.a:*", a_letter(body))


@pytest.mark.parametrize("inner", ["1", r'"\u0000"'])
def test_data_that_nests_too_deep_is_not_looked_into(inner: str) -> None:
    def nested(depth: int) -> bytes:
        return ("[" * (depth - 1) + '{"a": ' + inner + "}" + "]" * (depth - 1)).encode()

    assert document(a_message(body=nested(MAX_DEPTH))) is not UNSET
    assert document(a_message(body=nested(MAX_DEPTH + 1))) is UNSET
    assert document(a_message(body=nested(900))) is UNSET


def test_a_scalar_or_an_array_may_be_all_of_the_data() -> None:
    assert not found("data.a:*", a_letter(b"17"))
    assert found("data.a:1", a_letter(b'[{"a": 1}]'))
    assert found("data.0.a:1", a_letter(b'[{"a": 1}]'))


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        ("1e400", None),
        ("1e5000", "1e5000"),
        ("1e99999999999999999999", "1e99999999999999999999"),
        ("9" * 5000, "9" * 5000),
        ("-" + "9" * 400, None),
        ("0.1", None),
    ],
)
def test_a_number_that_databases_cannot_keep_is_its_text(number: str, kept: str | None) -> None:
    value = document(a_message(body=f'{{"a": {number}}}'.encode()))["a"]

    assert (value if isinstance(value, str) else None) == kept


def test_text_in_data_can_be_stored_anywhere() -> None:
    body = rb'{"a\u0000": ["\ud800", "\ud83d\ude00", {"b": "\uDFFF\u0000x"}]}'

    assert document(a_message(body=body)) == {"a\ufffd": ["\ufffd", "\U0001f600", {"b": "\ufffd\ufffdx"}]}


def test_a_key_that_comes_twice_counts_once_with_its_last_value() -> None:
    assert found("data.a:2", a_letter(b'{"a": 1, "a": 2}'))
    assert not found("data.a:1", a_letter(b'{"a": 1, "a": 2}'))


# Text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("customer", True),
        ("CUSTOMER", True),
        ("custom", False),
        ("custom*", True),
        ('"no customer"', True),
        ('"customer no"', False),
        ('"order has"', False),
        ('"has no cust"*', True),
        ('"ha no cust"*', False),
        ("NoCustomer", True),
        ('"NoCustomer: order 17"', True),  # as it is shown, type and text
        ("Conexão", True),
        ("conexao", True),
        ('"recusada pelo servidor"', True),
        ("servidor-17", True),
        ("naoescapado", False),
        ('"customer cliente"', False),  # not across error and body
        ("cliente", True),
        ('"linha nova"', True),
    ],
)
def test_text_is_looked_for_in_the_error_and_in_the_body(text: str, *, expected: bool) -> None:
    body = rb'{"cliente": "Conex\u00e3o recusada\tpelo servidor-17", "x": "linha\nnova"}'

    assert found(text, a_letter(body)) is expected


@pytest.mark.parametrize(
    ("escaped", "word"),
    [
        (r"\u0061bc", "abc"),
        (r"\uD835\uDC00bc", "abc"),  # a letter beyond 16 bits, bold
        (r"\ud800abc", "abc"),
        (r"x\/abc\"", "abc"),
        (r"x\\nabc", "nabc"),  # a backslash, and no new line
        (r"\uXYZW", "uxyzw"),
        ("\\", "key"),
    ],
)
def test_escapes_of_json_are_read_as_what_they_stand_for(escaped: str, word: str) -> None:
    assert found(word, a_letter(b'{"key": "' + escaped.encode() + b'"}'))


def test_a_body_that_is_not_json_is_searched_as_it_stands() -> None:
    assert found(r'"new line"', a_letter(b"a new\nline"))
    assert found("nline", a_letter(b"a new\\nline"))
    assert found("readable", a_letter(b"\xff\xfereadable\x00"))
    assert not found("readable", a_letter(None))


def test_only_the_first_megabyte_of_a_body_is_searched() -> None:
    body = b"early " + b" " * MAX_SEARCHED + b"late"

    assert found("early", a_letter(body))
    assert not found("late", a_letter(body))
