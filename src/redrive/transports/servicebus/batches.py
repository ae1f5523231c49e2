"""Messages to one entity. What is to be sent while others are on their way goes together, as the SDK's senders are
for one task at a time, and everybody is told what became of their own: a batch that is refused is sent one by one.

A batch has one partition: only messages of one session, or of none, go together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from azure.core.exceptions import AzureError
from azure.servicebus.exceptions import MessageSizeExceededError

from redrive.errors import Unreachable
from redrive.transports.servicebus.client_errors import of_sending

if TYPE_CHECKING:
    from azure.servicebus import ServiceBusMessage, ServiceBusMessageBatch
    from azure.servicebus.aio import ServiceBusSender

_MOST = 100


class _Waiting(NamedTuple):
    message: ServiceBusMessage
    told: asyncio.Future[None]

    @property
    def where(self) -> tuple[str | None, str | None]:
        return self.message.session_id, self.message.partition_key


class Batches:
    def __init__(self, entity: str, sender: ServiceBusSender) -> None:
        self._entity = entity
        self._sender = sender
        self._waiting: deque[_Waiting] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def send(self, message: ServiceBusMessage) -> None:
        """The broker has it when it returns. PublishRefused, TooLarge, or Unreachable if nobody knows."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(message, told))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
        await told

    async def room_beside(self, message: ServiceBusMessage) -> int:
        """How many bytes more would fit for certain; negative if the message itself does not."""
        try:
            batch = await self._sender.create_message_batch()
            batch.add_message(message)
        except MessageSizeExceededError:
            return -1
        except (AzureError, ValueError) as error:
            raise of_sending(error, self._entity) from error
        return batch.max_size_in_bytes - batch.size_in_bytes

    async def close(self) -> None:
        """What is on its way is waited for."""
        if self._sending is not None:
            await asyncio.wait({self._sending})
        await self._sender.close()

    async def _send_all(self) -> None:
        await asyncio.sleep(0)  # what others send in this turn goes along
        while self._waiting:
            await self._send_next()
        self._sending = None

    async def _send_next(self) -> None:
        together = [self._waiting.popleft()]
        try:
            batch = await self._filled(together)
            await self._sender.send_messages(together[0].message if batch is None else batch)
        except Exception as error:  # noqa: BLE001  those who wait are told
            explained = _explained(error, self._entity)
            if len(together) > 1 and not isinstance(explained, Unreachable):
                await self._send_one_by_one(together)
            else:
                _tell(together, explained)
        except BaseException:
            _tell(together, Unreachable("sending was given up"))
            raise
        else:
            _tell(together, None)

    async def _filled(self, together: list[_Waiting]) -> ServiceBusMessageBatch | None:
        """`together` with what fits beside the first; None: it goes alone, and may be larger than a batch."""
        if not self._waiting or self._waiting[0].where != together[0].where:
            return None
        batch = await self._sender.create_message_batch()
        try:
            batch.add_message(together[0].message)
            while self._waiting and len(together) < _MOST and self._waiting[0].where == together[0].where:
                batch.add_message(self._waiting[0].message)
                together.append(self._waiting.popleft())
        except MessageSizeExceededError:
            pass  # it is the first of the next
        return batch if len(together) > 1 else None

    async def _send_one_by_one(self, refused: list[_Waiting]) -> None:
        for each in refused:
            try:
                await self._sender.send_messages(each.message)
            except Exception as error:  # noqa: BLE001  whoever waits is told
                _tell([each], _explained(error, self._entity))
            else:
                _tell([each], None)


def _explained(error: Exception, entity: str) -> Exception:
    return of_sending(error, entity) if isinstance(error, AzureError | ValueError | OSError) else error


def _tell(waiting: list[_Waiting], error: Exception | None) -> None:
    for each in waiting:
        if each.told.done():  # it was cancelled
            continue
        if error is None:
            each.told.set_result(None)
        else:
            each.told.set_exception(error)
