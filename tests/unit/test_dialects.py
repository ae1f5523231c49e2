"""What is read out of dead letters, whoever wrote them, and whatever they hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.dialects import DIALECTS, Arrival, Reading, read
from redrive.failure import FailureKind, encode_trail
from redrive.fingerprint import fingerprint
from redrive.message import Envelope, ErrorNote, Message, Overlay
from redrive.servicebus_origin import DeadLettered
from redrive.servicebus_origin import Origin as OfServiceBus
from redrive.servicebus_origin import properties_of as properties_of_service_bus
from redrive.sqs_origin import Origin, properties_of
from redrive.testing.letters import NOON, a_failure
from redrive.transports import Names

NOW = NOON + timedelta(days=1)
FIVE_PAST = NOON + timedelta(minutes=5)


def found(
    body: bytes | None = b"{}", *, lay_in: str = "orders_dlq", trail: bytes | None = None, **fields: Any
) -> Reading:
    usual: dict[str, Any] = {"id": "m-1", "queue": lay_in, "body": body, "sent_at": NOON}
    message = Message(**(usual | fields))
    return read(Arrival(message=message, queue=lay_in, home_of_dead=Names().home_of_dead, now=NOW, trail=trail))


def died(**told: Any) -> dict[str, Any]:
    """As the broker writes it."""
    usual = {"queue": "orders", "reason": "rejected", "count": 1, "time": NOON, "exchange": "shop"}
    return usual | {"routing-keys": ["orders.new"]} | told


def native(*deaths: Any, lay_in: str = "orders_dlq", **first: Any) -> Reading:
    headers = (("x-death", list(deaths)), *((f"x-first-death-{key}", value) for key, value in first.items()))
    return found(lay_in=lay_in, headers=headers)


def an_envelope(**fields: Any) -> bytes:
    usual: dict[str, Any] = {
        "message_id": "m-1",
        "timestamp": "2026-01-01T10:00:00.000+00:00",
        "version": "1.0",
        "source": "checkout",
        "queue": "orders",
        "data": {"order_id": 123},
        "metadata": {},
        "error": ErrorNote("Connection refused", "500", "PDOException\n  at line 7"),
        "retry_count": 3,
    }
    assert set(usual) == set(Envelope.__struct_fields__)
    return msgspec.json.encode(usual | fields)


ARN = "arn:aws:sqs:eu-west-1:123456789012"


def sqs_said(**system: str) -> bytes:
    return properties_of(Origin("orders_dlq", "m-1", None, {}, system))


def service_bus_said(dead: DeadLettered | None = None, *, entity: str = "orders/$DeadLetterQueue") -> bytes:
    return properties_of_service_bus(OfServiceBus(entity=entity, sequence=1, dead=dead))


TRACED = (("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), ("tracestate", b"a=1"))
DIED: dict[str | None, dict[str, Any]] = {
    "redrive": {"trail": encode_trail((a_failure(),), 64_000)},
    "envelope": {"body": an_envelope()},
    "rabbitmq": {"headers": (("x-death", [died()]), *TRACED)},
    "aws": {"headers": (("RequestID", "r-1"), ("ErrorCode", "200"), ("ErrorMessage", "boom"), *TRACED)},
    "sqs": {"properties": sqs_said(DeadLetterQueueSourceArn=f"{ARN}:orders")},
    "azure-servicebus": {"properties": service_bus_said(DeadLettered("NoCustomer"))},
    None: {},
}


@pytest.mark.parametrize("dialect", DIED)
def test_whoever_wrote_a_dead_letter_it_stays_in_its_trace(dialect: str | None) -> None:
    reading = found(**{"headers": TRACED} | DIED[dialect])

    assert reading.dialect == dialect
    assert reading.message.headers[-2:] == TRACED


def test_no_dialect_is_without_its_dead_letter() -> None:
    assert {each.NAME for each in DIALECTS} == {*DIED} - {None}


# Ours


def test_a_dead_letter_of_our_own_consumer_keeps_its_whole_story() -> None:
    failures = (a_failure(1), a_failure(2, at=FIVE_PAST))

    reading = found(trail=encode_trail(failures, 64_000))

    assert (reading.dialect, reading.home, reading.handler) == ("redrive", "orders", "charge")
    assert reading.failures == failures
    assert reading.first_attempt_at == NOON
    assert (reading.warnings, reading.quarantine) == ((), None)


@pytest.mark.parametrize(
    ("lay_in", "made_for", "home"),
    [
        ("orders_dlq", "refunds", "orders"),  # the queue whose consumer failed, not the one it was made for
        ("orders.limbo", "orders", "orders"),
        ("orders.limbo", "orders_dlq", "orders.limbo"),
        ("orders.limbo", "", "orders.limbo"),
    ],
)
def test_ours_goes_back_to_the_queue_it_failed_in(lay_in: str, made_for: str, home: str) -> None:
    reading = found(lay_in=lay_in, queue=made_for, trail=encode_trail((a_failure(),), 64_000))

    assert reading.home == home


def test_a_copy_of_ours_says_which_letter_it_is_a_copy_of() -> None:
    assert (
        found(trail=encode_trail((a_failure(),), 64_000, identity="broker:1/charge")).identity == "broker:1/charge"
    )
    assert found(trail=encode_trail((a_failure(),), 64_000)).identity is None
    assert found(trail=encode_trail((a_failure(),), 64_000, identity="x" * 5000)).identity is None


def test_without_its_trail_the_last_error_of_ours_is_still_known() -> None:
    overlay = Overlay(ErrorNote("no customer", "shop.NoCustomer", "File charge.py\nNoCustomer"), 4)

    reading = found(b"\xff", overlay=overlay, trail=b"\xc1 no trail")

    [failure] = reading.failures
    assert (reading.dialect, failure.type, failure.text) == ("redrive", "shop.NoCustomer", "no customer")
    assert (failure.attempt, failure.at) == (4, NOW)
    assert [frame.source for frame in failure.frames] == ["File charge.py", "NoCustomer"]
    assert reading.warnings == ("the trail of its failures cannot be read",)


# S3's envelope


def test_s3_the_envelope_tells_error_retries_and_queue() -> None:
    body = an_envelope()

    reading = found(body, lay_in="dead-stuff")

    [failure] = reading.failures
    assert (reading.dialect, reading.home, reading.handler) == ("envelope", "orders", "unknown")
    assert (failure.type, failure.text, failure.attempt) == ("500", "Connection refused", 3)
    assert failure.at == datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert "PDOException" in failure.trace
    assert reading.message.body == body
    assert reading.warnings == ()


@pytest.mark.parametrize("queue", ["", "orders_dlq", "a\nb", "q" * 300])
def test_s3_a_queue_that_nothing_can_be_sent_back_to_is_not_believed(queue: str) -> None:
    reading = found(an_envelope(queue=queue))

    assert reading.home == "orders"
    assert reading.warnings == ("the envelope names no queue that it could go back to",)


@pytest.mark.parametrize("timestamp", ["yesterday", "", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_s3_a_time_that_cannot_be_read_is_no_obstacle(timestamp: str) -> None:
    reading = found(an_envelope(timestamp=timestamp))

    assert reading.failures[0].at in {NOON, NOW}


def test_s3_an_envelope_that_tells_of_no_failure_is_left_to_the_others() -> None:
    fresh = an_envelope(error=None, retry_count=0)

    assert found(fresh, headers=(("x-death", [died()]),)).dialect == "rabbitmq"
    assert found(fresh).dialect is None


# RabbitMQ's x-death


def test_x_death_of_a_rejected_message() -> None:
    reading = native(died(count=2), queue="orders", reason="rejected")

    [failure] = reading.failures
    assert (reading.dialect, reading.home, reading.handler) == ("rabbitmq", "orders", "unknown")
    assert (failure.type, failure.kind) == ("rabbitmq.rejected", FailureKind.PERMANENT)
    assert failure.text == "rejected in queue 'orders' (count 2), published to exchange 'shop'"
    assert (failure.attempt, failure.at) == (2, NOON)
    assert reading.first_attempt_at == NOON
    assert reading.warnings == ()


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("rejected", FailureKind.PERMANENT),
        ("delivery_limit", FailureKind.PERMANENT),
        ("expired", FailureKind.TRANSIENT),
        ("maxlen", FailureKind.TRANSIENT),
    ],
)
def test_the_reason_is_the_failures_type(reason: str, kind: FailureKind) -> None:
    [failure] = native(died(reason=reason)).failures

    assert (failure.type, failure.kind) == (f"rabbitmq.{reason}", kind)


def test_attempts_are_the_sum_of_all_counts_and_failures_are_told_oldest_first() -> None:
    reading = native(died(queue="orders.wait", reason="expired", count=3, time=FIVE_PAST), died(count=4))

    assert [(each.type, each.attempt) for each in reading.failures] == [
        ("rabbitmq.rejected", 4),
        ("rabbitmq.expired", 7),
    ]
    assert reading.first_attempt_at == NOON


def test_however_often_it_died_of_the_same_cause_it_is_one_group() -> None:
    once, often = (native(died(count=count)).failures[-1] for count in (1, 12))

    assert fingerprint(once, queue="orders").id == fingerprint(often, queue="orders").id


@pytest.mark.parametrize(
    "deaths",
    [
        [died(queue="orders.deadletter", reason="expired", count=3), died(count=3)],
        [
            died(count=3),
            died(queue="orders.deadletter", reason="expired", count=2),
        ],  # the rejection was counted last
        [died(), died(queue="orders.wait", reason="expired")],  # a producer that waits before it sends
    ],
)
def test_in_a_loop_home_is_the_queue_whose_consumer_rejected_it(deaths: list[Any]) -> None:
    assert native(*deaths, lay_in="orders.limbu", queue="orders.wait").home == "orders"


def test_without_a_rejection_home_is_the_queue_of_the_first_death() -> None:
    expired = [died(queue="late", reason="expired"), died(queue="orders", reason="maxlen")]

    assert native(*expired, lay_in="limbo").home == "orders"
    assert native(*expired, lay_in="limbo", queue="late").home == "late"


@pytest.mark.parametrize(
    "told",
    [
        "rejected",
        None,
        [],
        ["rejected"],
        [{}],
        [{"queue": 1, "reason": 2, "count": "3", "time": "noon"}],
        [{"queue": "", "reason": "", "count": -1, "time": None}],
        [{"queue": "orders", "reason": "rejected", "count": 2**80}],
    ],
)
def test_what_a_client_wrote_under_that_name_gives_what_can_be_read_and_a_warning(told: Any) -> None:
    reading = found(headers=(("x-death", told),))

    assert reading.dialect == "rabbitmq"
    assert reading.home == "orders"
    assert reading.failures
    assert reading.warnings


def test_first_death_alone_is_enough_to_go_by() -> None:
    headers = (("x-death", 7), ("x-first-death-queue", "orders"), ("x-first-death-reason", "expired"))

    reading = found(lay_in="limbo", headers=headers)

    assert (reading.home, reading.failures[0].type) == ("orders", "rabbitmq.expired")


def test_names_that_came_as_bytes_are_names() -> None:
    assert native(died(queue=b"orders", reason=b"rejected"), lay_in="limbo").home == "orders"


def test_nothing_has_failed_in_the_future() -> None:
    assert native(died(time=NOW + timedelta(days=400))).failures[0].at == NOW


def test_a_time_without_a_zone_is_utc() -> None:
    assert native(died(time=datetime(2026, 1, 1, 12))).failures[0].at == NOON  # noqa: DTZ001  it is the case


def test_a_reason_that_no_broker_gives_is_told_and_is_no_type() -> None:
    [failure] = native(died(reason="bad\x1b[31m" * 100)).failures

    assert failure.type == "rabbitmq.dead"
    assert failure.text.startswith("bad")


# Of AWS


def test_a_dead_letter_of_sqs_goes_back_to_the_queue_it_was_received_from() -> None:
    source = f"{ARN}:orders"
    reading = found(
        lay_in="limbo", properties=sqs_said(DeadLetterQueueSourceArn=source, ApproximateReceiveCount="6")
    )

    assert (reading.dialect, reading.home, reading.quarantine) == ("sqs", "orders", None)
    [failure] = reading.failures
    assert (failure.type, failure.attempt, failure.at) == ("sqs.MaxReceiveCount", 5, NOON)


@pytest.mark.parametrize("receptions", ["", "x", "-1", "9" * 30, "٣", "1"])
def test_a_count_that_is_none_is_one_attempt(receptions: str) -> None:
    told = sqs_said(DeadLetterQueueSourceArn="no arn", ApproximateReceiveCount=receptions)
    reading = found(properties=told)

    assert (reading.home, reading.failures[0].attempt) == ("orders", 1)
    assert reading.warnings == ("DeadLetterQueueSourceArn names no queue that it could go back to",)


def test_an_event_that_a_rule_could_not_deliver_to_a_queue_goes_to_that_queue() -> None:
    told = {
        "RULE_ARN": "arn:aws:events:eu-west-1:123456789012:rule/orders",
        "TARGET_ARN": f"{ARN}:orders",
        "ERROR_CODE": "NO_PERMISSIONS",
        "ERROR_MESSAGE": "not allowed",
        "EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
        "RETRY_ATTEMPTS": "185",
    }
    reading = found(lay_in="undelivered", headers=tuple(told.items()))

    assert (reading.dialect, reading.home, reading.quarantine) == ("aws", "orders", None)
    [failure] = reading.failures
    assert (failure.type, failure.attempt) == ("eventbridge.NO_PERMISSIONS", 186)
    assert failure.text == "not allowed (MaximumRetryAttempts)"


def test_what_was_meant_for_no_queue_waits_for_a_person() -> None:
    target = "arn:aws:lambda:eu-west-1:123456789012:function:charge"
    told = (("SCHEDULE_ARN", "arn:aws:scheduler:..."), ("TARGET_ARN", target))
    reading = found(lay_in="undelivered", headers=told)

    assert reading.failures[0].type == "scheduler.Undelivered"
    assert reading.quarantine is not None
    assert reading.quarantine.endswith(f"names no queue to send it back to: it was meant for {target}")


INVOKED = (("ErrorCode", "200"), ("ErrorMessage", "KeyError: 'id'"), ("RequestID", "r-1"))


def test_an_invocation_of_lambda_that_failed_waits_for_a_person() -> None:
    reading = found(headers=INVOKED)

    assert (reading.failures[0].type, reading.failures[0].text) == ("lambda.200", "KeyError: 'id'")
    assert reading.quarantine == "lambda could not deliver it, and names no queue to send it back to"


def test_what_sns_could_not_deliver_is_told_from_lambda_by_its_envelope_and_tells_its_topic() -> None:
    topic = "arn:aws:sns:eu-west-1:123456789012:orders"
    body = {
        "Type": "Notification",
        "MessageId": "n-1",
        "TopicArn": topic,
        "Message": "{}",
        "SignatureVersion": "1",
    }
    reading = found(msgspec.json.encode(body), headers=INVOKED)

    assert reading.failures[0].type == "sns.200"
    assert reading.quarantine is not None
    assert reading.quarantine.endswith(f"names no queue to send it back to: it was published to {topic}")


UNDELIVERED = (("SCHEDULE_ARN", "arn:aws:scheduler:..."), ("TARGET_ARN", f"{ARN}:refunds"))


@pytest.mark.parametrize("told", [INVOKED, UNDELIVERED], ids=["invocation", "event"])
def test_where_sqs_says_whence_it_moved_a_message_nothing_in_the_message_says_otherwise(told: Any) -> None:
    said = sqs_said(DeadLetterQueueSourceArn=f"{ARN}:orders")
    reading = found(lay_in="limbo", properties=said, headers=told)

    assert (reading.dialect, reading.home, reading.quarantine) == ("sqs", "orders", None)
    assert reading.message.headers == told


def test_a_payload_that_the_scheduler_has_cut_off_waits_for_a_person_though_its_queue_is_known() -> None:
    whole, cut = (found(headers=(*UNDELIVERED, ("IS_PAYLOAD_TRUNCATED", said))) for said in ("false", "true"))

    assert (whole.home, whole.quarantine) == ("refunds", None)
    assert cut.home == "refunds"
    assert cut.quarantine is not None
    assert cut.quarantine.startswith("scheduler has cut off its payload")


# Of Azure Service Bus


@pytest.mark.parametrize(
    ("lay_in", "home"),
    [
        ("orders/$DeadLetterQueue", "orders"),
        ("orders/$Transfer/$DeadLetterQueue", "orders"),
        ("events/Subscriptions/mail/$deadletterqueue", "events/Subscriptions/mail"),
    ],
)
def test_a_dead_letter_of_a_subqueue_goes_back_to_its_entity(lay_in: str, home: str) -> None:
    told = DeadLettered("NoCustomer", "no customer 17", deliveries=3)
    reading = found(lay_in=lay_in, properties=service_bus_said(told, entity=lay_in))

    assert (reading.dialect, reading.home, reading.quarantine) == ("azure-servicebus", home, None)
    [failure] = reading.failures
    assert (failure.type, failure.text) == ("servicebus.NoCustomer", "no customer 17")
    assert (failure.attempt, failure.at, reading.warnings) == (3, NOON, ())


@pytest.mark.parametrize(
    ("reason", "type_", "kind"),
    [
        ("TTLExpiredException", "servicebus.TTLExpiredException", FailureKind.TRANSIENT),
        ("MaxDeliveryCountExceeded", "servicebus.MaxDeliveryCountExceeded", FailureKind.PERMANENT),
        ("HeaderSizeExceeded", "servicebus.HeaderSizeExceeded", FailureKind.PERMANENT),
        ("MaxTransferHopCountExceeded", "servicebus.MaxTransferHopCountExceeded", FailureKind.PERMANENT),
        ("Session ID is null", "servicebus.SessionIdIsNull", FailureKind.PERMANENT),
        ("no such customer: 17!", "servicebus.NoSuchCustomer17", FailureKind.PERMANENT),
        ("", "servicebus.DeadLettered", FailureKind.PERMANENT),
    ],
)
def test_a_reason_is_the_broker_s_or_what_a_consumer_wrote(reason: str, type_: str, kind: FailureKind) -> None:
    reading = found(lay_in="orders/$DeadLetterQueue", properties=service_bus_said(DeadLettered(reason)))

    [failure] = reading.failures
    assert (failure.type, failure.kind, failure.attempt) == (type_, kind, 1)
    assert failure.text == (reason or "dead-lettered without a description")


def test_what_could_not_be_forwarded_may_be_forwarded_later() -> None:
    lay_in = "orders/$Transfer/$DeadLetterQueue"
    [failure] = found(lay_in=lay_in, properties=service_bus_said(DeadLettered(), entity=lay_in)).failures

    assert (failure.type, failure.kind) == ("servicebus.NotForwarded", FailureKind.TRANSIENT)


def test_a_dead_letter_that_was_forwarded_goes_back_to_where_it_died() -> None:
    told = DeadLettered("MaxDeliveryCountExceeded", source="orders")
    reading = found(lay_in="graveyard", properties=service_bus_said(told, entity="graveyard"))

    assert (reading.dialect, reading.home, reading.warnings) == ("azure-servicebus", "orders", ())


def test_a_reason_without_a_place_goes_back_to_where_it_lay() -> None:
    reading = found(lay_in="graveyard", properties=service_bus_said(DeadLettered("x"), entity="graveyard"))

    assert (reading.home, reading.warnings) == (
        "graveyard",
        ("nothing tells the queue that it was dead-lettered in",),
    )


def test_what_lies_in_a_subqueue_is_dead_whatever_it_says() -> None:
    reading = found(lay_in="orders/$DeadLetterQueue", properties=b"of another broker")

    assert (reading.dialect, reading.home) == ("azure-servicebus", "orders")


# Nobody's


@pytest.mark.parametrize(
    ("lay_in", "made_for", "home"),
    [("orders_dlq", "refunds", "refunds"), ("orders_dlq", "orders_dlq", "orders"), ("limbo", "", "limbo")],
)
def test_what_nobody_understands_waits_in_quarantine(lay_in: str, made_for: str, home: str) -> None:
    reading = found(b"\xff\x00", lay_in=lay_in, queue=made_for)

    assert (reading.dialect, reading.home, reading.handler) == (None, home, "unknown")
    assert (
        reading.quarantine
        == "no dialect understands what it says of its failure (asked: redrive, envelope, rabbitmq, sqs, aws, "
        "azure-servicebus)"
    )
    assert reading.failures[0].text == reading.quarantine
    assert reading.message.body == b"\xff\x00"


def test_each_dialect_is_asked_once_by_a_name_of_its_own() -> None:
    assert len({dialect.NAME for dialect in DIALECTS}) == len(DIALECTS)


# Whatever it holds (R28)

times = st.datetimes(timezones=st.none() | st.just(UTC) | st.just(timezone(timedelta(hours=-12))))
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | times
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
deaths = st.dictionaries(st.sampled_from(["queue", "reason", "count", "time", "exchange", "routing-keys"]), values)
of_aws = ["RULE_ARN", "TARGET_ARN", "RETRY_ATTEMPTS", "RequestID", "ErrorCode"]
names = st.sampled_from(["x-death", "x-first-death-queue", "x-first-death-reason", *of_aws]) | st.text()
headers = st.lists(st.tuples(names, values | st.lists(deaths | values))).map(tuple)
trails = (
    st.none()
    | st.binary()
    | st.integers(-(2**40), 2**62).map(
        lambda attempt: encode_trail((a_failure(attempt),), 64_000, identity="x" * (attempt % 3))
    )
)
bodies = (
    st.none()
    | st.binary()
    | st.dictionaries(st.sampled_from(Envelope.__struct_fields__), values).map(
        lambda told: msgspec.json.encode({**msgspec.json.decode(an_envelope()), **told}, enc_hook=repr)
    )
)
queue_names = st.sampled_from(["orders", "orders_dlq", "limbo", ""]) | st.text()


@given(body=bodies, found_headers=headers, trail=trails, lay_in=queue_names.filter(bool), queue=queue_names)
def test_every_message_gives_a_letter(
    body: bytes | None, found_headers: Any, trail: bytes | None, lay_in: str, queue: str
) -> None:
    reading = found(body, lay_in=lay_in, trail=trail, queue=queue, headers=found_headers)

    assert reading.failures
    assert reading.home
    assert reading.handler
    assert all(failure.at <= NOW or reading.dialect == "redrive" for failure in reading.failures)
    assert reading.message.body == body
    assert reading.message.headers == found_headers
    fingerprint(reading.failures[-1], queue=reading.home)
    msgspec.msgpack.encode(reading.failures)
