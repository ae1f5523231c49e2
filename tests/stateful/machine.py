"""Whatever may happen to letters and runs, in any order: the store must do what the model does, step by step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from redrive.control import RedriveTicket
from redrive.dead_letter import Actor, Claim, Entry, Transition
from redrive.editing import Expect, Set, json_value
from redrive.errors import NotFound, Refused, TransitionRefused
from redrive.letter_query import LetterQuery
from redrive.run import Approval, Canary, RunChange, RunPlan, Settled
from redrive.testing.letters import a_message, an_entry
from stateful.comparing import compare
from stateful.ground import Ground
from stateful.model import BY_HAND, SETTLED, Held, Returned
from stateful.model_runs import CHANGES, Model, Plan, Run

OLD, NEW = b'{"order": 17}', b'{"order": 18}'
EDIT = (Expect(path="order", value=json_value(17)), Set(path="order", value=json_value(18)))

picks = st.integers(0, 12)
bodies = st.sampled_from([OLD, OLD, NEW, b"no JSON"])
queues = st.sampled_from(["orders", "mails"])
groups = st.sampled_from(["no customer", "sold out"])
seldom = st.integers(0, 9).map(lambda number: number == 9)
people = st.sampled_from(["ann", "bob"])
engines = st.integers(0, 1)
leases = st.sampled_from([5.0, 60.0])
LIKELY_CHANGES = [*["approve", "pause", "resume"] * 4, *sorted(CHANGES)]
"""A run that has ended shows little."""


class _EveryRule:
    """Hypothesis leaves out half of the rules in each example. What matters here takes five or six of them."""

    def is_enabled(self, _name: str) -> bool:
        return True


class TransitionTable(RuleBasedStateMachine):
    ground: ClassVar[Ground]

    def __init__(self) -> None:
        super().__init__()
        self._rules_strategy.enabled_rules_strategy = st.just(_EveryRule())  # type: ignore[arg-type]  # all that is asked
        self.ground.empty()
        self.model = Model()
        self.claims: list[Claim] = []
        """Every one that was ever given."""
        self.hands: list[list[Claim]] = [[], []]
        """What each engine knows that it has."""
        self.entries: list[tuple[Entry, Returned]] = []
        self.last: Callable[[], None] | None = None

    @property
    def now(self) -> datetime:
        return self.ground.clock.now()

    def step(self, again: Callable[[], None] | None = None) -> None:
        """A moment later than the step before. `again`: how it is repeated after an unknown outcome."""
        self.ground.steps += 1
        self.ground.clock.advance(0.001)
        if again is not None:
            self.last = again
            again()

    def expect(self, said: object, wanted: object) -> None:
        assert said == wanted, f"the store says {said!r}, the table {wanted!r}"
        self.ground.told[str(said)[:40]] += 1

    def letter_id(self, pick: int) -> str:
        """One that is there, the newest first; sometimes one that is not."""
        ids = list(self.model.letters)
        return "no such letter" if pick == 12 or not ids else ids[-1 - pick % len(ids)]

    def claim_of(self, pick: int) -> Claim:
        """One that somebody has in hand, or any that there ever was."""
        every = [*self.claims, *self.hands[0], *self.hands[1]]
        return every[-1 - pick % len(every)]

    def run_of(self, pick: int) -> Run:
        runs = list(self.model.runs.values())
        return runs[-1 - pick % len(runs)]

    # T1 to T3.

    @initialize(
        number=st.integers(2, 7),
        queue=queues,
        rate=st.sampled_from([None, 2.0]),
        canary=st.sampled_from([(), (), (1, 3)]),
    )
    def begin(self, number: int, queue: str, rate: float | None, canary: tuple[int, ...]) -> None:
        for _ in range(number):
            self.record_new(queue=queue, group="no customer", body=OLD, attempts=1, old=False, quarantine=False)
        usual = {"chosen": None, "queue": None, "at_most": None, "waits": None, "by": "ann"}
        self.create_run(canary=canary, rate=rate, edit=False, elsewhere=False, **usual)

    @rule(queue=queues, group=groups, body=bodies, attempts=st.integers(1, 2), old=seldom, quarantine=seldom)
    def record_new(
        self, *, queue: str, group: str, body: bytes, attempts: int, old: bool, quarantine: bool
    ) -> None:
        at = self.now - timedelta(days=10) if old else self.now
        given = {"message": a_message(queue=queue, body=body), "queue": queue, "at": at}
        self._record(group=group, attempts=attempts, quarantine=quarantine, **given)

    @precondition(lambda self: self.entries)
    @rule(pick=picks, attempts=st.integers(1, 3), quarantine=seldom)
    def record_again(self, *, pick: int, attempts: int, quarantine: bool) -> None:
        entry, _ = self.entries[-1 - pick % len(self.entries)]
        told = an_entry(
            entry.identity,
            message=entry.message,
            queue=entry.queue,
            attempts=attempts,
            at=self.now,
            quarantine="by rule" if quarantine else None,
        )
        self._enter(told, "no customer", attempts)

    @precondition(lambda self: self.claims)
    @rule(pick=picks, group=groups, attempts=st.integers(1, 2), quarantine=seldom, changed=seldom, forged=seldom)
    def come_back(
        self,
        *,
        pick: int,
        group: str,
        attempts: int,
        quarantine: bool,
        changed: bool,
        forged: bool,
    ) -> None:
        claim = self.claim_of(pick)
        message = replace(claim.message, body=b"another") if changed else claim.message
        given = {"message": message, "queue": message.queue, "at": self.now}
        ticket = self._ticket(claim, forged=forged)
        self._record(group=group, attempts=attempts, quarantine=quarantine, ticket=ticket, **given)

    def _ticket(self, claim: Claim, *, forged: bool) -> RedriveTicket:
        return replace(claim.ticket, redrive_id="f" + claim.redrive_id[1:]) if forged else claim.ticket

    def _record(self, *, group: str, attempts: int, quarantine: bool, **given: Any) -> None:
        cause = "by rule" if quarantine else None
        self._enter(an_entry(group=group, attempts=attempts, quarantine=cause, **given), group, attempts)

    def _enter(self, entry: Entry, group: str, attempts: int) -> None:
        told = Returned(
            identity=entry.identity,
            body=entry.message.body or b"",
            queue=entry.queue,
            group=group,
            at=entry.at,
            attempts=attempts,
            ticket=None if entry.ticket is None else (entry.ticket.redrive_id, entry.ticket.letter_id),
            quarantine=entry.quarantine is not None,
        )
        self.entries.append((entry, told))

        def again() -> None:
            letter_id, said = self.ground.run(self.ground.store.record(entry))
            self.expect((letter_id, str(said)), self.model.record(told, letter_id, self.now))
            self.ground.told[str(said)] += 1

        self.step(again)

    # T4 to T8, T16.

    @rule(chosen=st.lists(picks, min_size=1, max_size=3), engine=engines, lease=leases)
    def claim(self, chosen: list[int], engine: int, lease: float) -> None:
        ids = [self.letter_id(pick) for pick in chosen]

        def again() -> None:
            known = self.model.letters
            wanted = [
                each
                for each in dict.fromkeys(ids)
                if each in known and self.model.may_claim(known[each], self.now)
            ]
            given = self.ground.run(self.ground.engines[engine].claim(ids, owner=f"engine {engine}", lease=lease))
            self.expect([each.letter_id for each in given], wanted)
            self._hold(given, engine, lease, run=None, target=None)

        self.step(again)

    def _hold(self, given: Any, engine: int, lease: float, *, run: str | None, target: str | None) -> None:
        for claim in given:
            letter = self.model.letters[claim.letter_id]
            wanted = letter.held.redrive_id if letter.held is not None else claim.redrive_id
            goal = letter.held.target if letter.held is not None else target or letter.queue
            self.expect(
                (
                    claim.redrive_id,
                    claim.fence,
                    claim.generation,
                    claim.revision,
                    claim.message.body,
                    claim.target,
                ),
                (wanted, letter.fence + 1, letter.generation, letter.revision, letter.bodies[-1], goal),
            )
            until, owner = self.now + timedelta(seconds=lease), f"engine {engine}"
            held = Held(
                redrive_id=claim.redrive_id,
                fence=claim.fence,
                owner=owner,
                lease_until=until,
                run=run,
                target=goal,
            )
            self.model.hold(claim.letter_id, held)
        self.claims += given
        self.hands[engine] += given

    @precondition(lambda self: self.claims)
    @rule(pick=picks, outcome=st.sampled_from(sorted(SETTLED)), engine=engines)
    def settle(self, pick: int, outcome: str, engine: int) -> None:
        claim = self.claim_of(pick)

        def again() -> None:
            store = self.ground.engines[engine]
            said = self.ground.run(store.settle(claim, Transition(outcome), by=Actor("engine", "no")))
            self.expect(said, self.model.settle(claim.letter_id, claim.redrive_id, claim.fence, outcome))

        self.step(again)

    @precondition(lambda self: self.claims)
    @rule(
        chosen=st.lists(st.tuples(picks, st.sampled_from(["mark as sent", *sorted(SETTLED)])), max_size=5),
        engine=engines,
    )
    def settle_together(self, chosen: list[tuple[int, str]], engine: int) -> None:
        settled = [Settled(self.claim_of(pick), Transition(outcome), "so it ended") for pick, outcome in chosen]

        def again() -> None:
            said = self.ground.run(self.ground.engines[engine].settle_together(settled, by=Actor("engine")))
            number = sum(
                self.model.settle(each.claim.letter_id, each.claim.redrive_id, each.claim.fence, str(each.outcome))
                for each in settled
            )
            self.expect(said, number)

        self.step(again)

    @precondition(lambda self: self.hands[0] or self.hands[1])
    @rule(engine=engines)
    def settle_all_in_hand(self, engine: int) -> None:
        """As an engine marks its window."""
        claims, self.hands[engine] = self.hands[engine], []
        settled = [Settled(each, Transition.SENT) for each in claims]

        def again() -> None:
            said = self.ground.run(self.ground.engines[engine].settle_together(settled, by=Actor("engine")))
            facts = [(each.letter_id, each.redrive_id, each.fence) for each in claims]
            self.expect(said, sum(self.model.settle(*each, "mark as sent") for each in facts))

        self.step(again)

    @precondition(lambda self: self.claims)
    @rule(
        chosen=st.lists(picks, min_size=1, max_size=3),
        after=st.sampled_from([0.0, 5.0]),
        unsent=st.booleans(),
        engine=engines,
    )
    def let_go(self, *, chosen: list[int], after: float, unsent: bool, engine: int) -> None:
        claims = list({each.letter_id: each for each in (self.claim_of(pick) for pick in chosen)}.values())
        self._let_go(claims, engine, after=after, unsent=unsent)

    @precondition(lambda self: self.hands[0] or self.hands[1])
    @rule(engine=engines)
    def halt(self, engine: int) -> None:
        """As an engine lets go of its window when the run does not run any more."""
        claims = list({each.letter_id: each for each in self.hands[engine]}.values())
        self.hands[engine] = []
        self._let_go(claims, engine, after=0.0, unsent=True)

    def _let_go(self, claims: list[Claim], engine: int, *, after: float, unsent: bool) -> None:
        def again() -> None:
            self.ground.run(self.ground.engines[engine].let_go(claims, after=after, unsent=unsent))
            until = self.now + timedelta(seconds=after)
            for each in claims:
                self.model.let_go(each.letter_id, each.fence, until=until, unsent=unsent)

        self.step(again)

    @precondition(lambda self: self.hands[0] or self.hands[1])
    @rule(engine=engines)
    def crash(self, engine: int) -> None:
        """It knows nothing of what it had in hand any more."""
        self.hands[engine] = []
        self.step()

    # T10 to T17.

    @precondition(lambda self: self.claims)
    @rule(pick=picks, forged=seldom)
    def confirm(self, *, pick: int, forged: bool) -> None:
        ticket = self._ticket(self.claim_of(pick), forged=forged)

        def again() -> None:
            said = self.ground.run(self.ground.store.confirm(ticket, by=Actor("consumer")))
            self.expect(said, self.model.confirm(ticket.redrive_id, ticket.letter_id))

        self.step(again)

    @rule(chosen=st.lists(picks, min_size=1, max_size=3), transition=st.sampled_from(sorted(BY_HAND)))
    def change(self, chosen: list[int], transition: str) -> None:
        ids = [self.letter_id(pick) for pick in chosen]

        def again() -> None:
            said = self.ground.run(self.ground.store.change(ids, Transition(transition), by=Actor("ann", "so")))
            self.expect(dict(said), self.model.change(ids, transition))

        self.step(again)

    @rule(pick=picks, body=bodies, off=st.sampled_from([0, 0, 0, -1, 1]))
    def revise(self, pick: int, body: bytes, off: int) -> None:
        letter_id = self.letter_id(pick)
        letter = self.model.letters.get(letter_id)
        base = 0 if letter is None else letter.revision + off

        def again() -> None:
            revising = self.ground.store.revise(
                letter_id, a_message(body=body), base=base, by=Actor("ann", "typo")
            )
            try:
                said: int | str = self.ground.run(revising)
            except NotFound:
                said = "not found"
            except TransitionRefused:
                said = "refused by its status"
            except Refused:
                said = "edited meanwhile"
            self.expect(said, self.model.revise(letter_id, body, base, self.now))

        self.step(again)

    @rule(chosen=st.lists(picks, min_size=1, max_size=2))
    def purge(self, chosen: list[int]) -> None:
        ids = [self.letter_id(pick) for pick in chosen]

        def again() -> None:
            said = self.ground.run(self.ground.store.purge(ids, by=Actor("ann", "old")))
            self.expect(dict(said), self.model.purge(ids))

        self.step(again)

    # Runs.

    @rule(
        chosen=st.none() | st.none() | st.lists(picks, max_size=6),
        queue=st.sampled_from([None, None, "orders", "mails"]),
        at_most=st.sampled_from([None, None, 1, 3]),
        canary=st.sampled_from([(), (), (), (1,), (1, 3)]),
        rate=st.sampled_from([None, 0.5, 2.0]),
        edit=seldom,
        elsewhere=seldom,
        waits=st.sampled_from([None, None, None, 5.0, 3600.0]),
        by=people,
    )
    def create_run(
        self,
        *,
        chosen: list[int] | None,
        queue: str | None,
        at_most: int | None,
        canary: tuple[int, ...],
        rate: float | None,
        edit: bool,
        elsewhere: bool,
        waits: float | None,
        by: str,
    ) -> None:
        ids = None if chosen is None else tuple(self.letter_id(pick) for pick in chosen)
        target = "elsewhere" if elsewhere else None
        plan = Plan(ids=ids, queue=queue, at_most=at_most, canary=canary, rate=rate, target=target)
        plan.edit = (OLD, NEW) if edit else None
        asked = RunPlan(
            selection=LetterQuery(ids=ids, queue=queue),
            at_most=at_most,
            canary=Canary(steps=canary),
            rate=rate,
            edit=EDIT if edit else (),
            target=target,
        )
        self.step()
        ends = None if waits is None else self.now + timedelta(seconds=waits)
        number = self.model.matching(plan)
        approval = None if ends is None else Approval(digest=asked.digest(number), expires_at=ends)
        made = self.ground.run(self.ground.store.create_run(asked, by=Actor(by), approval=approval))
        run = self.model.create(made.id, plan, by=by, now=self.now, approval_ends=ends)
        self.expect((str(made.status), made.total), (run.status, run.total))

    @precondition(lambda self: self.model.runs)
    @rule(engine=engines, at_most=st.integers(1, 2))
    def take_of_the_newest(self, engine: int, at_most: int) -> None:
        self._take(self.run_of(0), engine, at_most, lease=5.0)

    @precondition(lambda self: self.model.runs)
    @rule(pick=picks, engine=engines, at_most=st.integers(1, 5), lease=leases)
    def take(self, pick: int, engine: int, at_most: int, lease: float) -> None:
        self._take(self.run_of(pick), engine, at_most, lease)

    @precondition(lambda self: self.model.runs)
    @rule(engine=engines, at_most=st.integers(1, 5))
    def take_over(self, engine: int, at_most: int) -> None:
        """The other engine was never heard of again."""
        self.ground.clock.advance(60.0)
        self.hands[1 - engine] = []
        self._take(self.run_of(0), engine, at_most, lease=5.0)

    def _take(self, run: Run, engine: int, at_most: int, lease: float) -> None:

        def again() -> None:
            store, owner = self.ground.engines[engine], f"engine {engine}"
            taken = self.ground.run(store.take(run.id, owner=owner, at_most=at_most, lease=lease))
            wanted = self.model.take(run, at_most=at_most, now=self.now)
            given, new = [each.letter_id for each in taken.claims], taken.taken_over + len(wanted.as_new)
            over, as_new, fresh = given[: taken.taken_over], given[taken.taken_over : new], given[new:]
            self.expect(
                (sorted(over), sorted(as_new), fresh), (sorted(wanted.over), sorted(wanted.as_new), wanted.fresh)
            )
            waiting = None if taken.waiting is None else str(taken.waiting)
            self.expect((waiting, taken.begins_in), (wanted.waiting, wanted.begins_in))
            self.ground.told["taken"] += len(fresh)
            self.ground.told["taken over"] += len(over)
            self.ground.told["at a pace"] += taken.begins_in > 0
            self._hold(taken.claims, engine, lease, run=run.id, target=run.plan.target)

        self.step(again)

    @precondition(lambda self: self.model.runs)
    @rule(pick=picks, off=st.sampled_from([0, 0, -1, 1]))
    def pass_stage(self, pick: int, off: int) -> None:
        run = self.run_of(pick)
        stage = run.stage + off

        def again() -> None:
            said = self.ground.run(self.ground.store.pass_stage(run.id, stage))
            self.expect(said, self.model.pass_stage(run, stage))

        self.step(again)

    @precondition(lambda self: self.model.runs)
    @rule(pick=picks, change=st.sampled_from(LIKELY_CHANGES), by=people)
    def change_run(self, pick: int, change: str, by: str) -> None:
        run = self.run_of(pick)

        def again() -> None:
            said = None
            try:
                self.ground.run(self.ground.store.change_run(run.id, RunChange(change), by=Actor(by, "so")))
            except Refused as refusal:
                said = str(refusal)
            wanted = self.model.change_run(run, change, by=by, now=self.now)
            assert (said is None) == (wanted is None), f"the store says {said}, the table {wanted}"
            assert wanted is None or wanted in str(said)
            self.ground.told[f"{change}: {wanted}"] += 1

        self.step(again)

    # Time, and everything else.

    @rule(seconds=st.sampled_from([1.0, 5.0, 60.0, 3601.0]))
    def time_passes(self, seconds: float) -> None:
        """And counters are added up."""
        self.step()
        self.ground.clock.advance(seconds)
        self.ground.fold()

    @precondition(lambda self: self.last is not None)
    @rule()
    def the_same_again(self) -> None:
        """Nobody knows how the last step ended, so that it is made once more."""
        self.step(self.last)

    @invariant()
    def the_store_is_as_the_table_says(self) -> None:
        compare(self.ground, self.model)
