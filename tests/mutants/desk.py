"""Mutants of the desk and the store: claims, marks, reprocessing, retention."""

from __future__ import annotations

from mutants.mutant import Mutant

_STORE = "contract/test_sqlite_store.py::TestSqliteStore"
_ACTIONS = "unit/test_actions.py"
_REPROCESS = "acceptance/test_reprocess.py"

MUTANTS = (
    Mutant(
        name="mark-without-a-fence",
        file="stores/sql_redrive.py",
        old="letter.fence == ending.fence and ",
        new="",
        why="whoever lost its claim gives the letter back while the new owner sends it: sent twice (R21)",
        tests=(f"{_STORE}::test_an_expired_claim_is_taken_over_under_the_same_redrive_id",),
    ),
    Mutant(
        name="change-without-a-state-guard",
        file="stores/sql_guard.py",
        old="    statement = update(letters).where(*letter, letters.c.status.in_(rule.sources))\n",
        new="    statement = update(letters).where(*letter)\n",
        why="whoever confirms twice, or decides by hand, changes letters whose status does not allow it",
        tests=(f"{_STORE}::test_confirming_again_changes_nothing",),
    ),
    Mutant(
        name="mark-of-what-is-decided",
        file="stores/sql_redrive.py",
        old="    if letter is None or letter.status != _CLAIMED:\n",
        new="    if letter is None:\n",
        why="a late mark (T7) turns a resolved letter back into a sent one",
        tests=(f"{_STORE}::test_a_confirmation_that_beats_the_mark_stands",),
    ),
    Mutant(
        name="takeover-of-the-living",
        file="stores/sql_claiming.py",
        old="list(held_by_others)), claims.c.lease_until <= claiming.now\n",
        new="list(held_by_others))\n",
        why="a second command takes letters that the first one is sending: sent twice",
        tests=(f"{_STORE}::test_a_claimed_letter_is_left_out_even_for_its_owner",),
    ),
    Mutant(
        name="takeover-under-a-new-id",
        file="stores/sql_claiming.py",
        old="_claim_of(held_by_others[each], row.redrive_id,",
        new="_claim_of(held_by_others[each], new_id(),",
        why="the copies before and after a crash are not known as one (G4)",
        tests=(f"{_STORE}::test_an_expired_claim_is_taken_over_under_the_same_redrive_id",),
    ),
    Mutant(
        name="confirmed-by-any-redrive",
        file="stores/sql_redrive.py",
        old="    statement = moving(Transition.CONFIRM, now, mine, letters.c.redrive_id == ticket.redrive_id)\n",
        new="    statement = moving(Transition.CONFIRM, now, mine)\n",
        why="an old copy that succeeds late resolves a letter that has failed again since",
        tests=(f"{_STORE}::test_only_the_current_redrive_confirms",),
    ),
    Mutant(
        name="run-without-a-cut-off",
        file="stores/sql_runs_selection.py",
        old="    where = Filter((*pending.where.terms, known))\n",
        new="    where = pending.where\n",
        why="a run goes on for ever with letters that nobody has selected",
        tests=(f"{_STORE}::test_a_selection_is_frozen_when_the_run_is_made",),
    ),
    Mutant(
        name="run-that-takes-its-own-returns",
        file="stores/sql_runs_taking.py",
        old="    return PassedOver.CAME_BACK_MEANWHILE if letter.id in stale else None\n",
        new="    return None\n",
        why="a letter that has failed again since it was selected is sent once more",
        tests=(f"{_STORE}::test_a_letter_that_came_back_since_is_no_longer_what_was_selected",),
    ),
    Mutant(
        name="approved-by-whoever-asked",
        file="stores/sql_runs.py",
        old="    if name == run.requested_by:\n",
        new="    if not name:\n",
        why="one person alone does what needs two",
        tests=(f"{_STORE}::test_nobody_approves_what_they_asked_for",),
    ),
    Mutant(
        name="mark-before-send",
        file="redriving.py",
        old="""        try:
            async with asyncio.timeout(SEND_DEADLINE):
                await self._send(""",
        new="""        try:
            await self._mark(claim)
            async with asyncio.timeout(SEND_DEADLINE):
                await self._send(""",
        why="a death before the send leaves a letter that says it was sent",
        tests=(f"{_ACTIONS}::test_a_send_without_an_answer_is_unknown_and_taken_over_with_the_same_redrive_id",),
    ),
    Mutant(
        name="unknown-taken-for-sent",
        file="redriving.py",
        old='return _outcome(claim, Result.UNKNOWN, str(cut) or f"no answer within {SEND_DEADLINE:g} s")',
        new="return await self._mark(claim)",
        why="a broker that does not answer is taken for one that has it (R12)",
        tests=(f"{_ACTIONS}::test_a_send_without_an_answer_is_unknown_and_taken_over_with_the_same_redrive_id",),
    ),
    Mutant(
        name="unknown-given-back",
        file="redriving.py",
        old="            return _outcome(claim, Result.UNKNOWN, str(cut) or",
        new="            await self._store.settle(claim, Transition.UNCLAIM, by=self._actor)\n"
        "            return _outcome(claim, Result.UNKNOWN, str(cut) or",
        why="what may have been sent is sent once more under another id",
        tests=(f"{_ACTIONS}::test_a_send_without_an_answer_is_unknown_and_taken_over_with_the_same_redrive_id",),
    ),
    Mutant(
        name="reprocess-removes-first",
        file="dead_letter_queue.py",
        old="""        try:
            await self._send_home(message, queue=home)
""",
        new="""        await self._remove(delivery)
        try:
            await self._send_home(message, queue=home)
""",
        why="a death or a refusal between the two leaves the message nowhere",
        tests=(f"{_REPROCESS}::test_messages_that_the_broker_refuses_stay_in_the_dead_letter_queue",),
    ),
    Mutant(
        name="reprocess-removes-what-is-refused",
        file="dead_letter_queue.py",
        old="            self.refused += 1\n            self.kept.append(delivery)\n",
        new="            self.refused += 1\n            await self._remove(delivery)\n",
        why="what its queue does not take is gone",
        tests=(f"{_REPROCESS}::test_messages_that_the_broker_refuses_stay_in_the_dead_letter_queue",),
    ),
    Mutant(
        name="purge-before-archive",
        file="upkeep/retention.py",
        old="        file = await self._write(self._archive, found)\n",
        new="""        await self._purge(found, passage, None)
        file = await self._write(self._archive, found)
""",
        why="letters leave the store before they are anywhere else (SD4)",
        tests=(
            "acceptance/test_cli_retention.py::test_a_disk_that_is_full_purges_nothing_and_the_next_run_goes_on",
        ),
    ),
    Mutant(
        name="purge-unread",
        file="upkeep/retention.py",
        old="        await asyncio.to_thread(file.read_back)\n",
        new="",
        why="letters leave the store for an archive that cannot be read",
        tests=("acceptance/test_cli_retention.py::test_an_archive_that_reads_back_damaged_purges_nothing",),
    ),
)
