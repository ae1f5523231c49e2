"""Which topics retries wait in, and which are read for them, in each of the three modes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from redrive.errors import ConfigurationError
from redrive.kafka_settings import KafkaSettings
from redrive.transports import Names
from redrive.transports.inspection import ExpectedQueue
from redrive.transports.kafka.inspector import KafkaInspector
from redrive.transports.kafka.retry_topics import MODES, RetryTopics
from redrive.transports.kafka.transport import KafkaTransport


@pytest.mark.parametrize(
    ("mode", "topics"),
    [
        ("per-delay", ["orders_retry", "orders_retry_5s"]),
        ("single", ["orders_retry", "orders_retry"]),
        ("blocking", ["orders_retry", "orders_retry"]),
    ],
)
def test_what_waits_in_a_topic_waits_where_its_mode_says(mode: str, topics: list[str]) -> None:
    retries = RetryTopics(Names(), mode)
    assert [retries.topic("orders", delay) for delay in (0, 4.5)] == topics
    assert set(topics) <= set(retries.all_of("orders"))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_read_is_what_there_may_be(mode: str) -> None:
    retries = RetryTopics(Names(retry="{queue}.retry"), mode)
    for topic in retries.all_of("orders"):
        assert re.search(retries.pattern("orders"), topic)
    assert not re.search(retries.pattern("orders"), "orders_retry")


def test_a_mode_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="retry_topics = 'both' is not possible"):
        KafkaTransport("kafka://h", retry_topics="both")
    told: dict[str, Any] = {"retry_topics": "both"}
    with pytest.raises(ValidationError):
        KafkaSettings(**told)
    for mode in MODES:
        KafkaSettings.model_validate({"retry_topics": mode})


@pytest.mark.parametrize(("mode", "longest"), [("per-delay", 0.0), ("single", 3600.0), ("blocking", 0.0)])
def test_the_doctor_asks_for_no_longer_retention_than_messages_wait_in_a_topic(mode: str, longest: float) -> None:
    inspector = KafkaInspector("", KafkaTransport("kafka://h", retry_topics=mode))
    examined = inspector._examined(ExpectedQueue(name="orders", waits=3600.0))
    assert examined.retries["orders_retry"] == longest
