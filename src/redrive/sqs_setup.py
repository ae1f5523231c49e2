"""`redrive setup` on SQS: see `broker_setup`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from redrive import wiring
from redrive.broker_setup import BrokerExamined
from redrive.transports.sqs.fifo import is_fifo
from redrive.transports.sqs.queues import check_name
from redrive.transports.sqs.setting_up import complete, examine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from redrive.settings import Settings
    from redrive.transports.setup import PlainExamined
    from redrive.transports.sqs.queues import Queues
    from redrive.transports.sqs.transport import SqsTransport


_GROUPS = "; a FIFO queue has one message of each group in hand at a time: more groups, more throughput"


class SqsSetup:
    """Retries wait in the queue itself: there is nothing to make for them."""

    name_in_code_alone = ""

    def __init__(self, settings: Settings, queues: Sequence[str]) -> None:
        self._settings = settings
        self._names = queues

    async def examine(self) -> BrokerExamined:
        for name in self._names:
            check_name(name)
        dead_of, most = self._settings.broker.names.dead_of, self._settings.broker.sqs.max_receive_count
        async with _queues(self._settings) as queues:
            found = tuple([await examine(queues, name, dead_of(name), most=most) for name in self._names])
        grouped = _GROUPS if any(map(is_fifo, self._names)) else ""
        return BrokerExamined(f"Amazon SQS{grouped}", found)

    async def complete(self, examined: BrokerExamined) -> BrokerExamined:
        async with _queues(self._settings) as queues:
            own = cast("tuple[PlainExamined, ...]", examined.queues)
            return BrokerExamined(examined.told, tuple([await complete(queues, each) for each in own]))


async def missing_queues(settings: Settings, names: Sequence[str]) -> list[str]:
    async with _queues(settings) as queues:
        return [name for name in names if await queues.facts(name) is None]


@asynccontextmanager
async def _queues(settings: Settings) -> AsyncIterator[Queues]:
    async with wiring.producer(settings) as transport:
        yield cast("SqsTransport", transport).queues()
