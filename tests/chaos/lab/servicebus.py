"""What lies on the emulator of Service Bus, read from its own memory and by nothing of the product's."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from chaos.lab.broker import DEAD, Broker
from redrive.secret_url import SecretUrl
from redrive.servicebus_settings import ServiceBusSettings
from redrive.settings import BrokerSettings

if TYPE_CHECKING:
    from collections.abc import Collection

    from support.servicebus.beside import EmulatorBeside
    from support.servicebus.emulator import ServiceBusEmulator

Shape = Literal["queues", "native", "sessions", "subscriptions"]
"""Queues; the same with Service Bus's own dead letters; with sessions; subscriptions, each of its own topic."""
_NATIVE = "/$DeadLetterQueue"
_MANY_DELIVERIES = 10_000
"""Every death is a delivery more, and none is to be the last."""
_PATIENCE = 60.0
_LOOK_EVERY = 0.005


@dataclass(frozen=True)
class ServiceBus(Broker):
    """A namespace. `beside`: the emulator, for those in whose process it is."""

    names_all: ClassVar[bool] = False
    modules: ClassVar[tuple[str, ...]] = (
        "redrive.transports.servicebus.transport",
        "azure.servicebus.aio.management",
    )

    url: str
    administration: str
    tls_ca: str
    shape: Shape = "queues"
    beside: EmulatorBeside | None = None

    def shaped(self, shape: Shape, *names: str) -> ServiceBus:
        """The same with these queues, made in this shape."""
        assert self.beside is not None
        made = replace(self, shape=shape)
        self.beside.do(partial(made._make, names))
        return made

    def told(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("url", "administration", "tls_ca", "shape")}

    def settings(self) -> BrokerSettings:
        names = [self.queue(each) for each in ("orders", "effects")]
        own = ServiceBusSettings(
            administration=self.administration,
            tls_ca=Path(self.tls_ca),
            sessions=tuple(names if self.shape == "sessions" else ()),
        )
        dead = f"{{queue}}{_NATIVE if self.shape == 'native' else DEAD}"
        return BrokerSettings(url=SecretUrl(self.url), servicebus=own, dead_letter_queue=dead)

    def queue(self, name: str) -> str:
        return f"{name}/Subscriptions/shop" if self.shape == "subscriptions" else name

    def address(self, name: str) -> str:
        return name

    def dead(self, name: str) -> str:
        return f"{self.queue(name)}{_NATIVE}" if self.shape == "native" else super().dead(name)

    def is_dead(self, queue: str) -> bool:
        return queue.endswith((DEAD, _NATIVE))

    def key(self, message_id: str) -> bytes | None:
        """Several messages have a session."""
        return message_id[-1:].encode() if self.shape == "sessions" else None

    def messages(self) -> Counter[str]:
        assert self.beside is not None
        return self.beside.do(_messages)

    def bury(self, living: Collection[int]) -> None:
        """Ends the locks of the dead, instead of waiting until they expire. Nothing while somebody lives."""
        assert self.beside is not None
        if living:
            return
        deadline = time.monotonic() + _PATIENCE
        while self.beside.do(lambda emulator: len(emulator.connections)):
            assert time.monotonic() < deadline, "a connection of somebody who is dead is still there"
            time.sleep(_LOOK_EVERY)
        self.beside.do(lambda emulator: emulator.lose_locks())

    def _make(self, names: Collection[str], emulator: ServiceBusEmulator) -> None:
        from support.servicebus.entity import Rules  # noqa: PLC0415  no child needs the emulator

        rules = Rules(max_deliveries=_MANY_DELIVERIES)
        for name in names:
            if self.shape == "subscriptions":
                emulator.namespace.topic(name)
                emulator.namespace.subscription(name, "shop", rules=rules)
                emulator.namespace.queue(f"{name}.shop_retry", rules)
                emulator.namespace.queue(f"{name}.shop{DEAD}", rules)
            else:
                emulator.namespace.queue(name, replace(rules, sessions=self.shape == "sessions"))
                emulator.namespace.queue(f"{name}{DEAD}", rules)


def _messages(emulator: ServiceBusEmulator) -> Counter[str]:
    return Counter(
        json.loads(held.content.data).get("message_id", "")
        for entity in emulator.namespace
        for held in entity.messages.values()
    )
