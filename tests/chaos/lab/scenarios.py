"""How to bring a running system to each of its failpoints, again and again.

A scenario sets the stage, lets one child run into the armed point, and in the end brings everything to rest. The
tables at the end name one for every point, or the test that sets a stage of its own; a point without one fails the
test that walks the registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaos.lab import places
from chaos.lab.premises import IN_FLIGHT
from redrive.dead_letter_queue import IN_FLIGHT as DRAINED_AT_ONCE
from redrive.redriving import WINDOW
from redrive.run import WINDOW as ENGINE_WINDOW

if TYPE_CHECKING:
    from chaos.lab.premises import Sink
    from chaos.lab.servicebus import Shape
    from chaos.lab.supervisor import Child, Experiment

SUCCEED, HEAL, EFFECT = ("succeed", "handled"), ("heal", "handled"), ("effect", "effect")
FAIL, FAIL_THEN_RESOLVED = ("fail", "letter"), ("fail", "resolved")
STORE_AWAY = "store.before_commit=enospc"
SPOOL_AWAY = "spool.before_write=enospc"


class Scenario:
    """The ordinary day: messages that succeed, heal, fail and have effects, and one worker."""

    sink: Sink = "store"
    in_flight = IN_FLIGHT
    """What one kill may repeat."""

    def __init__(self, lots: int = 10) -> None:
        """`lots` says how many messages are sent to set the stage, in lots of a few."""
        self._lots = lots

    def set_stage(self, experiment: Experiment) -> None:
        experiment.produce(SUCCEED, HEAL, FAIL, EFFECT, times=self._lots)

    def begin(self, experiment: Experiment, faults: str) -> Child:
        """A child with the faults armed."""
        return experiment.start("work", faults)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.run("work") == 0


class Producing(Scenario):
    """The producer is the one that dies."""

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("produce", faults, messages=[SUCCEED, FAIL] * self._lots)


class Redelivery(Scenario):
    """A worker died with messages in its hands, so the next one finds suspects and counts them."""

    def set_stage(self, experiment: Experiment) -> None:
        super().set_stage(experiment)
        experiment.run("work", "worker.after_handler=kill9")


class StoreAway(Scenario):
    """Nothing but failures while the store cannot commit: all letters go to the spool."""

    def set_stage(self, experiment: Experiment) -> None:
        experiment.produce(FAIL, FAIL, FAIL, times=self._lots)

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("work", f"{STORE_AWAY},{faults}", spool_too=False)


class StoreBack(Scenario):
    """The spool is full of letters and the store is there again."""

    def set_stage(self, experiment: Experiment) -> None:
        experiment.produce(FAIL, FAIL, FAIL, times=self._lots)
        assert experiment.run("work", STORE_AWAY, spool_too=False) == 0


class Redriving(Scenario):
    """Letters are sent back by a process that dies; a worker comes afterwards."""

    in_flight = WINDOW

    def set_stage(self, experiment: Experiment) -> None:
        experiment.produce(*[FAIL_THEN_RESOLVED] * 4, times=self._lots)
        assert experiment.run("work") == 0

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start_redriving(faults)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.start_redriving().wait() == 0
        assert experiment.run("work") == 0


class Running(Redriving):
    """A run is under way, and the engine that carries it out dies; the next one goes on with it."""

    in_flight = ENGINE_WINDOW

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("carry_out", faults)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.run("carry_out") == 0
        assert experiment.run("work") == 0


class Confirming(Redriving):
    """Letters were sent back; the worker that handles them dies."""

    in_flight = IN_FLIGHT

    def set_stage(self, experiment: Experiment) -> None:
        super().set_stage(experiment)
        assert experiment.start_redriving().wait() == 0

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("work", faults)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.run("work") == 0


class Reprocessing(Scenario):
    """Failures lie in the broker's own dead-letter queue, and `reprocess` dies; then the bug is mended."""

    sink = "queue"
    in_flight = DRAINED_AT_ONCE

    def set_stage(self, experiment: Experiment) -> None:
        experiment.produce(*[("bug", "handled")] * 3, times=self._lots)
        assert experiment.run("work") == 0

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("reprocess", faults)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.run("reprocess", all_of_it=True) == 0
        assert experiment.run("work", mended=True) == 0


class ToTheQueue(Reprocessing):
    """Failures go to the broker's own dead-letter queue, and the worker that puts them there dies."""

    def set_stage(self, experiment: Experiment) -> None:
        experiment.produce(*[("bug", "handled")] * 3, times=self._lots)

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("work", faults)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.run("work") == 0
        super().come_to_rest(experiment)


class ToBoth(Scenario):
    """Letters go to the store and to the broker's dead-letter queue. In the end every letter has had its copy, and
    who collects the copies finds each one's letter in the store.
    """

    sink = "both"

    def __init__(self, lots: int = 10) -> None:
        super().__init__(lots)
        self._copies: set[str] = set()

    def come_to_rest(self, experiment: Experiment) -> None:
        super().come_to_rest(experiment)
        self._copies.update(experiment.premises.broker.messages())
        letters = {letter.message_id for letter in places.letters(experiment.premises.letters)}
        assert letters <= self._copies, f"no copy of {letters - self._copies}"
        assert experiment.run("collect") == 0


class AllAway(StoreAway):
    """Neither store nor spool take anything: all letters go to the broker's dead-letter queue, and are collected
    when the store is there again.
    """

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("work", f"{STORE_AWAY},{SPOOL_AWAY},{faults}", spool_too=False)

    def come_to_rest(self, experiment: Experiment) -> None:
        super().come_to_rest(experiment)
        assert experiment.run("collect") == 0


class Recording(Scenario):
    """A process that does nothing but write letters, many at a time; the next one begins with what it left."""

    def set_stage(self, experiment: Experiment) -> None:
        """It brings its own."""

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("record", faults, letters=20 * self._lots)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.run("record", letters=5) == 0


class Regrouping(Recording):
    """Groups are merged and taken apart again, both in many transactions."""

    def set_stage(self, experiment: Experiment) -> None:
        assert experiment.run("record", letters=4 * self._lots) == 0

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start(experiment.dice.choice(("merge", "split")), faults)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.run("merge") == 0


class Folding(Regrouping):
    """Counters are added up."""

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("fold", faults)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.run("fold") == 0


class Indexing(Regrouping):
    """Letters are made searchable."""

    def begin(self, experiment: Experiment, faults: str) -> Child:
        return experiment.start("index", faults)

    def come_to_rest(self, experiment: Experiment) -> None:
        assert experiment.run("index") == 0


def chance(point: str, scenario: type[Scenario]) -> float:
    """So that a child gets some work done before it dies, and dies before the work is done."""
    commits = point.endswith("_commit") and scenario in _FEW_COMMITS
    once_in_a_while = point.startswith(("journal.", "engine."))
    seldom = commits or once_in_a_while or point in _SELDOM
    return 0.4 if seldom else 0.12


_SELDOM = {"spool.before_delete", "redrive.after_claim", "kafka.before_commit"}
_FEW_COMMITS = {Producing, Redriving, Running, StoreBack, Recording, Regrouping, Folding, Indexing}

SCENARIOS: dict[str, tuple[type[Scenario], ...]] = {
    "worker.received": (Scenario,),
    "worker.before_handler": (Scenario,),
    "worker.after_handler": (Scenario,),
    "worker.before_retry": (Scenario,),
    "worker.after_retry": (Scenario,),
    "worker.before_record": (Scenario,),
    "worker.between_sinks": (ToBoth,),
    "worker.after_record": (Scenario,),
    "worker.before_confirm": (Confirming,),
    "worker.after_confirm": (Confirming,),
    "worker.before_ack": (Scenario,),
    "worker.after_ack": (Scenario,),
    "broker.before_commit": (Scenario, Producing, Redriving, Running, Reprocessing),
    "broker.after_commit": (Scenario, Producing, Redriving, Running, Reprocessing),
    "store.before_commit": (Scenario, Redriving, Running, Confirming, StoreBack),
    "store.after_commit": (Scenario, Redriving, Running, Confirming, StoreBack),
    "journal.before_commit": (Redelivery,),
    "journal.after_commit": (Redelivery,),
    "inbox.before_commit": (Scenario,),
    "inbox.after_commit": (Scenario,),
    "spool.before_write": (StoreAway,),
    "spool.write": (StoreAway,),
    "spool.before_sync": (StoreAway,),
    "spool.after_sync": (StoreAway,),
    "spool.after_replay": (StoreBack,),
    "spool.before_delete": (StoreBack,),
    "redrive.after_claim": (Redriving,),
    "redrive.after_send": (Redriving,),
    "redrive.after_mark": (Redriving,),
    "engine.taken": (Running,),
    "engine.sent": (Running,),
    "engine.marked": (Running,),
    "reprocess.received": (Reprocessing,),
    "reprocess.after_send": (Reprocessing,),
}

ELSEWHERE = {
    "alerts.": "acceptance/test_alerts_cli.py",
    "alerts.noted": "acceptance/test_alerts_store_away_kill.py",
    "alerts.end_told": "acceptance/test_alerts_store_away_kill.py",
    "alerts.saved": "acceptance/test_alerts_served.py",
    "alerts.handed_over": "acceptance/test_alerts_served.py",
    "migrate.": "contract/test_migrations.py",
    "retention.": "chaos/test_retention_kill.py",
    "duty.": "chaos/test_retention_duty_kill.py",
    "erasure.": "acceptance/test_erasure.py",
    "archive.": "unit/test_archive_kill.py",
    "collector.": "acceptance/test_collector.py",
    "reveal.": "acceptance/test_reveal_kill.py",
    "export.": "acceptance/test_reveal_kill.py",
    "sqs.kept": "contract/test_sqs_kill.py",
    "rabbitmq.before_declare": "chaos/test_rabbitmq_declaring.py",
    "rabbitmq.before_reject": "chaos/test_rabbitmq_loop_kill.py",
}
"""Points, and families of points, that are walked by a test of their own."""

WRITING = (Scenario, Recording, Redriving, Confirming, StoreBack, Regrouping, Folding, Indexing)
ON_A_SERVER: dict[str, tuple[type[Scenario], ...]] = {
    "worker.before_record": (Scenario,),
    "worker.after_record": (Scenario,),
    "worker.before_confirm": (Confirming,),
    "worker.after_confirm": (Confirming,),
    "store.before_commit": WRITING,
    "store.after_commit": WRITING,
    "spool.after_replay": (StoreBack,),
    "spool.before_delete": (StoreBack,),
    "redrive.after_claim": (Redriving,),
    "redrive.after_send": (Redriving,),
    "redrive.after_mark": (Redriving,),
    "engine.taken": (Running,),
    "engine.sent": (Running,),
    "engine.marked": (Running,),
}
"""The points at which it matters that the store is a server: where it is written to, and on both sides of that."""

ON_RABBITMQ: dict[str, tuple[type[Scenario], ...]] = {
    "worker.received": (Scenario,),
    "worker.before_handler": (Scenario,),
    "worker.after_handler": (Scenario,),
    "worker.before_retry": (Scenario,),
    "worker.after_retry": (Scenario,),
    "worker.before_record": (Scenario,),
    "worker.between_sinks": (ToBoth,),
    "worker.after_record": (Scenario, ToTheQueue, ToBoth),
    "worker.after_confirm": (Confirming,),
    "worker.before_ack": (Scenario,),
    "worker.after_ack": (Scenario,),
    "rabbitmq.before_publish": (Scenario, Producing, Redriving, Reprocessing, ToTheQueue),
    "rabbitmq.confirmed": (Scenario, Producing, Redriving, Reprocessing, ToTheQueue),
    "rabbitmq.retry_confirmed": (Scenario,),
    "redrive.after_send": (Redriving,),
    "reprocess.received": (Reprocessing,),
    "reprocess.after_send": (Reprocessing,),
}
"""The points at which it matters that the broker is a server: what it holds is not what it was told."""

ON_KAFKA: dict[str, tuple[type[Scenario], ...]] = {
    "worker.received": (Scenario,),
    "worker.before_handler": (Scenario,),
    "worker.after_handler": (Scenario,),
    "worker.before_retry": (Scenario,),
    "worker.after_retry": (Scenario,),
    "worker.before_record": (Scenario,),
    "worker.between_sinks": (ToBoth,),
    "worker.after_record": (Scenario, ToTheQueue),
    "worker.after_confirm": (Confirming,),
    "worker.before_ack": (Scenario,),
    "worker.after_ack": (Scenario,),
    "kafka.before_produce": (Scenario, Producing, Redriving, ToTheQueue),
    "kafka.produced": (Scenario, Producing, Redriving, ToTheQueue),
    "kafka.retry_confirmed": (Scenario,),
    "kafka.before_commit": (Scenario, Confirming),
    "redrive.after_send": (Redriving,),
    "reprocess.after_send": (Reprocessing,),
}
"""The points at which it matters that the broker commits how far everything is done, and nothing else."""

ON_SQS: dict[str, tuple[type[Scenario], ...]] = {
    "worker.received": (Scenario,),
    "worker.after_handler": (Scenario,),
    "worker.after_retry": (Scenario,),
    "worker.after_record": (Scenario, ToTheQueue),
    "worker.after_confirm": (Confirming,),
    "worker.before_ack": (Scenario,),
    "worker.after_ack": (Scenario,),
    "sqs.before_send": (Scenario, Producing, Redriving, ToTheQueue),
    "sqs.sent": (Scenario, Producing, Redriving, ToTheQueue),
    "sqs.retry_confirmed": (Scenario,),
    "redrive.after_send": (Redriving,),
    "reprocess.after_send": (Reprocessing,),
}
"""The points at which it matters that a message is deleted one by one, and that nobody is told of a death."""

ON_SERVICE_BUS: dict[Shape, dict[str, tuple[type[Scenario], ...]]] = {
    "queues": {
        "worker.received": (Scenario,),
        "worker.after_handler": (Scenario,),
        "worker.before_retry": (Scenario,),
        "worker.after_retry": (Scenario,),
        "worker.after_record": (Scenario,),
        "worker.before_ack": (Scenario,),
        "servicebus.before_send": (Scenario, Producing, ToTheQueue),
        "servicebus.sent": (Scenario, Producing, Redriving, ToTheQueue),
        "servicebus.retry_confirmed": (Scenario,),
        "redrive.after_send": (Redriving,),
    },
    "native": {
        "worker.between_sinks": (ToBoth,),
        "worker.after_record": (ToTheQueue, ToBoth, AllAway),
        "worker.before_ack": (ToTheQueue, ToBoth, AllAway),
        "worker.after_ack": (ToTheQueue, AllAway),
        "reprocess.after_send": (Reprocessing,),
    },
    "sessions": {
        "worker.after_handler": (Scenario,),
        "worker.before_ack": (Scenario,),
        "servicebus.sent": (Redriving,),
        "servicebus.retry_confirmed": (Scenario,),
    },
    "subscriptions": {
        "worker.after_handler": (Scenario,),
        "servicebus.sent": (Redriving, ToTheQueue),
        "servicebus.retry_confirmed": (Scenario,),
        "reprocess.after_send": (Reprocessing,),
    },
}
"""The points at which it matters that locks outlive their owners, and that a copy is sent before it replaces; and
those at which the other shapes are not what queues are: settled into the dead letters instead of being sent there,
messages one by one, retries and redrives in a queue beside.
"""
