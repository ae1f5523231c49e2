"""To which group of a FIFO queue a message goes, and what SQS takes for a repetition of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.control import RedriveTicket, stamp
from redrive.message import Message
from redrive.sqs_origin import Origin, properties_of
from redrive.transports import Names
from redrive.transports.sqs.fifo import ENDING, NO_KEY, deduplication_of, group_of

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
ALLOWED = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")
NAMES = Names(ending=ENDING)


def a_message(**given_: Any) -> Message:
    usual: dict[str, Any] = {"id": "m-1", "queue": "orders.fifo", "body": b"{}", "sent_at": NOW}
    return Message(**(usual | given_))


def redriven(redrive_id: str = "0192", **given_: Any) -> Message:
    message = a_message(**given_)
    return message.with_headers(
        stamp(message.headers, RedriveTicket(redrive_id, "letter", 1, "orders.fifo"), b"k")
    )


@pytest.mark.parametrize("key", [b"customer-17", b"~!", b"x" * 128])
def test_a_key_that_sqs_takes_is_the_group(key: bytes) -> None:
    assert group_of(a_message(key=key)) == key.decode()


KEYS = st.one_of(
    st.none(),
    st.binary(max_size=200),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=3).map(lambda key: group_of(a_message(key=key)).encode()),
    st.just(NO_KEY.encode()),
)


@given(KEYS, KEYS)
def test_each_key_has_a_group_of_its_own_that_sqs_takes(one: bytes | None, other: bytes | None) -> None:
    groups = group_of(a_message(key=one)), group_of(a_message(key=other))
    assert (groups[0] == groups[1]) == (one == other)
    assert all(ALLOWED.fullmatch(group) for group in groups)


@pytest.mark.parametrize("group", ["customer-17", "redrive:of somebody else's", NO_KEY])
def test_the_group_that_a_message_came_with_is_kept(group: str) -> None:
    origin = Origin("orders.fifo", "sqs-1", system={"MessageGroupId": group})
    key = None if group == NO_KEY else group.encode()
    assert group_of(a_message(key=key, properties=properties_of(origin))) == group


def test_a_key_that_was_edited_is_the_group() -> None:
    origin = Origin("orders.fifo", "sqs-1", system={"MessageGroupId": "before"})
    assert group_of(a_message(key=b"after", properties=properties_of(origin))) == "after"


def test_a_redrive_that_is_repeated_has_one_id_and_everything_else_one_of_its_own() -> None:
    assert deduplication_of(redriven()) == deduplication_of(redriven())
    others = [
        redriven("0193"),
        redriven(id="m-2"),
        redriven(body=b"[]"),
        redriven(key=b"k"),
        a_message(),
        a_message(),
    ]
    ids = {deduplication_of(message) for message in (redriven(), *others)}
    assert len(ids) == 7
    assert all(ALLOWED.fullmatch(each) for each in ids)


@pytest.mark.parametrize("forged", ["", "a b", "x" * 500, "ä", 7, b"0192"])
def test_what_cannot_be_a_redrives_id_is_not_used(forged: Any) -> None:
    message = a_message(headers=(("x-redrive-id", forged),))
    assert deduplication_of(message) != deduplication_of(message)


@pytest.mark.parametrize(
    ("queue", "retry", "dead"),
    [("orders", "orders_retry", "orders_dlq"), ("orders.fifo", "orders_retry.fifo", "orders_dlq.fifo")],
)
def test_queues_beside_a_fifo_queue_are_called_as_fifo_queues_are(queue: str, retry: str, dead: str) -> None:
    assert (NAMES.retry_of(queue), NAMES.dead_of(queue)) == (retry, dead)
    assert (NAMES.home_of_retry(retry), NAMES.home_of_dead(dead)) == (queue, queue)
    assert NAMES.home_of_dead(queue) is None


def test_the_templates_of_the_settings_hold_for_fifo_queues() -> None:
    names = Names(retry="{queue}-again", dead="dlq-{queue}", ending=ENDING)
    assert (names.dead_of("orders.fifo"), names.dead_of("orders")) == ("dlq-orders.fifo", "dlq-orders")
    assert (names.home_of_dead("dlq-orders.fifo"), names.home_of_dead("dlq-.fifo")) == ("orders.fifo", None)


def test_where_no_name_ends_so_dots_are_part_of_it() -> None:
    assert Names().dead_of("orders.fifo") == "orders.fifo_dlq"
