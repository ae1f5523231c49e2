"""Many publishes in flight on pika's asyncio adapter, which leaves the counting of confirms to its user."""

from __future__ import annotations

from typing import Any

import pika

from bench.peers.messages import plain
from bench.peers.run import QUEUE, Run


class Pipeline:
    """So many publishes at a time; the next ones go when all are confirmed."""

    def __init__(self, run: Run, channel: Any, together: int) -> None:
        self._run = run
        self._channel = channel
        self._together = together
        self._written = plain(run.task.size)
        self._sent = 0
        self._confirmed = 0

    def begin(self) -> None:
        self._channel.confirm_delivery(self._on_confirm, callback=lambda _ok: self._start())

    def _start(self) -> None:
        self._run.start()
        self._send()

    def _send(self) -> None:
        properties = pika.BasicProperties(delivery_mode=2, **self._written.properties)
        for _ in range(self._together):
            self._channel.basic_publish("", QUEUE, self._written.body, properties, mandatory=True)
        self._sent += self._together

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        assert isinstance(method, pika.spec.Basic.Ack), method
        self._confirmed = method.delivery_tag if method.multiple else self._confirmed + 1
        if self._confirmed < self._sent:
            return
        if self._sent < self._run.task.messages:
            self._send()
        else:
            self._run.finish()
