"""FastStream on Kafka, with either of its clients, on uvloop as its command line runs it.

It commits after each record (`AckPolicy.ACK`), which is what its documentation says for at-least-once. That policy
commits failing records too, and FastStream has no dead-letter topic: the handler catches its error, publishes the
record with it to one and waits for the broker's answer, which is FastStream's default.

It handles one record after the other. With aiokafka it can do so partition by partition, with `max_workers`, which
are as many consumers; with confluent-kafka only where commits come first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uvloop
from faststream import AckPolicy, Context, FastStream

from bench.peers.run import OrderFailed, Run

ACK_FIRST = "ack first"


def confluent(run: Run) -> None:
    from faststream.confluent import KafkaBroker  # noqa: PLC0415  only whom it is for loads it

    _serve(run, KafkaBroker, key_of=lambda raw: raw.key())


def aiokafka(run: Run) -> None:
    from faststream.kafka import KafkaBroker  # noqa: PLC0415  as above

    _serve(run, KafkaBroker, key_of=lambda raw: raw.key)


def _serve(run: Run, make: Any, *, key_of: Callable[[Any], Any]) -> None:
    """With its log as it comes; as variant "silent" without; as variant "ack first" without, and with its default
    of committing every five seconds what was read, whether it is handled or not.
    """
    silence: dict[str, Any] = {"logger": None} if run.task.variant else {}
    policy = AckPolicy.ACK_FIRST if run.task.variant == ACK_FIRST else AckPolicy.ACK
    broker = make(run.task.url, **silence)
    dead = broker.publisher(run.task.dead)

    @broker.subscriber(  # type: ignore[untyped-decorator]  # of either broker
        run.task.queue,
        group_id=run.task.group,
        auto_offset_reset="earliest",
        ack_policy=policy,
        **run.task.settings,
    )
    async def handle(message: Any = Context("message")) -> None:  # noqa: B008  how FastStream wants it
        try:
            run.take()
        except OrderFailed as error:
            key = key_of(message.raw_message)
            await dead.publish(message.body, key=key, headers={"error": repr(error)})

    uvloop.run(FastStream(broker, **silence).run())
