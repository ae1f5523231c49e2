"""The desk's part about dead-letter queues that a broker itself moves back: see `redrive.actions`.

No letter is made of such messages, so nothing here knows what becomes of each of them. What the desk asks of a run
(who may, where to, how fast, whether a second person has to agree) is asked here too.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from redrive.access import Permission
from redrive.approvals import Shown, approval_for
from redrive.errors import Refused, Unreachable
from redrive.ledger import QUEUE, Deed, Subject
from redrive.letter_query import LetterQuery
from redrive.run import RunPlan
from redrive.standing import Standing
from redrive.transports.moving import MoveState

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.clock import Clock
    from redrive.run_policy import RunPolicy
    from redrive.transports import Transport
    from redrive.transports.moving import Movable, Move, Mover

_LOOK_EVERY = 0.5


class MoveActions(Standing):
    _transport: Transport
    _policy: RunPolicy
    _clock: Clock

    async def movable(self, queue: str) -> Movable:
        """Refused where the broker cannot, or does not know where to."""
        await self._may(Permission.REDRIVE)
        found = await self._mover(queue).movable(queue)
        for target in found.targets:
            await self._may_send_to(target)
        if not found.targets:
            raise Refused(
                f"no queue has its dead letters in {queue!r}: the broker does not know where they came from",
                remedy=f"redrive collect {queue}, and redrive retry",
            )
        return found

    def plan_move(self, movable: Movable, rate: float | None = None) -> int | None:
        """Messages per second: those that are asked for, or the settings say, or the lowest ceiling of the queues;
        None: as the broker likes. Refused if it cannot begin, or a run of these would have to be approved.
        """
        if movable.under_way is not None:
            raise Refused(
                f"a move of {movable.queue!r} is under way: about {movable.under_way.moved} are moved",
                remedy=f"wait for it, or redrive move-back {movable.queue} --cancel",
            )
        self._check_needs_nobody(movable)
        wanted = self._policy.rate_to(movable.targets, self._policy.rate if rate is None else rate)
        if wanted is not None and wanted < 1:
            raise Refused(
                f"the broker cannot move {wanted:g} messages per second, which is all that the settings allow",
                remedy=f"redrive collect {movable.queue}, and redrive retry: a run can be that slow",
            )
        return None if wanted is None else min(int(wanted), self._mover(movable.queue).fastest)

    async def start_move(self, movable: Movable, *, rate: float | None = None, reason: str = "") -> Move:
        """It is in the audit trail before it begins, and so is why it did not."""
        paced = self.plan_move(movable, rate)
        at = "" if paced is None else f", at most {paced} per second"
        told = f"about {movable.ready} to {', '.join(movable.targets)}{at}"
        await self._write_down("move back", movable.queue, told, reason)
        try:
            return await self._mover(movable.queue).start(movable.queue, rate=paced)
        except (Refused, Unreachable) as error:
            await self._write_down("move back failed", movable.queue, str(error))
            raise

    async def follow_move(self, move: Move, on_progress: Callable[[Move], None] = lambda _: None) -> Move:
        """Until it is over. A broker that is away goes on without us: that is its end in the audit trail."""
        try:
            while not (move := await self._mover(move.queue).look(move)).state.is_over:
                on_progress(move)
                await asyncio.sleep(_LOOK_EVERY)
        except Unreachable as error:
            await self._write_down("move back not followed", move.queue, f"about {move.moved} so far: {error}")
            raise
        await self._write_down("moved back", move.queue, f"{move.state}, about {move.moved}")
        return move

    async def cancel_move(self, move: Move) -> Move:
        """What was moved stays where it is."""
        await self._may(Permission.REDRIVE)
        await self._write_down("cancel move back", move.queue)
        await self._mover(move.queue).cancel(move)
        return replace(move, state=MoveState.CANCELLING)

    def _mover(self, queue: str) -> Mover:
        found: Callable[[], Mover] | None = getattr(self._transport, "mover", None)
        if found is None:
            raise Refused(
                "this broker does not move dead letters back by itself: SQS does",
                remedy=f"redrive collect {queue}, and redrive retry; or redrive reprocess --queue {queue}",
            )
        return found()

    def _check_needs_nobody(self, movable: Movable) -> None:
        shown = Shown(count=movable.ready, queues={movable.queue, *movable.targets})
        plan, rules = RunPlan(selection=LetterQuery()), self._policy.approval
        needed = approval_for(plan, shown, rules=rules, now=self._clock.now())
        if needed is not None:
            raise Refused(
                f"a second person has to agree: {needed.why}",
                remedy=f"redrive collect {movable.queue}, and redrive retry: that is a run, which can be approved",
            )

    async def _write_down(self, what: str, queue: str, after: str = "", reason: str = "") -> None:
        await self._runs.note(Deed(what=what, subject=Subject(QUEUE, (queue,)), after=after), by=self._by(reason))
