"""Mutants of the worker, its sinks and the collector: what is acknowledged before something else is durable."""

from __future__ import annotations

from mutants.mutant import Mutant

_REGRESSIONS = "contract/test_rabbitmq_regressions.py"
_COLLECTOR = "acceptance/test_collector.py"
_COLLECTOR_RUNNING = "acceptance/test_collector_running.py"

MUTANTS = (
    Mutant(
        name="ack-before-record",
        file="settling.py",
        old="""            kept = await self._keep(entry, span)
            faults.point("worker.after_record")
            seconds = (entry.at - entry.first_attempt_at).total_seconds()
            self._counts.count_letter(entry.failures[-1].kind, kept.sink, seconds)
            await (self._give_to_the_dead(delivery, kept.entry) if kept.natively else self._ack(delivery))
""",
        new="""            await self._ack(delivery)
            kept = await self._keep(entry, span)
            faults.point("worker.after_record")
            seconds = (entry.at - entry.first_attempt_at).total_seconds()
            self._counts.count_letter(entry.failures[-1].kind, kept.sink, seconds)
""",
        why="a death, or a store that is away, leaves the letter nowhere",
        tests=(f"{_REGRESSIONS}::test_r22_stopped_while_no_sink_takes_it_the_message_is_still_in_its_queue",),
    ),
    Mutant(
        name="no-sink-and-acknowledged",
        file="sinks.py",
        old='        raise NotDurable("; ".join(said), remedy="free disk',
        new="""        return Kept("nowhere", None, Recorded.NEW, entry)
        raise NotDurable("; ".join(said), remedy="free disk""",
        why="with every sink away dead letters vanish (R22)",
        tests=(
            f"{_REGRESSIONS}::test_r22_with_no_sink_nothing_is_acknowledged_and_when_one_is_back_nothing_is_lost",
        ),
    ),
    Mutant(
        name="refused-retry-acknowledged",
        file="settling.py",
        old="""            await self._dead_letter(delivery, failed.failures, failed.first_attempt_at)

    async def _retry(""",
        new="""            await self._ack(delivery)

    async def _retry(""",
        why="a retry that the broker will never have is acknowledged, and the message is nowhere",
        tests=("contract/test_rabbitmq_orders.py::test_a_retry_that_is_refused_for_good_becomes_a_letter",),
    ),
    Mutant(
        name="spool-not-synced",
        file="upkeep/spool_writer.py",
        old="            self._live.sync()\n",
        new="            self._live.usable\n",
        why="a power cut takes letters whose messages are acknowledged",
        tests=(
            "unit/test_spool.py::test_a_letter_is_called_durable_after_its_sync_and_the_new_segments_name_is_synced_first",
        ),
    ),
    Mutant(
        name="collected-before-recorded",
        file="collecting.py",
        old="        return await self._availability.ask(lambda: self._store.record_together(entries))\n",
        new="""        for delivery in deliveries:
            await self._transport.ack(delivery)
        return await self._availability.ask(lambda: self._store.record_together(entries))
""",
        why="a death, or a store that is away, loses what the collector had in hand",
        tests=(f"{_COLLECTOR}::test_nothing_is_acknowledged_that_the_store_does_not_have",),
    ),
    Mutant(
        name="refused-by-the-store-acknowledged",
        file="collecting.py",
        old="            await self._wait_with(delivery, error)\n",
        new="            await self._transport.ack(delivery)\n",
        why="a letter that the store does not take is out of the queue and not in the store",
        tests=(
            f"{_COLLECTOR_RUNNING}::test_a_letter_that_the_store_refuses_is_told_and_does_not_hold_up_the_others",
        ),
    ),
    Mutant(
        name="unreadable-not-quarantined",
        file="collecting.py",
        old="            quarantine=reading.quarantine,\n",
        new="",
        why="what nobody understands is sent back with the next redrive of its queue, to nobody knows whom",
        tests=(f"{_COLLECTOR}::test_what_nobody_understands_is_quarantined_with_its_cause",),
    ),
    Mutant(
        name="came-back-as-another",
        file="sinks.py",
        old="        if ticket is None:\n            return entry\n",
        new="        if ticket is None or ticket:\n            return entry\n",
        why="a redriven message that fails again is a new letter, and its old one waits for ever",
        tests=(
            "acceptance/test_worker_redriven.py::test_a_second_failure_is_one_more_generation_of_the_same_letter",
        ),
    ),
)
