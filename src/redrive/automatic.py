"""Makes the runs of automatic rules, and pauses and resumes them by their windows. Engines carry them out.

Any number of processes do this at once: a rule has one run at a time, which the store sees to, and who was too
late makes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec
import structlog

from redrive.access import local
from redrive.actions import Actions
from redrive.approvals import ApprovalRules
from redrive.dead_letter import Actor, Verdict
from redrive.errors import NotFound, RedriveError, Refused
from redrive.letter_query import MAX_PAGE
from redrive.rules import Change, LastRun, Make, judge
from redrive.run_policy import RunPolicy
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from redrive.clock import Clock
    from redrive.rules import AutomaticRule
    from redrive.run import Run
    from redrive.stores import RunStore
    from redrive.transports import Transport

log = structlog.get_logger("redrive.automatic")

LOOK_EVERY = 30.0
_LEFT_TO_PEOPLE = (Verdict.DO_NOT_REPLAY, Verdict.REQUIRES_FIX)


class AutomaticRuns:
    """`every`: seconds between two looks; the edge of a window is looked at when it comes."""

    def __init__(
        self,
        rules: Sequence[AutomaticRule],
        *,
        store: RunStore,
        transport: Transport,
        clock: Clock,
        policy: RunPolicy | None = None,
        every: float = LOOK_EVERY,
    ) -> None:
        self._rules = tuple(rules)
        self._store = store
        self._transport = transport
        self._clock = clock
        self._policy = _for_rules(policy or RunPolicy())
        self._every = every

    async def serve(self) -> None:
        """Until it is cancelled. What a rule meets never holds up the others, and is tried again."""
        while True:
            await self.look()
            await self._clock.sleep(self._until_next())

    async def look(self) -> None:
        """Once, at every rule."""
        for rule in self._rules:
            try:
                await self._carry_out(rule)
            except RedriveError as error:
                log.warning("a rule was not carried out, it is tried again", rule=rule.name, **error_facts(error))
            except Exception as error:  # noqa: BLE001  whatever it is, it must not be the end of the other rules
                facts = error_facts(error)
                log.error("a rule was not carried out", rule=rule.name, **facts)  # noqa: TRY400  no payloads

    def _until_next(self) -> float:
        now = self._clock.now()
        edges = [rule.window.until_edge(now) for rule in self._rules if rule.window is not None]
        return min([self._every, *edges])

    async def _carry_out(self, rule: AutomaticRule) -> None:
        now = self._clock.now()
        last = await self._last_of(rule)
        decided = judge(rule, last, now)
        match decided:
            case None:
                return
            case Make():
                await self._make(rule, decided, None if last is None else last.run.id, now)
            case Change():
                await self._change(rule, decided, last)
            case _:
                assert_never(decided)

    async def _last_of(self, rule: AutomaticRule) -> LastRun | None:
        run = await self._store.newest_rule_run(rule.name)
        if run is None:
            return None
        history = await self._store.run_history(run.id)
        return LastRun(run, history[-1].by)

    async def _change(self, rule: AutomaticRule, decided: Change, last: LastRun | None) -> None:
        if last is None:
            return
        by = Actor(rule.signature, decided.why)
        try:
            await self._store.change_run(last.run.id, decided.change, by=by, seen=last.run.changed_at)
        except Refused:
            return  # somebody was quicker, and the next look judges that
        log.info("a rule has changed its run", rule=rule.name, run_id=last.run.id, change=str(decided.change))

    async def _make(self, rule: AutomaticRule, decided: Make, behind: str | None, now: datetime) -> None:
        probe = msgspec.structs.replace(rule.plan(now, since=decided.since).selection, limit=1)
        if not await self._store.find(probe):  # sooner told than counted
            return
        plan = rule.plan(now, since=decided.since, without_groups=await self._left_to_people())
        desk = Actions(
            store=self._store,
            transport=self._transport,
            clock=self._clock,
            who=local(rule.signature),
            policy=self._policy,
        )
        try:
            planned = await desk.plan_run(plan)
            by = Actor(rule.signature, plan.reason)
            made = await self._store.create_rule_run(planned.plan, by=by, behind=behind, approval=planned.approval)
        except (NotFound, Refused):
            return  # the letters have changed meanwhile
        if made is not None:
            _tell(rule, made)

    async def _left_to_people(self) -> set[str]:
        """Groups that somebody has looked at, and does not want to be sent as they are."""
        found = [await self._store.groups(verdict=each, limit=MAX_PAGE) for each in _LEFT_TO_PEOPLE]
        return {group.id for groups in found for group in groups}


def _for_rules(policy: RunPolicy) -> RunPolicy:
    """What needs an approval needs it from a person; rules ask for one only where they are told to."""
    if policy.approval.rules:
        return policy
    return msgspec.structs.replace(policy, approval=ApprovalRules())


def _tell(rule: AutomaticRule, run: Run) -> None:
    log.info("a rule has made a run", rule=rule.name, run_id=run.id, letters=run.total, status=str(run.status))
