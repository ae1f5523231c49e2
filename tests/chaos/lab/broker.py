"""What an experiment asks of the broker that its messages lie on, whichever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection

    from redrive.settings import BrokerSettings

DEAD = "_dlq"


@dataclass(frozen=True)
class Broker(ABC):
    """Its kinds are frozen dataclasses: a child is told the name of the class and `told`, in JSON."""

    names_all: ClassVar[bool] = True
    """It tells of queues that nobody named."""
    commits_how_far: ClassVar[bool] = False
    """So that everything may be repeated that lies behind, and nothing else."""
    modules: ClassVar[tuple[str, ...]] = ()
    """What is imported before children are forked: half a second and more each time."""
    environment: ClassVar[dict[str, str]] = {}

    @abstractmethod
    def settings(self) -> BrokerSettings: ...

    @abstractmethod
    def messages(self) -> Counter[str]:
        """How many copies of each message lie there, whatever the queue. They stay. Nothing of the product's is
        asked.
        """

    def told(self) -> dict[str, Any]:
        return asdict(self)

    def queue(self, name: str) -> str:
        """What it is called here; on a broker that others use too, with a name of its own."""
        return name

    def address(self, name: str) -> str:
        """Where producers send what is meant for the queue."""
        return self.queue(name)

    def dead(self, name: str) -> str:
        """Where its dead letters lie."""
        return f"{self.queue(name)}{DEAD}"

    def is_dead(self, queue: str) -> bool:
        return queue.endswith(DEAD)

    def key(self, message_id: str) -> bytes | None:  # noqa: ARG002  for those that need one
        """So that messages are spread over the parts of a queue that has parts."""
        return None

    def under_way(self) -> int:
        """Messages that nobody was asked about: where they lie is not known before they are there."""
        return 0

    def damage(self) -> list[str]:
        return []

    def bury(self, living: Collection[int]) -> None:  # noqa: B027  some notice by themselves, later
        """Returns when the broker has noticed the death of all processes but these."""
