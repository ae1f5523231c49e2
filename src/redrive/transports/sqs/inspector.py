"""SQS, looked at. Nothing is made, received or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from redrive.finding import ok
from redrive.transports.inspection import Figures, QueueFigures
from redrive.transports.sqs.examination import Looked, examine

if TYPE_CHECKING:
    from collections.abc import Collection

    from redrive.finding import Finding
    from redrive.transports import Transport
    from redrive.transports.inspection import Expected, ExpectedQueue
    from redrive.transports.sqs.queue_facts import QueueFacts
    from redrive.transports.sqs.queues import Queues

    class SqsTransport(Transport, Protocol):
        def queues(self) -> Queues: ...


class SqsInspector:
    """`declares`: what is missing is made by who needs it."""

    def __init__(self, _url: str, transport: SqsTransport, *, declares: bool = True) -> None:
        self._transport = transport
        self._names = transport.names
        self._declares = declares

    async def findings(self, expected: Expected) -> list[Finding]:
        looked = [await self._looked(each) for each in expected.queues]
        count = len(looked)
        said = ok("broker", f"SQS answers; {count} queue{'' if count == 1 else 's'} looked at")
        return [said, *(finding for each in looked for finding in examine(each))]

    async def figures(self, queues: Collection[str] = (), *, known: Collection[str] = ()) -> Figures:
        """An account has queues of many teams: those that are named, or known."""
        shown = [
            _figures(facts)
            for name in self._rows(queues or known)
            if (facts := await self._facts(name)) is not None
        ]
        incomplete = "" if queues else "only queues of the settings and of the app are looked at"
        return Figures(queues=tuple(shown), incomplete=incomplete)

    async def close(self) -> None:
        """The transport is its caller's."""

    async def _looked(self, queue: ExpectedQueue) -> Looked:
        own = await self._facts(queue.name)
        rule, dead = None if own is None else own.rule, self._names.dead_of(queue.name)
        return Looked(
            expected=queue,
            own=own,
            dead_name=dead,
            dead=await self._facts(dead),
            target=None if rule is None else await self._facts(rule.queue),
            declares=self._declares,
        )

    async def _facts(self, name: str) -> QueueFacts | None:
        return await self._transport.queues().facts(name)

    def _rows(self, queues: Collection[str]) -> list[str]:
        homes = {self._names.home_of_dead(name) or name for name in queues}
        return sorted({each for name in homes for each in (name, self._names.dead_of(name))})


def _figures(facts: QueueFacts) -> QueueFigures:
    return QueueFigures(
        name=facts.name,
        type="fifo" if facts.is_fifo else "standard",
        ready=facts.count(""),
        delayed=facts.count("Delayed"),
        unacked=facts.count("NotVisible"),
    )
