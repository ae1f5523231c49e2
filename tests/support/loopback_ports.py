"""Ports for servers of the tests' own."""

from __future__ import annotations

import contextlib
import os
import random
import socket

# Below the range that systems give to clients: there, a client that tries again and again while its server is down
# is sooner or later connected to itself, and the server finds its port taken when it comes back.
_SERVERS = range(15_000, 32_000)
_SHARES = 16


def _ours() -> range:
    """When pytest runs in several processes at once, the share of this one: a port that is free now is still free
    when our server takes it.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return _SERVERS if worker is None else _SERVERS[int(worker.removeprefix("gw")) % _SHARES :: _SHARES]


def free_ports(count: int) -> list[int]:
    """That many different ports of 127.0.0.1 which nobody listens on."""
    with contextlib.ExitStack() as held:
        return [_bound(held) for _ in range(count)]


def _bound(held: contextlib.ExitStack) -> int:
    while True:
        probe = held.enter_context(socket.socket())
        port = random.choice(_ours())  # noqa: S311  no secret
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
