"""What the doctor says of queues that SQS would not let anybody make: the facts are made up."""

from __future__ import annotations

from redrive.finding import Finding
from redrive.transports.inspection import ExpectedQueue
from redrive.transports.sqs.examination import Looked, examine
from redrive.transports.sqs.queue_facts import QueueFacts

FIFO = {"FifoQueue": "true", "MessageRetentionPeriod": "1209600"}


def findings(target: dict[str, str]) -> list[Finding]:
    """Of a FIFO queue whose messages SQS moves to such a queue."""
    policy = '{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:1:elsewhere", "maxReceiveCount": 50}'
    own = QueueFacts("orders.fifo", "url", FIFO | {"RedrivePolicy": policy})
    found = QueueFacts("elsewhere", "url", target)
    return examine(Looked(expected=ExpectedQueue(name="orders.fifo"), own=own, dead=None, target=found))


def test_a_fifo_queue_whose_dead_letters_go_to_a_standard_queue_is_a_problem() -> None:
    [found] = findings({})
    assert (found.check, str(found.level), "which is none" in found.what) == ("dead-letter-route", "problem", True)


def test_a_fifo_queue_whose_dead_letters_go_to_a_fifo_queue_is_fine() -> None:
    [found] = findings(FIFO)
    assert str(found.level) == "ok"
