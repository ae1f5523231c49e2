"""Which messages must stay in order with which."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.ordering import OrderedBy
from redrive.testing.letters import a_message


def lane(by: str, queue: str = "orders", **message: Any) -> str | None:
    return OrderedBy.parse(by).lane(a_message(**message), queue)


def test_one_key_of_one_queue_is_one_lane() -> None:
    assert lane("key", key=b"17") == lane("key", key=b"17", body=b"another") != lane("key", key=b"18")
    assert lane("key", key=b"17") != lane("key", queue="mails", key=b"17")
    assert lane("key", queue="a", key=b"bc") != lane("key", queue="ab", key=b"c")


def test_a_key_that_is_empty_is_one_and_none_is_none() -> None:
    assert lane("key", key=b"") is not None
    assert lane("key", key=None) is None


@pytest.mark.parametrize("value", ["17", 17, b"17", True, 1.5, ["17"], {"a": 17}])
def test_a_header_of_any_type_can_be_the_key(value: Any) -> None:
    by = "header:tenant"
    assert lane(by, headers=(("tenant", value),)) == lane(by, headers=(("other", 1), ("tenant", value)))
    assert lane(by, headers=(("tenant", value),)) != lane(by, headers=(("tenant", "18"),))


def test_without_the_header_there_is_no_order() -> None:
    assert lane("header:tenant", headers=(("other", 1),)) is None
    assert lane("header:tenant", headers=(("tenant", None),)) is None


def test_a_key_cannot_be_read_from_its_lane() -> None:
    assert "ann@example.com" not in (lane("key", key=b"ann@example.com") or "")


@pytest.mark.parametrize("text", ["", "keys", "header", "header:", "data.id"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither 'key' nor 'header:NAME'"):
        OrderedBy.parse(text)
