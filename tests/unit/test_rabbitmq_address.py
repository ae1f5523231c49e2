"""Addresses of brokers: what people write in them, and what nobody may read out of an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.errors import ConfigurationError
from redrive.transports.rabbitmq.address import Host, parse

CANARY = "secret-canary"


def test_everything_written_out() -> None:
    found = parse("amqps://shop:pa%40ss%3A%2F@rabbit.example:5999/eu%2Fwest")
    assert found.hosts == (Host("rabbit.example", 5999),)
    assert (found.user, found.password, found.vhost, found.secure) == ("shop", "pa@ss:/", "eu/west", True)


@pytest.mark.parametrize(("scheme", "port"), [("amqp", 5672), ("amqps", 5671)])
def test_what_is_left_out_is_the_usual(scheme: str, port: int) -> None:
    found = parse(f"{scheme}://rabbit")
    assert found.hosts == (Host("rabbit", port),)
    assert (found.user, found.password, found.vhost) == ("guest", "guest", "/")


@pytest.mark.parametrize(
    ("path", "vhost"),
    [("", "/"), ("/", "/"), ("/%2F", "/"), ("/shop", "shop"), ("/%2Fa%2Fb", "/a/b"), ("/%20", " ")],
)
def test_vhosts(path: str, vhost: str) -> None:
    assert parse(f"amqp://rabbit{path}").vhost == vhost


def test_several_hosts_with_commas_each_with_its_port() -> None:
    assert parse("amqp://u:p@one, two:5673,[::1]:5674,[fe80::1],three/v").hosts == (
        Host("one", 5672),
        Host("two", 5673),
        Host("::1", 5674),
        Host("fe80::1", 5672),
        Host("three", 5672),
    )


def test_a_host_is_shown_so_that_it_can_be_written_again() -> None:
    assert [str(host) for host in parse("amqp://[::1]:1,a:2").hosts] == ["[::1]:1", "a:2"]


def test_a_password_with_an_at_sign_ends_at_the_last_one() -> None:
    found = parse("amqp://u:a@b@host/")
    assert (found.user, found.password, found.hosts) == ("u", "a@b", (Host("host", 5672),))


WRONG = [
    "",
    "amqp://",
    "amqp:///vhost",
    f"http://u:{CANARY}@host/",
    f"amqp://u:{CANARY}@/v",
    f"amqp://u:{CANARY}@host,/v",
    f"amqp://u:{CANARY}@host:port/v",
    f"amqp://u:{CANARY}@host:0/v",
    f"amqp://u:{CANARY}@host:70000/v",
    f"amqp://u:{CANARY}@host:٣/v",
    f"amqp://u:{CANARY}@[::1/v:x",
    f"amqp://u:{CANARY}@host/a/b",
    f"amqp://u:{CANARY}@host/v?heartbeat=1",
    f"amqp://u:{CANARY}/@host/v",
]


@pytest.mark.parametrize("url", WRONG)
def test_what_is_no_address_says_how_one_looks_and_quotes_no_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        parse(url)
    assert "amqp://user:password@host:5672/vhost" in (wrong.value.remedy or "")
    assert CANARY not in f"{wrong.value} {wrong.value.remedy} {wrong.value!r}"


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_mistake_in_the_settings(text: str) -> None:
    for url in (text, f"amqp://{text}", f"amqp://u:{CANARY}@{text}"):
        try:
            found = parse(url)
        except ConfigurationError as error:
            assert CANARY not in str(error)  # noqa: PT017  either way is right
        else:
            assert CANARY not in repr(found)
            assert found.hosts


def test_an_address_shows_no_password() -> None:
    assert CANARY not in repr(parse(f"amqp://u:{CANARY}@host"))
