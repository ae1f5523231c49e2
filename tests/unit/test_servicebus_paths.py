from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.servicebus_paths import parse


@pytest.mark.parametrize(
    ("path", "parent", "beside", "subqueue"),
    [
        ("orders", "orders", "orders", ""),
        ("shop/orders", "shop/orders", "shop/orders", ""),
        ("orders/$DeadLetterQueue", "orders", "orders", "$DeadLetterQueue"),
        ("orders/$deadletterqueue", "orders", "orders", "$DeadLetterQueue"),
        ("orders/$Transfer/$DeadLetterQueue", "orders", "orders", "$Transfer/$DeadLetterQueue"),
        ("events/Subscriptions/mail", "events/Subscriptions/mail", "events.mail", ""),
        (
            "events/subscriptions/mail/$DeadLetterQueue",
            "events/Subscriptions/mail",
            "events.mail",
            "$DeadLetterQueue",
        ),
        ("/$DeadLetterQueue", "/$DeadLetterQueue", "/$DeadLetterQueue", ""),
        ("events/Subscriptions/", "events/Subscriptions/", "events/Subscriptions/", ""),
    ],
)
def test_a_path_is_an_entity_and_perhaps_its_subqueue(path: str, parent: str, beside: str, subqueue: str) -> None:
    found = parse(path)
    assert (found.parent, found.beside, found.subqueue) == (parent, beside, subqueue)


@given(st.text(st.sampled_from("aS/$")) | st.text())
def test_whatever_is_written_is_a_path(path: str) -> None:
    found = parse(path)
    assert parse(found.parent).parent == found.parent
