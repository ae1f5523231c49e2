"""The filter language: what each form is read as, and what an error says and where it points."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from redrive.errors import FilterError, UsageError
from redrive.search import (
    DataTerm,
    Field,
    FieldTerm,
    Filter,
    HeaderTerm,
    Op,
    Term,
    TextTerm,
    index_of,
    number_of,
    parse,
    unparse,
)
from redrive.search_fields import FIELDS, OPEN_FIELDS

NOW = datetime(2026, 11, 10, 12, tzinfo=UTC)
DOC = Path(__file__).parents[2] / "docs" / "filter-language.md"


def terms(text: str) -> tuple[Term, ...]:
    return parse(text, now=NOW).terms


def term(text: str) -> Term:
    (found,) = terms(text)
    return found


def field(field: Field, *values: str | int | datetime, op: Op = Op.IS, negated: bool = False) -> FieldTerm:
    return FieldTerm(field=field, op=op, values=values, negated=negated)


def data(*path: str, op: Op = Op.IS, values: tuple[str, ...] = ()) -> DataTerm:
    return DataTerm(path=path, op=op, values=values)


def error(text: str) -> FilterError:
    with pytest.raises(FilterError) as raised:
        parse(text, now=NOW)
    return raised.value


# Terms


def test_the_example_of_the_design_is_read_term_by_term() -> None:
    text = (
        "queue:orders type:TimeoutError status:PENDING age:>2d data.customer.id:123 -handler:refund "
        '"connection refused"'
    )

    assert terms(text) == (
        field(Field.QUEUE, "orders"),
        field(Field.TYPE, "TimeoutError"),
        field(Field.STATUS, "PENDING"),
        field(Field.CREATED, NOW - timedelta(days=2), op=Op.LESS),
        data("customer", "id", values=("123",)),
        field(Field.HANDLER, "refund", negated=True),
        TextTerm(text="connection refused"),
    )


@pytest.mark.parametrize("nothing", ["", " ", "\t\n\u2003"])
def test_nothing_is_a_filter_that_matches_everything(nothing: str) -> None:
    assert parse(nothing, now=NOW) == Filter()


def test_white_space_of_any_kind_separates_terms() -> None:
    assert len(terms(" a\tqueue:b\n\u2003-c ")) == 3


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("queue:orders", field(Field.QUEUE, "orders")),
        ("QUEUE:orders", field(Field.QUEUE, "orders")),
        ("queue:a,b", field(Field.QUEUE, "a", "b")),
        ('queue:"a b","c,d"', field(Field.QUEUE, "a b", "c,d")),
        ("queue:ord*", field(Field.QUEUE, "ord", op=Op.BEGINS)),
        ("queue:ord*,pay*", field(Field.QUEUE, "ord", "pay", op=Op.BEGINS)),
        ('queue:"a b"*', field(Field.QUEUE, "a b", op=Op.BEGINS)),
        ("queue:*", field(Field.QUEUE, op=Op.EXISTS)),
        ("-owner:*", field(Field.OWNER, op=Op.EXISTS, negated=True)),
        ('queue:"*"', field(Field.QUEUE, "*")),
        (r"queue:a\*", field(Field.QUEUE, "a*")),
        (r"queue:a\,b", field(Field.QUEUE, "a,b")),
        (r'queue:"say \"no\" \\"', field(Field.QUEUE, 'say "no" \\')),
        ("queue:a:b", field(Field.QUEUE, "a:b")),
        ('queue:">a"', field(Field.QUEUE, ">a")),
        (r"type:App\Jobs\Charge", field(Field.TYPE, r"App\Jobs\Charge")),
        ("event:order.created", field(Field.EVENT, "order.created")),
        ("correlation:abc-123", field(Field.CORRELATION, "abc-123")),
        ("source:shop", field(Field.SOURCE, "shop")),
        ("status:pending,Quarantined", field(Field.STATUS, "PENDING", "QUARANTINED")),
        ("kind:PERMANENT", field(Field.KIND, "permanent")),
        ("attempts:3", field(Field.ATTEMPTS, 3)),
        ("attempts:1,2", field(Field.ATTEMPTS, 1, 2)),
        ("attempts:>=3", field(Field.ATTEMPTS, 3, op=Op.AT_LEAST)),
        ("generation:>1", field(Field.GENERATION, 1, op=Op.MORE)),
        ("id:0198F2", field(Field.ID, "0198f2", op=Op.BEGINS)),
        ("id:0198f2ab-12*", field(Field.ID, "0198f2ab-12", op=Op.BEGINS)),
        ("group:9f2c,beef", field(Field.GROUP, "9f2c", "beef", op=Op.BEGINS)),
    ],
)
def test_a_field_has_one_value_or_several(text: str, read: Term) -> None:
    assert term(text) == read


@pytest.mark.parametrize(
    ("text", "op", "moment"),
    [
        ("age:>2d", Op.LESS, NOW - timedelta(days=2)),
        ("age:<1h", Op.MORE, NOW - timedelta(hours=1)),
        ("age:>=1h30m", Op.AT_MOST, NOW - timedelta(minutes=90)),
        ("age:<=30s", Op.AT_LEAST, NOW - timedelta(seconds=30)),
        ("age:>9999999w", Op.LESS, datetime.min.replace(tzinfo=UTC)),
        ("before:2026-11-01", Op.LESS, datetime(2026, 11, 1, tzinfo=UTC)),
        ("after:2026-11-01", Op.AT_LEAST, datetime(2026, 11, 1, tzinfo=UTC)),
        ('after:"2026-11-01T12:00:00Z"', Op.AT_LEAST, datetime(2026, 11, 1, 12, tzinfo=UTC)),
        ('after:"2026-11-01 12:00"', Op.AT_LEAST, datetime(2026, 11, 1, 12, tzinfo=UTC)),
        ("before:2026-11-01T12:00:00.5-03:00", Op.LESS, datetime(2026, 11, 1, 15, 0, 0, 500000, tzinfo=UTC)),
        ("after:2d", Op.AT_LEAST, NOW - timedelta(days=2)),
        ("created:>1d", Op.MORE, NOW - timedelta(days=1)),
        ("created:<=2026-11-01", Op.AT_MOST, datetime(2026, 11, 1, tzinfo=UTC)),
    ],
)
def test_times_are_absolute_once_they_are_read(text: str, op: Op, moment: datetime) -> None:
    assert term(text) == field(Field.CREATED, moment, op=op)


def test_the_moment_of_asking_may_be_told_in_any_zone() -> None:
    elsewhere = datetime.fromisoformat("2026-11-10T09:00:00-03:00")

    assert parse("age:>2d", now=elsewhere) == parse("age:>2d", now=NOW)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("data.amount:>100", data("amount", op=Op.MORE, values=("100",))),
        ("data.amount:<=-1.5", data("amount", op=Op.AT_MOST, values=("-1.5",))),
        ("data.name:Jo*", data("name", op=Op.BEGINS, values=("Jo",))),
        ("data.items.0.sku:a,b", data("items", "0", "sku", values=("a", "b"))),
        ('data."a.b".c:1', data("a.b", "c", values=("1",))),
        ('data."":1', data("", values=("1",))),
        ('data."a \\"b\\": c":1', data('a "b": c', values=("1",))),
        ("data.x:*", data("x", op=Op.EXISTS)),
        ('data.x:""', data("x", values=("",))),
        ('data.since:>"2026-01-01"', data("since", op=Op.MORE, values=("2026-01-01",))),
        ("DATA.Name:x", data("Name", values=("x",))),
        ("header.tenant:acme", HeaderTerm(name="tenant", op=Op.IS, values=("acme",))),
        ("header.x-death.reason:a", HeaderTerm(name="x-death.reason", op=Op.IS, values=("a",))),
        ('header."X Y":z*', HeaderTerm(name="X Y", op=Op.BEGINS, values=("z",))),
        ("header.tenant:*", HeaderTerm(name="tenant", op=Op.EXISTS)),
        ("-header.tenant:acme", HeaderTerm(name="tenant", op=Op.IS, values=("acme",), negated=True)),
    ],
)
def test_headers_and_data_are_named_by_the_message(text: str, read: Term) -> None:
    assert term(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("refused", TextTerm(text="refused")),
        ("-refused", TextTerm(text="refused", negated=True)),
        ('"connection refused"', TextTerm(text="connection refused")),
        ('-"connection refu"*', TextTerm(text="connection refu", begins=True, negated=True)),
        ("refu*", TextTerm(text="refu", begins=True)),
        ('"refu*"', TextTerm(text="refu*")),
        ('"http://shop: no answer"', TextTerm(text="http://shop: no answer")),
        ("foo-bar", TextTerm(text="foo-bar")),
        ("it's,here", TextTerm(text="it's,here")),
        ('"OR"', TextTerm(text="OR")),
        ("or", TextTerm(text="or")),
    ],
)
def test_any_other_word_is_text_to_look_for(text: str, read: Term) -> None:
    assert term(text) == read


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("1", Decimal(1)),
        ("-1.50", Decimal("-1.5")),
        ("1e3", Decimal(1000)),
        ("12345678901234567890.1", Decimal("12345678901234567890.1")),
        *((text, None) for text in ("", "01", "+1", ".5", "1.", "1_000", "NaN", "Infinity", "1e9999", "٣", "1 ")),
    ],
)
def test_a_value_is_a_number_if_json_would_write_it_so(value: str, number: Decimal | None) -> None:
    assert number_of(value) == number


@pytest.mark.parametrize(
    ("segment", "index"), [("0", 0), ("17", 17), ("999999999", 999999999), ("1000000000", None), ("01", None)]
)
def test_a_segment_is_a_place_in_an_array_if_it_is_a_plain_number(segment: str, index: int | None) -> None:
    assert index_of(segment) == index


# Errors: the column, and what to do


@pytest.mark.parametrize(
    ("text", "column", "said", "remedy"),
    [
        ("queue:a statsu:PENDING", 9, "unknown field 'statsu'", "did you mean status?"),
        ("event_type:a", 1, "unknown field 'event_type'", "did you mean event?"),
        ("zzzz:a", 1, "unknown field 'zzzz'", "known: queue, type,"),
        ("http://shop", 1, "unknown field 'http'", "put it in quotes"),
        ("-statsu:a", 2, "unknown field", "status"),
        ("status:PENDIG", 8, "no status is called 'PENDIG'", "did you mean PENDING?"),
        ("status:PENDING,nosuch", 16, "no status is called 'nosuch'", "known: PENDING, REDRIVING"),
        ("status:PEND*", 8, "no status is called 'PEND*'", "did you mean PENDING?"),
        ("kind:permament", 6, "no kind is called 'permament'", "did you mean permanent?"),
        ("age:2d", 5, "older or younger", "age:>2d or age:<2d"),
        ("age:>2", 6, "'2' is not an age", "age:>2d"),
        ("age:>2026-11-01", 6, "is not an age", "age:>2d"),
        ("age:>", 6, "a value is missing", ""),
        ("before:2026", 8, "'2026' is not a moment", "2026-11-01"),
        ("before:2026-13-01", 8, "is not a moment", "2026-11-01"),
        ("before:0001-01-01T00:00+14:00", 8, "is not a moment", "2026-11-01"),
        ("before:>2026-11-01", 8, "before is a comparison already", "before:2026-11-01"),
        ("created:2026-11-01", 9, "created needs a comparison", "created:>2026-11-01"),
        ("after:1d,2d", 10, "one value too many", "one term for each"),
        ("attempts:many", 10, "'many' is not a number of attempts", "attempts:>=3"),
        ("attempts:99999999999", 10, "is not a number", "at most 2,147,483,647"),
        ("attempts:-1", 10, "is not a number", ""),
        ("attempts:>1,2", 13, "one value too many", ""),
        ("attempts>3", 9, "a colon is missing behind attempts", "attempts:>3"),
        ("queue=orders", 6, "a colon is missing behind queue", "queue:orders"),
        ("data.amount>100", 12, "a colon is missing behind data.amount", "data.amount:>100"),
        ("queue:>a", 7, "'queue' has no order", ""),
        ("status:>PENDING", 8, "'status' has no order", ""),
        ("header.x:>1", 10, "'header.x' has no order", ""),
        ("id:abc", 4, "'abc' is not the beginning of an id", "at least 4"),
        ("group:nosuch", 7, "'nosuch' is not the beginning of an id", "digits and a to f"),
        ("queue:", 7, "a value is missing", ""),
        ("queue: a", 7, "a value is missing", "without a space"),
        ("queue:a,", 9, "a value is missing", ""),
        ("queue:,a", 7, "a value is missing", ""),
        ('queue:""', 7, "an empty value", "-queue:*"),
        ("queue:a*b", 8, "* stands for any ending", r"\*"),
        ("queue:a**", 8, "* stands for any ending", ""),
        ("queue:a*,b", 10, "some of these values end in *", ""),
        ("queue:*,b", 7, "a beginning is missing", ""),
        ('queue:"a', 7, "this quote is never closed", r"\""),
        ('queue:"a"b', 10, "something follows the closing quote", "a space"),
        ('queue:a"b"', 8, "a quote in the middle of a word", ""),
        ('"a"b', 4, "something follows the closing quote", "a space"),
        ('"a":b', 4, "something follows the closing quote", ""),
        ('"a', 1, "this quote is never closed", ""),
        ('a"b', 2, "a quote in the middle of a word", ""),
        ("data:1", 5, "data of which name?", "data.customer.id:123"),
        ("header.:1", 8, "header of which name?", "header.tenant:acme"),
        ('header."":1', 10, "a header's name is missing", ""),
        ('header."a"b:1', 11, "something follows the closing quote", ""),
        ("data.a..b:1", 8, "a name is missing", ""),
        ("data.a.:1", 8, "a name is missing", ""),
        ('data."a"b:1', 9, "something follows the closing quote", ""),
        ('data.a."b:1', 8, "this quote is never closed", ""),
        ("data.a:>5*", 9, "* does not go with a comparison", ""),
        ("a OR b", 3, "OR has no meaning here", '"OR"'),
        ("- a", 1, "- excludes what stands directly behind it", ""),
        ("--a", 1, "- excludes what stands directly behind it", ""),
        ("a !?", 3, "there is no word in this", ""),
        ("*", 1, "there is no word in this", ""),
        ("queue:a\x00b", 8, "a character that no text in a database can have", ""),
        ("\udcff", 1, "a character that no text in a database can have", ""),
    ],
)
def test_an_error_points_at_its_column_and_says_what_to_write(
    text: str, column: int, said: str, remedy: str
) -> None:
    found = error(text)

    assert said in str(found)
    assert remedy in found.remedy
    assert (found.column, found.remedy != "") == (column, True)
    assert str(found).startswith(f"filter, column {column}: ")


def test_a_wrong_filter_is_a_wrong_argument() -> None:
    assert isinstance(error("nosuch:1"), UsageError)
    assert error("nosuch:1").exit_code == 2


@pytest.mark.parametrize(
    ("within", "beyond", "column"),
    [
        ("a" + " " * 4095, "a" + " " * 4096, 4097),
        ("a " * 64, "a " * 65, 129),
        ("data." + ".".join("a" * 16) + ":1", "data." + ".".join("a" * 17) + ":1", 38),
        ("data" + ".0" * 6 + ":1", "data" + ".0" * 7 + ":1", 1),
        ("queue:" + "a" * 1024, "queue:" + "a" * 1025, 7),
        ('"' + "a" * 1024 + '"', '"' + "a" * 1025 + '"', 1),
        ('"' + "a " * 32 + '"', '"' + "a " * 33 + '"', 1),
        ("data." + "a" * 1024 + ":1", "data." + "a" * 1025 + ":1", 6),
        ("header." + "a" * 1024 + ":1", "header." + "a" * 1025 + ":1", 8),
    ],
)
def test_a_filter_has_bounds(within: str, beyond: str, column: int) -> None:
    assert terms(within)
    assert error(beyond).column == column


def test_a_long_mistake_is_not_repeated_whole() -> None:
    assert len(str(error("x" * 900 + ":1"))) < 200
    assert len(str(error("status:" + "x" * 900))) < 200


# Writing


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  Queue:a   b ", "queue:a b"),
        ("status:pending", "status:PENDING"),
        ("age:>2d", "created:<2026-11-08T12:00:00+00:00"),
        ("after:2026-11-01", "created:>=2026-11-01T00:00:00+00:00"),
        ('queue:"orders" "refused"', "queue:orders refused"),
        ('queue:"a b",c "x y"* -z*', 'queue:"a b",c "x y"* -z*'),
        ('data."a"."b.c":>1 header."t":*', 'data.a."b.c":>1 header.t:*'),
        ('"OR"', '"OR"'),
        ("id:ABCD", "id:abcd*"),
        (r'queue:"\"\\"', r'queue:"\"\\"'),
    ],
)
def test_a_filter_is_written_in_one_way(text: str, canonical: str) -> None:
    assert unparse(parse(text, now=NOW)) == canonical


# The page about it


def examples() -> list[str]:
    blocks = re.findall(r"```filter\n(.*?)```", DOC.read_text(), re.DOTALL)
    return [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_every_example_in_the_page_is_a_filter() -> None:
    assert len(examples()) > 30
    for example in examples():
        assert terms(example), example


def test_every_example_in_a_table_of_the_page_is_a_filter() -> None:
    rows = [line for line in DOC.read_text().splitlines() if line.startswith("| `")]
    cells = [example for row in rows for example in re.findall(r"`([^`]+)`", row.split("|")[-2])]

    assert len(cells) > 15
    for example in cells:
        assert terms(example), example


def test_every_wrong_filter_of_the_page_gets_the_error_that_it_shows() -> None:
    shown = re.findall(r"```error\n(.*?)\n(.*?)\nerror: (.*?)\n```", DOC.read_text(), re.DOTALL)

    assert shown
    for text, caret, message in shown:
        found = error(text)
        assert str(found) == message
        assert caret == " " * (found.column - 1) + "^"


def test_every_field_has_its_row_in_the_page() -> None:
    named = set(re.findall(r"^\| `([a-zA-Z.]+)`", DOC.read_text(), re.MULTILINE))

    assert named >= set(FIELDS) | set(OPEN_FIELDS)


def test_every_field_brings_an_example_of_its_own() -> None:
    for name, reading in FIELDS.items():
        assert reading.example.startswith(f"{name}:")
        assert terms(reading.example)
    for _, example in OPEN_FIELDS.values():
        assert terms(example)
