"""How much of what is repeated or drawn by lot the tests do: the one place for it.

Every failpoint, every pair of point and scenario, every operation of the API is gone through whatever the numbers
are (a short run on Kafka takes the first scenarios of each point); they say how often. `make test` takes what
stands here, `make chaos` says more by the variables. Those with a K are figures that the guarantees rest on, and
are not to be lowered. The others are as few as show that it works on another broker or store too, where most of
the code is the same.
"""

from __future__ import annotations

import os

MANY = 1000
"""From so many kills on, a run is a long one: every store, every type of queues, every scenario."""


def _said(name: str) -> int:
    return int(os.environ.get(name) or 0)


_CHAOS = _said("REDRIVE_CHAOS_KILLS")
LONG = _CHAOS >= MANY

WORKER_KILLS = _CHAOS or 200
"""K2: on the embedded broker and SQLite."""
RABBITMQ_KILLS = -(-(_CHAOS or 200) // 4)
"""K1."""
POSTGRES_KILLS = -(-_CHAOS // 2) or 50
KAFKA_KILLS = -(-_CHAOS // 4) or 25
SQS_KILLS = -(-_CHAOS // 4) or 50
"""F1 asks for so many."""
SERVICE_BUS_KILLS = -(-_CHAOS // 4) or 50
BROKER_KILLS = -(-_CHAOS // 100)
"""Of a broker's own server. 0: as few as the test needs (K3: three on RabbitMQ)."""
ENGINE_KILLS = _said("REDRIVE_ENGINE_KILLS") or 50
"""K4."""
ORDER_KILLS = _said("REDRIVE_CHAOS_ORDER_KILLS") or 16
HOSTILE_MESSAGES = max(150, _CHAOS)
"""Generated, over RabbitMQ. (K12 is in test_hostile_corpus.py.)"""
STATEFUL_STEPS = max(20_000, _said("REDRIVE_STATEFUL_STEPS"))
"""K14."""
API_CASES = _said("REDRIVE_API_CASES")
"""K13: 0 is what the coverage phase of schemathesis asks, about 3,000."""
EXPLAINED_FILTERS = 1000 if LONG else 250
"""Of how many filters the SQL is looked through."""
