from __future__ import annotations

import sys
from typing import Any

import pytest
from pydantic import ValidationError

from redrive.errors import MissingExtra
from redrive.servicebus_settings import ServiceBusSettings
from redrive.servicebus_wiring import transport_options
from redrive.settings import BrokerSettings, Settings
from redrive.transports import open_transport


def test_the_scheme_tells_that_it_is_service_bus() -> None:
    broker = BrokerSettings.model_validate({"url": "servicebus://shop"})
    assert (broker.on_servicebus, broker.has_server, broker.on_sqs, broker.on_rabbitmq) == (
        True,
        True,
        False,
        False,
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"administration": "http://127.0.0.1:5300"},
        {"administration": "https://user:hunter2@host"},
        {"administration": "https://host/path"},
        {"administration": 5},
        {"connection_string": ["hunter2"]},
        {"max_delivery_count": 0},
        {"max_delivery_count": 2001},
        {"lock_duration": "4s"},
        {"lock_duration": "6m"},
    ],
)
def test_what_service_bus_does_not_take_is_refused_without_being_quoted(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        ServiceBusSettings.model_validate(wrong)
    assert "hunter2" not in str(refused.value)


def test_dead_letters_can_be_service_buss_own_and_no_other_subqueue_can_be_named() -> None:
    """S2's DeadLetterQueueSuffix."""
    own = {"url": "servicebus://shop", "dead_letter_queue": "{queue}/$DeadLetterQueue"}
    assert BrokerSettings.model_validate(own).names.dead_of("orders") == "orders/$DeadLetterQueue"
    for wrong in ("x{queue}/$DeadLetterQueue", "{queue}/$Transfer/$DeadLetterQueue", "{queue}$"):
        with pytest.raises(ValidationError, match="should name no subqueue"):
            BrokerSettings.model_validate(own | {"dead_letter_queue": wrong})


@pytest.mark.parametrize("value", [True, "true", 1])
def test_auto_complete_is_refused_with_what_would_be_lost(value: object) -> None:
    assert not ServiceBusSettings.model_validate({"auto_complete": False}).auto_complete
    with pytest.raises(ValidationError, match="killed before its dead letter is written"):
        ServiceBusSettings.model_validate({"auto_complete": value})


def test_the_driver_gets_the_key_and_nobody_else_sees_it() -> None:
    told = {"connection_string": "hunter2", "administration": "https://127.0.0.1:5300/", "tls_ca": "/ca.pem"}
    settings = Settings.model_validate({"broker": {"url": "servicebus://shop", "servicebus": told}})
    assert "hunter2" not in repr(settings)
    options = transport_options(settings)
    assert (options["connection_string"], options["administration"]) == ("hunter2", "127.0.0.1:5300")
    assert options["ca"] == "/ca.pem"


def test_without_its_packages_it_says_which_extra_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("redrive.transports.servicebus.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "azure.servicebus", None)
    with pytest.raises(MissingExtra) as missing:
        open_transport("servicebus://shop")
    assert "pip install 'redrive[servicebus]'" in missing.value.remedy
