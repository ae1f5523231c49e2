"""What is asked of SQS for single messages, put together by queue: sends, deletes, and changes of visibility."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from redrive.transports.sqs.batches import AT_ONCE, Batches
from redrive.transports.sqs.fifo import is_fifo
from redrive.transports.sqs.refusals import away

if TYPE_CHECKING:
    from redrive.transports.sqs.client import SqsClient
    from redrive.transports.sqs.queue_facts import QueueFacts

_SEND, _DELETE, _HIDE = "send_message_batch", "delete_message_batch", "change_message_visibility_batch"
_MOMENT = 0.002


class Requests:
    """`patience`: seconds that a change of visibility may take. The next heartbeat comes then, and in a FIFO queue
    it waits for the one before it.
    """

    def __init__(self, client: SqsClient, *, patience: float) -> None:
        self._client = client
        self._patience = patience
        self._batches: dict[tuple[str, str], Batches] = {}

    async def send(self, queue: QueueFacts, entry: dict[str, Any], *, size: int) -> None:
        """Each of these: SqsRefusal if SQS refused this one, Unreachable if nobody knows."""
        await self._batch(_SEND, queue).add(entry, size=size)

    async def delete(self, queue: QueueFacts, handle: str) -> None:
        await self._batch(_DELETE, queue).add({"ReceiptHandle": handle})

    async def hide(self, queue: QueueFacts, handle: str, seconds: int) -> None:
        await self._batch(_HIDE, queue).add({"ReceiptHandle": handle, "VisibilityTimeout": seconds})

    async def finished(self) -> None:
        for each in self._batches.values():
            await each.finished()

    def _batch(self, operation: str, queue: QueueFacts) -> Batches:
        key = (operation, queue.url)
        found = self._batches.get(key)
        if found is None:
            # Of a FIFO queue, what is sent first is there first, and what is given back stays so.
            in_order = is_fifo(queue.name) and operation != _DELETE
            at_once = 1 if in_order else AT_ONCE
            # Somebody waits for what is sent. Nobody waits for a delete.
            moment = 0.0 if operation == _SEND else _MOMENT
            request = partial(self._request, operation, queue.url)
            found = self._batches[key] = Batches(request, at_once=at_once, moment=moment)
        return found

    async def _request(self, operation: str, url: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
        asked = self._client.call(operation, QueueUrl=url, Entries=entries)
        if operation != _HIDE:
            return await asked
        try:
            async with asyncio.timeout(self._patience):
                return await asked
        except TimeoutError:
            raise away("a change of visibility took too long") from None
