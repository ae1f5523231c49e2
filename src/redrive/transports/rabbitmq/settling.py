"""The unsettled deliveries of one consumer channel, and the fewest frames that settle them.

1. A delivery tag belongs to one channel of one connection. When that is gone, every tag of it is stale: the broker
   has taken the messages back, and settling one raises LeaseLost (R11).
2. What is acknowledged within one turn of the event loop goes out together: the longest run without a gap as one
   ack with `multiple`, the rest one by one. An unsettled delivery below a tag keeps it out of the run, so none is
   ever acknowledged before its time.
3. The channel of a quorum queue forgets acknowledgements that it has not handed on when it is closed, and the
   broker delivers what they were for again. So the last ones get a moment (`rest`) before the channel goes.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

from redrive.clock import new_id
from redrive.errors import LeaseLost
from redrive.transports.rabbitmq import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from redrive.transports.rabbitmq.channel import Channel


LOOKS = 8
"""So often within the broker's timeout it is looked for deliveries that take long (`Tags.late`)."""
_HANDED_ON = 0.2


class Receipt:
    """What a delivery is settled by."""

    __slots__ = ("tag", "tags")

    def __init__(self, tags: Tags, tag: int) -> None:
        self.tags = tags
        self.tag = tag

    @property
    def place(self) -> dict[str, str | int]:
        return {"messaging.rabbitmq.message.delivery_tag": self.tag}


class Tags:
    """`freed` is called when a delivery has been settled."""

    def __init__(self, channel: Channel, freed: Callable[[], None]) -> None:
        self._channel = channel
        self._freed = freed
        self._unsettled: dict[int, bool] = {}
        """Oldest first. True: it is being put elsewhere just now."""
        self._acked: list[int] = []
        self._wrote_at = 0.0
        self._looked_at: dict[int, int] = {}
        self.generation = new_id()
        """Tags of other channels are other deliveries."""

    def __len__(self) -> int:
        return len(self._unsettled)

    def take(self, tag: int) -> None:
        self._unsettled[tag] = False

    def ack(self, tag: int) -> None:
        """Goes out with the others of this turn. LeaseLost if it is not ours any more."""
        self._settle(tag)
        if not self._acked:
            self._channel.connection.soon(self.flush)
        self._acked.append(tag)
        self._freed()

    def reject(self, tag: int, *, requeue: bool) -> None:
        self._settle(tag)
        self._channel.write(wire.reject(self._channel.number, tag, requeue=requeue))
        self._freed()

    @contextmanager
    def moving(self, tag: int) -> Iterator[None]:
        """While it is being put elsewhere nobody else can settle it. It is still to be acknowledged afterwards."""
        if not self.holds(tag):
            raise _lost()
        self._unsettled[tag] = True
        try:
            yield
        finally:
            self._unsettled[tag] = False

    def holds(self, tag: int) -> bool:
        return self._channel.usable and self._unsettled.get(tag) is False

    def late(self) -> int:
        """To be asked `LOOKS` times within a timeout: how many have just been unsettled for half of it."""
        self._looked_at = {tag: self._looked_at.get(tag, 0) + 1 for tag in self._unsettled}
        return sum(looks == LOOKS // 2 + 1 for looks in self._looked_at.values())

    def give_back(self) -> None:
        """Everything unsettled, latest first: each takes its old place before the one behind it."""
        for tag in reversed(list(self._unsettled)):
            if self.holds(tag):
                self.reject(tag, requeue=True)

    def flush(self) -> None:
        acked, self._acked = self._acked, []
        if not acked or not self._channel.usable:
            return
        number = self._channel.number
        floor = next(iter(self._unsettled), math.inf)  # every tag below is settled
        # Only a tag that the broker still waits for may be named, so not the floor itself.
        run = max((tag for tag in acked if tag < floor), default=0)
        frames = [wire.ack(number, run, multiple=True)] if run else []
        frames += [wire.ack(number, tag) for tag in acked if tag > run]
        self._channel.write(b"".join(frames))
        self._wrote_at = asyncio.get_running_loop().time()

    async def rest(self) -> None:
        self.flush()
        missing = self._wrote_at + _HANDED_ON - asyncio.get_running_loop().time()
        if missing > 0:
            await asyncio.sleep(missing)

    def _settle(self, tag: int) -> None:
        if not self.holds(tag):
            raise _lost()
        del self._unsettled[tag]


def _lost() -> LeaseLost:
    return LeaseLost(
        "the delivery is no longer ours: it was settled before, or its channel was closed",
        remedy="if its channel was closed, the broker delivers it again; nothing has to be done",
    )
