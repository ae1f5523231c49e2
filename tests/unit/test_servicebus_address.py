from __future__ import annotations

import pytest

from redrive.errors import ConfigurationError
from redrive.transports.servicebus.address import parse


def test_a_namespace_with_its_policy_and_key() -> None:
    address = parse("servicebus://send:a%2Fb%2Bc=@shop.servicebus.windows.net")
    assert address.connection_string == (
        "Endpoint=sb://shop.servicebus.windows.net;SharedAccessKeyName=send;SharedAccessKey=a/b+c="
    )


def test_a_namespace_without_a_key_is_asked_for_by_identity() -> None:
    address = parse("servicebus://Shop/")
    assert (address.host, address.policy, address.key) == ("shop.servicebus.windows.net", "", "")
    assert parse("servicebus://shop.servicebus.chinacloudapi.cn").host == "shop.servicebus.chinacloudapi.cn"


def test_a_connection_string_brings_the_key() -> None:
    string = (
        "Endpoint=sb://Shop.servicebus.windows.net/;SharedAccessKeyName=p;SharedAccessKey=a/b+c=;EntityPath=orders"
    )
    assert parse("servicebus://shop", string) == parse("servicebus://p:a%2Fb%2Bc=@shop")


@pytest.mark.parametrize(
    ("url", "string"),
    [
        ("servicebus://shop", "secret"),
        ("servicebus://shop", "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessSignature=secret"),
        (
            "servicebus://shop",
            "Endpoint=sb://other.servicebus.windows.net;SharedAccessKeyName=p;SharedAccessKey=secret",
        ),
        (
            "servicebus://p:secret@shop",
            "Endpoint=sb://shop.servicebus.windows.net;SharedAccessKeyName=p;SharedAccessKey=secret",
        ),
    ],
)
def test_a_connection_string_that_does_not_fit_is_refused_without_being_quoted(url: str, string: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse(url, string)
    assert refused.value.remedy
    assert "secret" not in str(refused.value) + refused.value.remedy


def test_an_emulator_is_said_to_be_one() -> None:
    address = parse("servicebus-emulator://p:k@127.0.0.1:5672")
    assert address.connection_string.endswith(";UseDevelopmentEmulator=true")
    assert "127.0.0.1:5672" in address.connection_string


@pytest.mark.parametrize(
    "url",
    [
        "servicebus://",
        "servicebus://@shop",
        "servicebus://policy@shop",
        "servicebus://secret/path",
        "servicebus://policy:secret@",
        "servicebus://policy:secret@host/path",
        "servicebus://policy:secret;Endpoint=x@host",
        "servicebus://:secret@host",
        "sb://policy:secret@host",
    ],
)
def test_what_cannot_be_read_is_refused_with_its_remedy_and_without_the_key(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse(url)
    assert "servicebus://policy:key@NAME" in refused.value.remedy
    assert "secret" not in str(refused.value) + refused.value.remedy


def test_an_address_does_not_show_its_key() -> None:
    assert "secret" not in repr(parse("servicebus://policy:secret@host"))
