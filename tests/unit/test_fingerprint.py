from __future__ import annotations

import asyncio
import json
import string
import uuid
from datetime import UTC, datetime
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from redrive import fingerprint as fingerprinting
from redrive.failure import Failure, FailureKind, Host, capture
from redrive.fingerprint import MAX_INPUT, MAX_TITLE, fingerprint, normalise

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = datetime(2026, 2, 28, tzinfo=UTC)
PROCESSES = count()


class OrderFailed(Exception):
    pass


def failed(run: Callable[[], object], handler: str = "charge") -> Failure:
    try:
        run()
    except Exception as error:  # noqa: BLE001  any of them is wanted
        return capture(
            error,
            attempt=1,
            at=NOW,
            kind=FailureKind.PERMANENT,
            handler=handler,
            host=Host(process=next(PROCESSES)),
        )
    raise AssertionError("it should have raised")


def group(run: Callable[[], object], *, queue: str = "orders", handler: str = "charge") -> str:
    return fingerprint(failed(run, handler), queue=queue).id


def charge(order: object) -> None:
    raise OrderFailed(f"order {order} cannot be charged")


def refund(order: object) -> None:
    raise OrderFailed(f"order {order} cannot be charged")


@pytest.mark.parametrize(
    "orders",
    [
        (17, 90210),
        (-5, 1_000_000),
        ("19.90", "1,234.50"),
        ("'A-1'", "'something else'"),
        ('"A-1"', '"something else"'),
        (uuid.UUID(int=1), uuid.UUID(int=2**127)),
        ("abc-123", "xyz-9"),
        ("ORD-2024-77", "ORD-2025-9"),
        ("#17", "#4"),
        ("ab12cd34", "9f3e77aa"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"),
        ("cus_NffrFeUfNV2Hib", "cus_9s6XKzkNRiz8i3"),
        ("0x7f31594f5230", "0x7f"),
        ("ana@example.com", "bob.b+x@mail.example.co.uk"),
        ("2026-01-01T00:00:00.123456+00:00", "2025-12-31 23:59:59Z"),
        ("10.0.0.1:5432", "192.168.1.2:80"),
        ("[::1]:5432", "[fe80::1ff:fe23]:80"),
        ("[1, 2, 3]", "[4, 5]"),
        ("{'id': 1, 'name': 'Ana'}", "{'id': 2}"),
        ("30s", "1.5s"),
        ("“Ana”", "“Bob”"),
    ],
    ids=str,
)
def test_the_same_bug_with_another_order_is_one_group(orders: tuple[object, object]) -> None:
    assert group(lambda: charge(orders[0])) == group(lambda: charge(orders[1]))


def test_random_ids_of_any_usual_kind_make_a_handful_of_groups_not_thousands() -> None:
    random = Random(1)  # noqa: S311  the same ones each time
    for alphabet, length in (
        (string.hexdigits[:16], 8),
        (string.hexdigits[:16], 24),
        (string.ascii_letters + string.digits, 22),
    ):
        texts = {normalise("order " + "".join(random.choices(alphabet, k=length))) for _ in range(1000)}
        assert len(texts) < 50


def test_two_bugs_with_one_type_are_two_groups() -> None:
    assert group(lambda: charge(1)) != group(lambda: refund(1))


def test_one_line_that_fails_in_two_ways_is_two_groups() -> None:
    assert group(lambda: json.loads("{")) != group(lambda: json.loads("[1] 2"))


def test_another_type_queue_or_handler_is_another_group() -> None:
    first = group(lambda: charge(1))
    assert group(lambda: charge(1), queue="payments") != first
    assert group(lambda: charge(1), handler="other") != first
    assert group(lambda: int("x")) != group(lambda: {}["x"])  # type: ignore[index]  # a KeyError is the case


def wrapped(run: Callable[[], None]) -> None:
    try:
        run()
    except Exception as error:
        raise RuntimeError("the order failed") from error


def test_two_bugs_behind_one_wrapper_are_two_groups() -> None:
    assert group(lambda: wrapped(lambda: charge(1))) == group(lambda: wrapped(lambda: charge(2)))
    assert group(lambda: wrapped(lambda: charge(1))) != group(lambda: wrapped(lambda: refund(1)))


def in_a_task_group(run: Callable[[], None]) -> None:
    async def handler() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(run))

    asyncio.run(handler())


def test_two_bugs_inside_a_task_group_are_two_groups() -> None:
    first = group(lambda: in_a_task_group(lambda: charge(1)))
    assert first == group(lambda: in_a_task_group(lambda: charge(2)))
    assert first != group(lambda: in_a_task_group(lambda: refund(1)))


def loaded(path: Path, source: str) -> Any:
    path.write_text(source)
    names: dict[str, Any] = {}
    exec(compile(source, str(path), "exec"), names)  # noqa: S102  as an import would, without its cache
    return names["handle"]


SOURCE = (
    "def handle(order):\n    if order:\n        raise ValueError('bad order')\n    raise ValueError('bad order')\n"
)


def test_a_group_survives_edits_above_the_line_and_another_folder(tmp_path: Path) -> None:
    (tmp_path / "release-1").mkdir()
    (tmp_path / "release-2").mkdir()
    before = loaded(tmp_path / "release-1" / "shop.py", SOURCE)
    after = loaded(tmp_path / "release-2" / "shop.py", "import os\n\n\n# a comment\n" + SOURCE)
    assert group(lambda: before(1)) == group(lambda: after(1))


def test_without_source_two_lines_of_one_function_are_still_two_groups(tmp_path: Path) -> None:
    handle = loaded(tmp_path / "shop.py", SOURCE)
    (tmp_path / "shop.py").unlink()
    assert group(lambda: handle(1)) != group(lambda: handle(0))


def test_the_place_is_the_innermost_frame_of_the_teams_own_code() -> None:
    def parse() -> None:
        json.loads("{")

    def parse_elsewhere() -> None:
        json.loads("{")

    assert group(parse) != group(parse_elsewhere)


def test_a_failure_without_any_frame_has_a_group() -> None:
    failure = capture(OrderFailed(), attempt=1, at=NOW, kind=FailureKind.PERMANENT, handler="h", host=Host())
    found = fingerprint(failure, queue="q")
    assert len(found.id) == 32
    assert found.title == "OrderFailed"


def test_the_title_says_the_type_and_what_does_not_vary() -> None:
    title = fingerprint(failed(lambda: charge(17)), queue="q").title
    assert title == "OrderFailed: order <n> cannot be charged"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("can't find it, won't try", "can't find it, won't try"),
        ("HTTP 404", "HTTP <n>"),
        ("Expected `int`, got `str` - at `$.total`", "Expected `int`, got `str` - at `$.total`"),
        ("took 250ms of 1.5s, 50%", "took <n>ms of <n>s, <n>%"),
        ("missing 'name', 'age' in 'person'", "missing <list> in <value>"),
        ("  a\n\tb  ", "a b"),
        ("card declined", "card declined"),
        ("", ""),
    ],
)
def test_only_what_varies_is_taken_out(text: str, told: str) -> None:
    assert normalise(text) == told


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_quotation_that_was_cut_off_is_a_value_too(quote: str) -> None:
    one, other = (f"invalid payload: {quote}{letter * 2**20}{quote}" for letter in "ab")
    assert normalise(one) == normalise(other) == "invalid payload: <value>"


@pytest.mark.parametrize(
    "hostile",
    [
        "a" * 2**20,
        "1" * 2**20,
        "'" * 2**20,
        "a@" * 2**19,
        "\ud800" * 2**20,
        "0:" * 2**19,
        "<n>, " * 2**18,
        "-_" * 2**19,
    ],
    ids=lambda text: ascii(text[:4]),
)
def test_a_hostile_text_of_a_mebibyte_is_bounded(hostile: str) -> None:
    assert len(normalise(hostile)) <= MAX_INPUT * 8
    found = fingerprint(failed(lambda: charge(hostile)), queue="q")
    assert len(found.title) <= MAX_TITLE
    assert len(found.id) == 32
    assert found.title.encode()


@given(st.text(st.characters(), max_size=300))
@example("\x00\x1f\ud800")
@example("“«'\"`")
def test_any_text_can_be_normalised(text: str) -> None:
    told = normalise(text)
    told.encode()
    assert not set(told) & set(string.digits)


@given(
    st.lists(
        st.sampled_from(["order", "17", "'x'", "a-1", "ab12", "1.5s", "(", "]", ",", ":", "x@y.zz"]), max_size=12
    )
)
def test_what_is_normalised_stays_as_it_is(words: list[str]) -> None:
    once = normalise(" ".join(words))
    assert normalise(once) == once


PIECES = st.sampled_from(
    [
        "7",
        "19",
        "2026",
        "-",
        ".",
        ":",
        "e",
        "+",
        "ab",
        "ms",
        "%",
        " ",
        "'",
        '"',
        "@x.com",
        "[",
        "]",
        "#",
        "_",
        "Z",
        "é",
        ",",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join), st.sampled_from("123456789"))
@example("2026-02-28T10:00:00.123Z from 10.0.0.1:5432, 1.5e9 ms, abc-12", "9")
def test_no_digit_counts_for_more_than_that_it_is_one(text: str, other: str) -> None:
    swapped = text.translate(str.maketrans(string.digits, other * 10))
    assert fingerprinting._normalised(swapped) == normalise(text)
    assert not set(normalise(text)) & set(string.digits)


@pytest.mark.parametrize(
    "text",
    [
        "11111111-2222-4333-8444-555555555555",
        "order AAAAAAAA-2222-4333-8444-55555555555F!",
        "x11111111-2222-4333-8444-555555555555",
        "é11111111-2222-4333-8444-555555555555é",
        "11111111-2222-4333-8444-5555555555556",
    ],
)
def test_an_id_in_the_usual_layout_is_one_where_a_word_begins_and_ends(text: str) -> None:
    whole = re2.sub(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>", text)
    assert ("<uuid>" in whole) == ("<uuid>" in normalise(text))
