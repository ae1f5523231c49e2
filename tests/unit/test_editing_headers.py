from __future__ import annotations

import pytest

from redrive.control import OURS
from redrive.header_class import HeaderClass, header_class


@pytest.mark.parametrize(
    "name",
    [
        *sorted(OURS),
        "x-redrive",
        "X-REDRIVE-anything",
        "x_redrive_id",
        "x-death",
        "X-Death",
        "x-first-death-queue",
        "x-last-death-reason",
        "x-delivery-count",
        "CC",
        "BCC",
        "id",
        "message-id",
        "messageId",
        "message_id",
        "X-Correlation-ID",
        "NServiceBus.MessageId",
        "MT-MessageId",
        "Idempotency-Key",
        "ce_id",
    ],
)
def test_locked(name: str) -> None:
    assert header_class(name) is HeaderClass.LOCKED


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "proxy-authorization",
        "Cookie",
        "set-cookie",
        "X-Auth-Token",
        "access_token",
        "api-key",
        "jwt",
    ],
)
def test_sensitive(name: str) -> None:
    assert header_class(name) is HeaderClass.SENSITIVE


@pytest.mark.parametrize(
    "name", ["tenant", "x-retry-reason", "content-type", "customer_id", "", "x", "é", "accept"]
)
def test_free(name: str) -> None:
    assert header_class(name) is HeaderClass.FREE
