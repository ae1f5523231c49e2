"""SQS, as moto plays it: a server of the test's own process, whose time passes when the test says so.

moto is a fake, and named as such: it keeps no message past its process and refuses less than SQS does. Where it is
further from SQS than that, it is mended here: requests that come together do not see each other's half of the
work, a message that is made visible is visible from then on, not from the next millisecond on, and of a message
group whose leases have run out the first comes first.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.server import ThreadedMotoServer
from moto.sqs import models

from redrive.epoch import microseconds
from redrive.testing import ManualClock
from support.sqs_account import CREDENTIALS, REGION, URL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CREDENTIALS", "REGION", "URL", "MotoSqs", "forget_everything", "in_the_hands_of", "serving"]

_ALONE = (
    "create_queue",
    "delete_queue",
    "get_queue_attributes",
    "send_message",
    "send_message_batch",
    "delete_message_batch",
    "change_message_visibility_batch",
)
_LOOK_EVERY = 0.01
_one_at_a_time = threading.RLock()


class MotoSqs:
    def __init__(self, endpoint: str, clock: ManualClock) -> None:
        self.url, self.endpoint, self.clock = URL, endpoint, clock


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patch:
        _mend(patch)
        server.start()
        host, port = server.get_host_and_port()
        try:
            yield f"http://{host}:{port}"
        finally:
            server.stop()


def forget_everything() -> None:
    models.sqs_backends[DEFAULT_ACCOUNT_ID][REGION].reset()


def in_the_hands_of(clock: ManualClock, patch: pytest.MonkeyPatch) -> None:
    """Messages are delayed, invisible and deleted for their age by this clock."""
    patch.setattr(models, "unix_time", lambda: microseconds(clock.now()) / 1e6)
    patch.setattr(models, "unix_time_millis", lambda: microseconds(clock.now()) / 1e3)
    for name, value in CREDENTIALS.items():
        patch.setenv(name, value)


def _mend(patch: pytest.MonkeyPatch) -> None:
    backend = models.SQSBackend
    for name in _ALONE:
        patch.setattr(backend, name, _alone(getattr(backend, name)))
    patch.setattr(backend, "receive_message", _waiting(backend.receive_message))
    patch.setattr(models.Message, "visible", property(_is_visible))


def _is_visible(message: models.Message) -> bool:
    now: float = vars(models)["unix_time_millis"]()
    return now >= message.visible_at


def _alone(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def alone(*given: Any, **named: Any) -> Any:
        with _one_at_a_time:
            return method(*given, **named)

    return alone


def _forget_lost_leases(queue: models.Queue) -> None:
    """moto does that one by one while it looks for messages, and passes over those whose group has others yet."""
    for message in [each for each in queue.pending_messages if each.visible]:
        queue.pending_messages.remove(message)


def _waiting(receive: Callable[..., Any]) -> Callable[..., Any]:
    """Whoever waits for messages keeps nobody else from working."""

    @wraps(receive)
    def waiting(
        self: Any, queue_name: str, count: int, wait_seconds_timeout: int, *given: Any, **named: Any
    ) -> Any:
        until = time.monotonic() + wait_seconds_timeout
        while True:
            with _one_at_a_time:
                _forget_lost_leases(self.get_queue(queue_name))
                found = receive(self, queue_name, count, 0, *given, **named)
            if found or time.monotonic() >= until:
                return found
            time.sleep(_LOOK_EVERY)

    return waiting
