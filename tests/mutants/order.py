"""Order by key, broken: what waits behind a dead one, and who may go when."""

from __future__ import annotations

from mutants.mutant import Mutant

_ORDER = "acceptance/test_order_by_key.py"

MUTANTS = (
    Mutant(
        name="nothing-waits-behind-a-dead-one",
        file="in_order.py",
        old="            ahead = None if lane is None else await self._settling.ahead(lane, delivery)\n",
        new="            ahead = None\n",
        why="what follows a dead message of its key is handled as if that had been",
        tests=(f"{_ORDER}::test_what_comes_behind_a_dead_message_of_its_key_is_parked_and_all_else_flows",),
    ),
    Mutant(
        name="sent-past-one-that-was-not",
        file="engine.py",
        old="            before = None if claim.lane is None else last.get(claim.lane)\n",
        new="            before = None\n",
        why="letters of a key are sent past one that the broker would not have",
        tests=(f"{_ORDER}::test_what_is_claimed_together_is_not_sent_past_one_that_the_broker_will_not_have_now",),
    ),
    Mutant(
        name="lanes-not-kept-by-runs",
        file="stores/sql_runs_taking.py",
        old="    fit = [readable[row.id] for row in good if row.lane is None]\n",
        new="    fit = [readable[row.id] for row in good]\n",
        why="a run sends letters whose predecessors are dead",
        tests=(f"{_ORDER}::test_a_letter_that_is_not_first_is_not_sent_and_the_outcome_tells_why",),
    ),
    Mutant(
        name="parked-is-a-failure",
        file="stores/sql_record.py",
        old="    if _only_parked(entry):\n",
        new="    if entry is None:\n",
        why="a message that was not even tried is quarantined after its third turn",
        tests=(f"{_ORDER}::test_one_that_is_sent_out_of_turn_goes_back_behind_and_has_lost_nothing",),
    ),
)
