"""Where `redrive serve` may listen (TH14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redrive.errors import ConfigurationError
from redrive.server_settings import ServerSettings
from redrive.serving import check_address

OTHERS = [
    *("0.0.0.0", "::", "192.168.1.7", ""),  # noqa: S104  nobody listens
    *("redrive.example.org", "localhost.example.org", "127.example.org"),
]
TLS: dict[str, Any] = {"tls_certificate": Path("cert.pem"), "tls_key": Path("key.pem")}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_this_machine_alone_needs_nothing(host: str) -> None:
    check_address(ServerSettings(host=host))


@pytest.mark.parametrize("host", OTHERS)
def test_whatever_others_can_reach_needs_tls_or_a_proxy(host: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_address(ServerSettings(host=host))

    assert "--tls-cert" in refused.value.remedy
    check_address(ServerSettings(host=host, **TLS))
    check_address(ServerSettings(host=host, behind_proxy=True))


@pytest.mark.parametrize("half", TLS)
def test_a_certificate_and_its_key_belong_together(half: str) -> None:
    with pytest.raises(ConfigurationError, match="belong together"):
        check_address(ServerSettings(**{half: TLS[half]}))
