"""The queues that are used, as SQS has them: asked for once, made if they are missing and may be made."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from redrive.errors import PublishRefused
from redrive.transports.sqs.queue_facts import QueueFacts, QueueSpec
from redrive.transports.sqs.refusals import SqsRefusal, not_sent, not_set, unusable

if TYPE_CHECKING:
    from redrive.transports.sqs.client import SqsClient
    from redrive.transports.sqs.queue_facts import DeadLetterRule

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
_THERE = frozenset({"QueueAlreadyExists", "QueueNameExists"})


class Queues:
    """`declare`: what is missing is made."""

    def __init__(self, client: SqsClient, *, declare: bool) -> None:
        self._client = client
        self._declare = declare
        self._known: dict[str, QueueFacts] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def forget(self, name: str) -> None:
        """It may have been deleted, or changed."""
        self._known.pop(name, None)

    async def ensured(self, name: str) -> QueueFacts:
        """PublishRefused if it is missing and must not, or cannot, be made."""
        if (known := self._known.get(name)) is not None:
            return known
        check_name(name)
        async with self._asking[name]:  # whoever begins with a hundred messages at once needs to ask once
            return await self.found(name) or await self._made(name)

    async def _made(self, name: str) -> QueueFacts:
        if not self._declare:
            raise PublishRefused(
                f"there is no queue {name!r}",
                permanent=True,
                remedy="make it: redrive setup, or set broker.sqs.declare = 'missing'",
            )
        return await self.create(QueueSpec(name))

    async def create(self, spec: QueueSpec) -> QueueFacts:
        """PublishRefused if SQS will not, or would make it in another account than is meant."""
        if self._client.owner:
            raise PublishRefused(
                f"there is no queue {spec.name!r} in the account of broker.url, and SQS makes queues in one's own",
                permanent=True,
                remedy="make it there; if that account is yours, leave it out of broker.url",
            )
        try:
            await self._client.call("create_queue", QueueName=spec.name, Attributes=spec.attributes)
        except SqsRefusal as refusal:
            if refusal.code not in _THERE:  # somebody else was quicker
                raise not_sent(refusal, spec.name) from None
        found = await self.facts(spec.name)
        if found is None:
            raise PublishRefused(
                f"queue {spec.name!r} was made, and is not there yet",
                permanent=False,
                remedy="SQS makes nothing for a minute under the name of a queue that was deleted: try again",
            )
        return found

    async def set_rule(self, name: str, rule: DeadLetterRule) -> None:
        """Of a queue that has none. PublishRefused if it has one by now, or SQS will not."""
        queue = await self.facts(name)
        if queue is None or queue.rule is not None:
            raise PublishRefused(f"queue {name!r} has been changed meanwhile", permanent=False, remedy="try again")
        self.forget(name)
        try:
            await self._client.call("set_queue_attributes", QueueUrl=queue.url, Attributes=rule.attributes)
        except SqsRefusal as refusal:
            raise not_set(refusal, name) from None

    async def found(self, name: str) -> QueueFacts | None:
        """As it was when it was last asked for. None: there is no such queue."""
        return self._known.get(name) or await self.facts(name)

    async def facts(self, name: str) -> QueueFacts | None:
        """As it is now. None: there is no such queue."""
        known = self._known.pop(name, None)
        try:
            url = known.url if known is not None else await self._url(name)
            told = await self._client.call("get_queue_attributes", QueueUrl=url, AttributeNames=["All"])
        except SqsRefusal as refusal:
            if refusal.is_missing:
                return None
            raise unusable(refusal) from None
        found = self._known[name] = QueueFacts(name, url, told.get("Attributes", {}))
        return found

    async def _url(self, name: str) -> str:
        told = await self._client.call("get_queue_url", QueueName=name, **self._client.owner)
        return str(told["QueueUrl"])


def check_name(name: str) -> None:
    """PublishRefused for what cannot be a queue."""
    if not _NAME.fullmatch(name):
        raise PublishRefused(
            f"{name[:80]!r} cannot be the name of a queue",
            permanent=True,
            remedy="use 1 to 80 letters, digits, hyphens and underscores; a FIFO queue's name ends with .fifo",
        )
