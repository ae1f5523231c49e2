from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from redrive.settings import BrokerSettings
from redrive.sqs_settings import SqsSettings


def test_the_scheme_tells_that_it_is_sqs() -> None:
    broker = BrokerSettings.model_validate({"url": "sqs://eu-west-1"})
    assert (broker.on_sqs, broker.has_server, broker.on_kafka, broker.on_rabbitmq) == (True, True, False, False)


@pytest.mark.parametrize("endpoint", ["none", "http://127.0.0.1:5000", "https://sqs.example"])
def test_an_endpoint_is_an_address_or_none(endpoint: str) -> None:
    found = SqsSettings.model_validate({"endpoint": endpoint}).endpoint
    assert found == (None if endpoint == "none" else endpoint)


@pytest.mark.parametrize(
    "wrong",
    [
        {"endpoint": "sqs.example"},
        {"endpoint": "https://user:hunter2@sqs.example"},
        {"endpoint": 5},
        {"visibility": "0s"},
        {"visibility": "13h"},
        {"wait": "0s"},
        {"wait": "21s"},
        {"max_receive_count": 0},
        {"declare": "sometimes"},
    ],
)
def test_what_sqs_does_not_take_is_refused_without_being_quoted(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        SqsSettings.model_validate(wrong)
    assert "hunter2" not in str(refused.value)
