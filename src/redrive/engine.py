"""Carries redrive runs out: take, send, mark, in windows, until nothing is left (GUARANTEES 4, T4 to T9 and T16).

1. Take. Claims, redrive ids and the run's cursor are durable before anything is sent. Crash: the leases run out,
   and whoever takes next goes on under the same redrive ids.
2. Send, pipelined, at the run's pace. Crash: sent and not marked; the takeover sends a second copy, with that id.
3. Mark the whole window. A lost mark is as a crash before it.

At most WINDOW letters of one engine are between the two, so that is how many can be sent twice by a kill. What one
letter meets never holds up the others: a lasting refusal is settled, everything else waits for its lease. Any
number of engines share a run; the store gives each letter to one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from redrive import faults
from redrive.brakes import Brakeman
from redrive.dead_letter import Actor, Transition
from redrive.errors import PublishRefused, TransitionRefused, Unreachable
from redrive.redriving import LEASE, SEND_DEADLINE, redriven, sender
from redrive.run import WINDOW, Run, RunChange, RunStatus, Settled, Waiting
from redrive.telemetry.error_facts import error_facts
from redrive.volley import Volley

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.clock import Clock
    from redrive.dead_letter import Claim
    from redrive.run import Taken
    from redrive.stores import RunStore
    from redrive.telemetry.spans import Spans
    from redrive.transports import Transport

log = structlog.get_logger("redrive.engine")

_LOOK_EVERY = 1.0
_MARK_EVERY = 1.0
_TURN_EVERY = 0.2
"""Seconds between two looks whether the next letter of a key may be sent."""
_LEASE = LEASE + SEND_DEADLINE
_AGAIN = 5.0
"""Seconds until a letter that the broker would not have just now is tried again."""


class _Unsent(Enum):
    NOT_TRIED = auto()
    BEHIND = auto()
    """Not tried: the one before it in its lane was not sent. What another engine had waits for its lease."""
    NOT_NOW = auto()
    UNKNOWN = auto()
    """It may have been sent: whoever takes it over when its lease has run out sends it under the same id (T9)."""


class RunExecution:
    """One engine's share of one run."""

    def __init__(
        self,
        run: Run,
        *,
        store: RunStore,
        transport: Transport,
        clock: Clock,
        owner: str,
        key: bytes,
        lease: float,
        in_flight: int,
        spans: Spans | None = None,
    ) -> None:
        self._id = run.id
        self._portion = max(1, in_flight // 2)
        self._lease = lease
        self._store = store
        self._clock = clock
        self._by = Actor(owner)
        self._key = key
        self._follow = None if spans is None else partial(spans.redrive, stamped=True, run_id=run.id)
        self._send = sender(transport, to_origin=run.plan.to_origin, follow=self._follow)
        self._quick = None if run.plan.to_origin else transport
        self._brakes = Brakeman(run, store=store, transport=transport, clock=clock)
        self._windows: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(2)
        self._halted = asyncio.Event()

    async def carry_out(self) -> None:
        """Until the run has ended, or does not run any more. Cancelled, it lets go of what it has not sent."""
        with structlog.contextvars.bound_contextvars(run_id=self._id):  # whoever logs meanwhile
            watching = asyncio.create_task(self._watch())
            try:
                while not self._halted.is_set():
                    await self._step()
            finally:
                self._halted.set()
                watching.cancel()
                await asyncio.gather(watching, *self._windows, return_exceptions=True)

    async def _step(self) -> None:
        """Windows are sent in the background, so that the next one is taken meanwhile; two at most."""
        await self._room.acquire()
        try:
            taken = await self._store.take(self._id, owner=self._by.name, at_most=self._portion, lease=self._lease)
            faults.point("engine.taken")
        except BaseException:
            self._room.release()
            raise
        if not taken.claims:
            self._room.release()
            await self._wait(taken)
            return
        task = asyncio.create_task(self._window(taken))
        self._windows.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._windows.discard(task)
        self._room.release()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a window of a run was not marked", **error_facts(error))

    async def _wait(self, taken: Taken) -> None:
        if taken.waiting is None:
            return  # all that was looked at was passed over, and there is more
        if taken.waiting is Waiting.NOT_RUNNING:
            self._halted.set()
        elif taken.waiting is Waiting.NOTHING_LEFT:
            await self._change(RunChange.FINISH, "everything was sent")
        elif taken.waiting is Waiting.CANARY:
            await self._judge_canary()
        elif taken.waiting is Waiting.ORDER:
            await self._pause(_TURN_EVERY)
        elif self._windows:  # what is left is in our own hands
            await asyncio.wait(self._windows, timeout=_LOOK_EVERY, return_when=asyncio.FIRST_COMPLETED)
        else:
            await self._pause(min(taken.begins_in or _LOOK_EVERY, _LOOK_EVERY))

    async def _judge_canary(self) -> None:
        # A count from before this step was taken knows of nothing that came back.
        run = await self._store.run(self._id, exact=True)
        if run is None or run.status is not RunStatus.RUNNING:
            self._halted.set()
            return
        verdict = self._brakes.canary(run)
        if verdict is None:
            await self._pause(_LOOK_EVERY)
        elif verdict.good:
            await self._store.pass_stage(self._id, run.stage)
        else:
            await self._change(RunChange.STOP, verdict.why)

    # One window.

    async def _window(self, taken: Taken) -> None:
        begins = self._clock.monotonic() + taken.begins_in
        places: dict[asyncio.Task[Settled | _Unsent], int] = {}
        last: dict[str | None, asyncio.Task[Settled | _Unsent]] = {}
        volley = Volley(self._quick, self._follow)
        for at, claim in sorted(enumerate(taken.claims), key=_in_lanes_by_id):
            if taken.spacing == 0 and self._goes_at_once(volley, at, claim):
                continue
            before = None if claim.lane is None else last.get(claim.lane)
            last[claim.lane] = asyncio.create_task(self._send_one(claim, begins + at * taken.spacing, before))
            places[last[claim.lane]] = at
        waiting: set[asyncio.Task[Any]] = set(places)
        if not volley.empty:
            waiting.add(asyncio.create_task(volley.over()))
        try:
            while waiting:  # at a low pace what is sent is marked all the same
                done, waiting = await asyncio.wait(waiting, timeout=_MARK_EVERY)
                ended = {places[task]: task.result() for task in done if task in places}
                landed = volley.landed().items()
                ended |= {at: await self._became(taken.claims[at], error) for at, error in landed}
                await self._mark(taken, ended)
        except Exception:
            self._halted.set()  # what cannot be marked is not sent either
            await asyncio.gather(*waiting, return_exceptions=True)
            raise

    async def _mark(self, taken: Taken, ended: dict[int, Settled | _Unsent]) -> None:
        faults.point("engine.sent")
        settled = [how for how in ended.values() if isinstance(how, Settled)]
        settled += [_not_its_turn(taken.claims[at]) for at in _behind(ended) if at >= taken.taken_over]
        if settled:
            await self._store.settle_together(settled, by=self._by)
        faults.point("engine.marked")
        if not_now := [taken.claims[at] for at, how in ended.items() if how is _Unsent.NOT_NOW]:
            await self._store.let_go(not_now, after=_AGAIN)
        untried = [at for at, how in ended.items() if how is _Unsent.NOT_TRIED]
        # What another engine had may have been sent by it.
        if fresh := [taken.claims[at] for at in untried if at >= taken.taken_over]:
            await self._store.let_go(fresh, unsent=True)
        if inherited := [taken.claims[at] for at in untried if at < taken.taken_over]:
            await self._store.let_go(inherited)

    def _goes_at_once(self, volley: Volley, at: int, claim: Claim) -> bool:
        if claim.lane is not None or self._halted.is_set():
            return False
        try:
            return volley.send(at, redriven(claim, self._key), queue=claim.target)
        except Exception:  # noqa: BLE001  sent by itself it meets the same, and that is told then
            return False

    async def _send_one(
        self, claim: Claim, due: float, before: asyncio.Task[Settled | _Unsent] | None
    ) -> Settled | _Unsent:
        if not await self._turn(due):
            return _Unsent.NOT_TRIED
        if before is not None and not _is_sent(await before):
            return _Unsent.BEHIND
        try:
            async with asyncio.timeout(SEND_DEADLINE):
                await self._send(redriven(claim, self._key), queue=claim.target)
        except Exception as met:  # noqa: BLE001  whatever one letter meets does not hold up the others
            return await self._became(claim, met)
        return await self._became(claim, None)

    async def _became(self, claim: Claim, error: Exception | None) -> Settled | _Unsent:
        if error is None:
            self._brakes.sent()
            return Settled(claim, Transition.SENT)
        await self._count_error(error)
        if not isinstance(error, PublishRefused):
            return _Unsent.UNKNOWN
        return Settled(claim, Transition.REFUSED, str(error)) if error.permanent else _Unsent.NOT_NOW

    async def _turn(self, due: float) -> bool:
        """False: the run was halted before its turn."""
        if (wait := due - self._clock.monotonic()) > 0:
            await self._pause(wait)
        return not self._halted.is_set()

    async def _pause(self, seconds: float) -> None:
        """Shorter if the run is halted."""
        sleeping = asyncio.create_task(self._clock.sleep(seconds))
        halted = asyncio.create_task(self._halted.wait())
        try:
            await asyncio.wait({sleeping, halted}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            halted.cancel()

    # What stops it.

    async def _count_error(self, error: Exception) -> None:
        if (why := self._brakes.failed(error)) is not None:
            await self._change(RunChange.PAUSE, why)

    async def _watch(self) -> None:
        """Sees within a second that somebody has paused or cancelled it, and applies the brakes."""
        while not self._halted.is_set():
            await self._clock.sleep(_LOOK_EVERY)
            with contextlib.suppress(Unreachable):
                run = await self._store.run(self._id)
                if run is None or run.status is not RunStatus.RUNNING:
                    self._halted.set()
                elif (why := await self._brakes.pull(run)) is not None:
                    await self._change(RunChange.PAUSE, why)

    async def _change(self, change: RunChange, why: str) -> None:
        self._halted.set()
        try:
            await self._store.change_run(self._id, change, by=Actor(self._by.name, why))
        except TransitionRefused:
            return  # somebody else was quicker, and it does not run either way
        except Unreachable as away:  # whoever carries it out next meets the same
            log.warning("a run could not be changed", change=str(change), **error_facts(away))
            return
        log.info("a run has been changed", change=str(change), reason=why)


def _in_lanes_by_id(numbered: tuple[int, Claim]) -> str:
    """Letters of a lane are sent in the order of their ids, wherever they stand in a window."""
    claim = numbered[1]
    return "" if claim.lane is None else claim.letter_id


def _is_sent(ended: Settled | _Unsent) -> bool:
    return isinstance(ended, Settled) and ended.outcome is Transition.SENT


def _behind(ended: dict[int, Settled | _Unsent]) -> list[int]:
    return [at for at, how in ended.items() if how is _Unsent.BEHIND]


def _not_its_turn(claim: Claim) -> Settled:
    return Settled(claim, Transition.UNCLAIM, "an earlier letter of its key was not sent")


class RedriveEngine:
    """Carries out whatever runs there are, until it is stopped. `lease`: seconds after which others take over what
    it has in hand; `in_flight`: how much that is.
    """

    def __init__(
        self,
        *,
        store: RunStore,
        transport: Transport,
        clock: Clock,
        owner: str,
        lease: float = _LEASE,
        in_flight: int = WINDOW,
        spans: Spans | None = None,
    ) -> None:
        self._store = store
        self._lease = lease
        self._in_flight = in_flight
        self._spans = spans
        self._transport = transport
        self._clock = clock
        self._owner = owner
        self._executions: dict[str, asyncio.Task[None]] = {}

    @property
    def under_way(self) -> int:
        """Runs that it carries out right now."""
        return len(self._executions)

    async def serve(self) -> None:
        """Until it is cancelled. A store that goes away is waited for."""
        try:
            while True:
                with contextlib.suppress(Unreachable):
                    await self._begin_runs()
                await self._clock.sleep(_LOOK_EVERY)
        finally:
            for task in self._executions.values():
                task.cancel()
            await asyncio.gather(*self._executions.values(), return_exceptions=True)

    async def carry_out(self, run_id: str, *, on_progress: Callable[[Run], None] | None = None) -> Run:
        """One run, until it has ended or does not run any more."""
        while True:
            run = await self._known(run_id)
            if on_progress is not None:
                on_progress(run)
            task = self._executions.get(run_id)
            if run.status is RunStatus.RUNNING:
                task = task or self._begin(run, await self._store.signing_key())
            elif task is None:
                return run
            await asyncio.wait({task}, timeout=_LOOK_EVERY)  # windows under way end before it does
            if task.done() and not task.cancelled() and task.exception() is not None:
                task.result()

    async def _known(self, run_id: str) -> Run:
        run = await self._store.run(run_id)
        assert run is not None  # noqa: S101  runs are never deleted
        return run

    async def _begin_runs(self) -> None:
        for run in await self._store.runs(active=True, limit=500):
            if run.status is RunStatus.RUNNING and run.id not in self._executions:
                self._begin(run, await self._store.signing_key())

    def _begin(self, run: Run, key: bytes) -> asyncio.Task[None]:
        execution = RunExecution(
            run,
            store=self._store,
            transport=self._transport,
            clock=self._clock,
            owner=self._owner,
            key=key,
            lease=self._lease,
            in_flight=self._in_flight,
            spans=self._spans,
        )
        task = self._executions[run.id] = asyncio.create_task(execution.carry_out())
        task.add_done_callback(lambda done: self._ended(run.id, done))
        return task

    def _ended(self, run_id: str, task: asyncio.Task[None]) -> None:
        self._executions.pop(run_id, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a run was interrupted, it goes on by itself", run_id=run_id, **error_facts(error))
