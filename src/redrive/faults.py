"""Named points where a test may break the product (`REDRIVE_FAULTS`), off unless that variable is set.

`REDRIVE_FAULTS="worker.before_ack=kill9:0.05,spool.write=short:7"`: a point, an action, its argument.

| action | argument | what happens at the point |
|---|---|---|
| kill9 | probability, default 1 | the process kills itself with SIGKILL |
| raise | probability, default 1 | `FaultInjected` |
| enospc, eio | probability, default 1 | the OSError of a full or broken disk |
| hang | seconds, default 5 | the thread stands still |
| short | bytes, default 1 | a write at this point writes only that many bytes and reports no error |

`POINTS` is the registry: a test walks it, and another compares it with the calls in the source.
"""

from __future__ import annotations

import errno
import math
import os
import random
import signal
import time
from typing import NamedTuple

POINTS: dict[str, str] = {
    "worker.received": "a delivery is in hand, nothing done yet",
    "worker.before_handler": "the journal is written if need be, the handler is about to run",
    "worker.after_handler": "the handler succeeded, nothing is acknowledged",
    "worker.before_retry": "a retry is decided, not yet durable",
    "worker.after_retry": "the retry is durable and the delivery settled",
    "worker.before_record": "dead-lettering is decided, no sink has the letter",
    "worker.between_sinks": "sink both: the store or the spool has the letter, the dead-letter queue no copy",
    "worker.after_record": "a sink has the letter, the delivery is not acknowledged",
    "worker.before_confirm": "a redriven message succeeded, its letter is not confirmed",
    "worker.after_confirm": "the letter is confirmed, the delivery is not acknowledged",
    "worker.before_ack": "about to acknowledge",
    "worker.after_ack": "acknowledged",
    "rabbitmq.before_declare": "RabbitMQ: about to make a queue, an exchange or a binding that is missing",
    "rabbitmq.before_publish": "RabbitMQ: about to publish a message",
    "rabbitmq.confirmed": "RabbitMQ: the message is confirmed, its sender not told",
    "rabbitmq.retry_confirmed": "RabbitMQ: a retry is confirmed, its delivery is not acknowledged",
    "rabbitmq.before_reject": "RabbitMQ: about to reject a delivery into the broker's own loop",
    "kafka.before_produce": "Kafka: about to produce a record",
    "kafka.produced": "Kafka: the record is on all in-sync replicas, its sender not told",
    "kafka.retry_confirmed": "Kafka: a retry is on all in-sync replicas, the record it replaces is not done",
    "kafka.before_commit": "Kafka: about to commit up to where everything is done",
    "sqs.before_send": "SQS: about to send a message",
    "sqs.sent": "SQS: the message is in its queue, its sender not told",
    "sqs.kept": "SQS: a message of a FIFO queue waits here for its next attempt, its lease is kept",
    "sqs.retry_confirmed": "SQS: a retry is in its queue, the message it replaces is not deleted",
    "servicebus.before_send": "Service Bus: about to send a message",
    "servicebus.sent": "Service Bus: the broker has the message, its sender not told",
    "servicebus.retry_confirmed": "Service Bus: the broker has a retry, the message it replaces is not completed",
    "broker.before_commit": "embedded broker: statements done, COMMIT not",
    "broker.after_commit": "embedded broker: COMMIT done, callers not answered",
    "store.before_commit": "store: statements done, COMMIT not",
    "store.after_commit": "store: COMMIT done, callers not answered",
    "migrate.before_step": "migration: about to run the next step",
    "migrate.before_commit": "migration: every step done, COMMIT not",
    "migrate.after_commit": "migration: COMMIT done",
    "journal.before_commit": "journal: statements done, COMMIT not",
    "journal.after_commit": "journal: COMMIT done, callers not answered",
    "inbox.before_commit": "inbox: the handler's writes and the mark are done, COMMIT not",
    "inbox.after_commit": "inbox: COMMIT done",
    "alerts.before_commit": "outbox of alerts: statements done, COMMIT not",
    "alerts.after_commit": "outbox of alerts: COMMIT done, callers not answered",
    "alerts.saved": "what follows from a round is in the store, no message is handed over",
    "alerts.handed_over": "messages are in the outbox, the store does not know yet",
    "alerts.noted": "it is noted that the store is away, nobody is told of it",
    "alerts.end_told": "the end of the store's absence is in the outbox, its note is there still",
    "alerts.delivered": "a channel has taken an alert, the outbox does not know yet",
    "spool.before_write": "spool: about to append a record",
    "spool.write": "spool: one call of write(2)",
    "spool.before_sync": "spool: the record is written, not synced",
    "spool.after_sync": "spool: the record is durable",
    "spool.after_replay": "spool: a replayed record is in the store, the spool does not know yet",
    "spool.before_delete": "spool: a segment is replayed, not deleted",
    "redrive.after_claim": "a letter is claimed for redriving, nothing sent",
    "redrive.after_send": "the message is sent, the letter not marked",
    "redrive.after_mark": "the letter is marked as sent",
    "engine.taken": "letters of a run are claimed, nothing sent",
    "engine.sent": "a window of a run is sent, its letters not marked",
    "engine.marked": "the letters of a window are marked as sent",
    "retention.before_archive": "retention has chosen letters, nothing of them is archived",
    "retention.after_archive": "the archive is durable under its name, not read back",
    "retention.after_verify": "the archive is read back and right, nothing is purged",
    "retention.before_purge": "a few of the archived letters are about to be purged",
    "retention.after_purge": "they are purged",
    "archive.written": "an archive is written under the name of a part, not synced",
    "archive.synced": "the part is durable, not renamed",
    "archive.renamed": "the archive has its name, its folder is not synced",
    "archive.noted": "the manifest names the archive, there is no copy",
    "archive.copy_synced": "a copy of the archive is durable as a part, not renamed",
    "archive.copied": "the copy is there and right, nothing is purged",
    "archive.checked": "letters are erased from a part and it was read back, the manifest does not know",
    "archive.replacing": "the manifest knows the archive without them, the one with them is there still",
    "archive.replaced": "the archive without them is there, its copy is as it was",
    "duty.taken": "a process has taken a duty that one of all does, nothing of it is done",
    "duty.before_end": "the duty is done, the store does not know yet",
    "erasure.approved": "an erasure is approved by a second person, nothing is erased",
    "erasure.erased": "a few letters of an erasure are erased, it is not ended",
    "collector.received": "the collector has a message of a dead-letter queue, nothing done yet",
    "collector.before_record": "the collector has read it, the store does not have it",
    "collector.after_record": "the store has it, the message is not acknowledged",
    "collector.before_ack": "the collector is about to acknowledge",
    "reveal.noted": "a reveal stands in the ledger, nothing is shown",
    "export.noted": "an unmasked export stands in the ledger, nothing is given",
    "reprocess.received": "reprocess has a message of the dead-letter queue",
    "reprocess.after_send": "reprocess has sent it to its queue, not removed it from the dead-letter queue",
}


class FaultInjected(RuntimeError):
    """Raised on purpose by an armed point."""


class _Fault(NamedTuple):
    action: str
    argument: float | None


_ERRNO = {"enospc": errno.ENOSPC, "eio": errno.EIO}
_ACTIONS = {"kill9", "raise", "hang", "short", *_ERRNO}


def parse(text: str) -> dict[str, _Fault]:
    """The armed points. ValueError for a point or an action that does not exist: a typo must not pass."""
    armed: dict[str, _Fault] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, what = item.partition("=")
        action, _, argument = what.partition(":")
        if name not in POINTS or action not in _ACTIONS:
            raise ValueError(f"REDRIVE_FAULTS: no point or action {item!r}")
        armed[name] = _Fault(action, _argument(item, argument) if argument else None)
    return armed


def _argument(item: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"REDRIVE_FAULTS: the argument of {item!r} is no number of 0 or more")
    return value


_armed = parse(os.environ.get("REDRIVE_FAULTS", ""))


def arm(text: str) -> None:
    """Replaces what the environment said, for tests inside one process; an empty text disarms all."""
    global _armed  # noqa: PLW0603  the registry is the process's
    _armed = parse(text)


def armed() -> bool:
    """Whether any point does anything; where none does, a hot path need not pass them."""
    return bool(_armed)


def point(name: str) -> int | None:
    """Does nothing unless armed. Gives the number of bytes to write for `short`, else None."""
    if not _armed:
        return None
    fault = _armed.get(name)
    return None if fault is None else _strike(name, fault)


def _strike(name: str, fault: _Fault) -> int | None:
    if fault.action == "short":
        return 1 if fault.argument is None else int(fault.argument)
    if fault.action == "hang":
        time.sleep(5.0 if fault.argument is None else fault.argument)
        return None
    if random.random() >= (1.0 if fault.argument is None else fault.argument):  # noqa: S311  not a secret
        return None
    if fault.action == "kill9":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault.action in _ERRNO:
        number = _ERRNO[fault.action]
        raise OSError(number, os.strerror(number))
    raise FaultInjected(name)
