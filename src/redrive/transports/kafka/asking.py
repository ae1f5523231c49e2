"""The client that asks the brokers, and that says why they do not answer.

librdkafka tells of a connection that fails beside the question that waits for it: a wrong password and a host that
is switched off look alike to whoever asks, unless somebody listens to both.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping

_TELLING = (
    KafkaError._AUTHENTICATION,  # noqa: SLF001  librdkafka's own codes begin so
    KafkaError._SSL,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
)
"""The first of these that was heard says most."""


class Complaints:
    """What was said of connections since one of them last worked."""

    def __init__(self) -> None:
        self._heard: dict[int, KafkaError] = {}
        self._turn = threading.Lock()

    def note(self, error: KafkaError) -> None:
        with self._turn:
            self._heard[error.code()] = error

    def forget(self) -> None:
        with self._turn:
            self._heard.clear()

    @property
    def worst(self) -> KafkaError | None:
        with self._turn:
            return next((self._heard[each] for each in _TELLING if each in self._heard), None)


class AskingClient(AdminClient):
    def __init__(self, settings: Mapping[str, Any], *, logger: logging.Logger) -> None:
        self._complaints = Complaints()
        listening: dict[str, Any] = {**settings, "error_cb": self._complaints.note}
        super().__init__(listening, logger=logger)

    def list_topics(self, *given: Any, **how: Any) -> Any:
        """Everybody's first question. KafkaException with what is wrong with the connections, if something is."""
        try:
            found = super().list_topics(*given, **how)
        except KafkaException:
            self.poll(0)  # which is when it is told
            if (why := self._complaints.worst) is None:
                raise
            raise KafkaException(why) from None
        self.poll(0)
        self._complaints.forget()
        return found
