"""What the broker says of a queue, and what it means."""

from __future__ import annotations

from typing import Any, cast

import pytest

from redrive.errors import Unreachable
from redrive.transports.rabbitmq.declaring import BrokerAdministration
from redrive.transports.rabbitmq.line import Line
from redrive.transports.rabbitmq.methods import ChannelClosed


class Closing:
    """A line to a broker that closes every channel with these words."""

    version = (3, 10, 8)
    why_closed = None

    def __init__(self, text: str) -> None:
        self._text = text

    async def connection(self) -> Closing:
        return self

    async def channel(self, _listener: Any) -> Closing:
        return self

    async def call(self, _method: Any) -> None:
        raise ChannelClosed(404, self._text)


async def test_a_queue_of_a_node_that_is_away_is_not_missing() -> None:
    """Taken for missing it would be declared, and taken for empty it would be left."""
    away = "NOT_FOUND - home node 'rabbit@b' of durable queue 'orders' in vhost '/' is down or inaccessible"
    with pytest.raises(Unreachable, match="is down or inaccessible"):
        await BrokerAdministration(cast("Line", Closing(away))).look("orders")


async def test_a_queue_that_is_missing_is_missing() -> None:
    told = BrokerAdministration(cast("Line", Closing("NOT_FOUND - no queue 'orders' in vhost '/'")))
    assert await told.look("orders") is None
