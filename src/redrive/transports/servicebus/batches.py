"""Messages to one entity. What is to be sent while others are on their way goes together, as the SDK's senders are
for one task at a time, and everybody is told what became of their own: a batch that is refused is sent one by one.

A batch has one partition: only messages of one session, or of none, go together. A sender that got no answer is
thrown away: it may wait for that one for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from azure.core.exceptions import AzureError
from azure.servicebus.exceptions import MessageSizeExceededError

from redrive.errors import Unreachable
from redrive.transports.servicebus.client_errors import of_sending
from redrive.transports.servicebus.patience import NoAnswer, Patience, within

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from azure.servicebus import ServiceBusMessageBatch
    from azure.servicebus.aio import ServiceBusSender

    from redrive.transports.servicebus.outgoing import Outgoing

_MOST = 100


class _Waiting(NamedTuple):
    message: Outgoing
    told: asyncio.Future[None]

    @property
    def where(self) -> tuple[str | None, str | None]:
        return self.message.session, self.message.partition_key


class Batches:
    """`make` gives a sender to the entity."""

    def __init__(
        self, entity: str, make: Callable[[], ServiceBusSender], patience: Patience | None = None
    ) -> None:
        self._entity = entity
        self._make = make
        self._patience = patience or Patience()
        self._opened: ServiceBusSender | None = None
        self._waiting: deque[_Waiting] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def send(self, message: Outgoing) -> None:
        """The broker has it when it returns. PublishRefused, TooLarge, or Unreachable if nobody knows."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(message, told))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
        await told

    async def room_beside(self, message: Outgoing) -> int:
        """How many bytes more would fit for certain; negative if the message itself does not."""
        try:
            batch = await self._new_batch()
            batch.add_message(message.annotated)
        except MessageSizeExceededError:
            return -1
        except (AzureError, ValueError) as error:
            raise of_sending(error, self._entity) from error
        return batch.max_size_in_bytes - batch.size_in_bytes

    async def close(self) -> None:
        """What is on its way is waited for, for a while."""
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=self._patience.end)
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending}, timeout=self._patience.end)
        self._throw_away()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _send_all(self) -> None:
        try:
            await asyncio.sleep(0)  # what others send in this turn goes along
            while self._waiting:
                await self._send_next()
        finally:
            self._sending = None
            given_up, self._waiting = list(self._waiting), deque()
            _tell(given_up, Unreachable("sending was given up"))

    async def _send_next(self) -> None:
        together = [self._waiting.popleft()]
        try:
            batch = await self._filled(together)
            await self._ask(
                self._sender().send_messages(together[0].message.annotated if batch is None else batch)
            )
        except Exception as error:  # noqa: BLE001  those who wait are told
            explained = _explained(error, self._entity)
            if len(together) > 1 and not isinstance(explained, Unreachable):
                await self._send_one_by_one(together)
            else:
                _tell(together, explained)
        else:
            _tell(together, None)
        finally:
            _tell(together, Unreachable("sending was given up"))

    async def _filled(self, together: list[_Waiting]) -> ServiceBusMessageBatch | None:
        """`together` with what fits beside the first; None: it goes alone, and may be larger than a batch."""
        if not self._waiting or self._waiting[0].where != together[0].where:
            return None
        batch = await self._new_batch()
        try:
            batch.add_message(together[0].message.annotated)
            while self._waiting and len(together) < _MOST and self._waiting[0].where == together[0].where:
                batch.add_message(self._waiting[0].message.annotated)
                together.append(self._waiting.popleft())
        except MessageSizeExceededError:
            pass  # it is the first of the next
        return batch if len(together) > 1 else None

    async def _send_one_by_one(self, refused: list[_Waiting]) -> None:
        for each in refused:
            try:
                await self._ask(self._sender().send_messages(each.message.annotated))
            except Exception as error:  # noqa: BLE001  whoever waits is told
                _tell([each], _explained(error, self._entity))
            else:
                _tell([each], None)

    async def _new_batch(self) -> ServiceBusMessageBatch:
        batch: ServiceBusMessageBatch = await self._ask(self._sender().create_message_batch())
        return batch

    async def _ask(self, asked: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await within(self._patience.answer, asked)
        except NoAnswer:
            self._throw_away()
            raise

    def _sender(self) -> ServiceBusSender:
        if self._opened is None:
            self._opened = self._make()
        return self._opened

    def _throw_away(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            closing = asyncio.create_task(self._close(opened))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _close(self, sender: ServiceBusSender) -> None:
        with suppress(AzureError, OSError, ValueError):
            await within(self._patience.end, sender.close())


def _explained(error: Exception, entity: str) -> Exception:
    return of_sending(error, entity) if isinstance(error, AzureError | ValueError | OSError) else error


def _tell(waiting: list[_Waiting], error: Exception | None) -> None:
    """Those who have not been told, and still want to know."""
    for each in waiting:
        if each.told.done():
            continue
        if error is None:
            each.told.set_result(None)
        else:
            each.told.set_exception(error)
