"""What a store must do with redrive runs, in plain Python, on top of what it must do with letters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from stateful.model import Held, Letter, Letters

AHEAD = 10.0
CHANGES = {
    "approve": ({"AWAITING_APPROVAL"}, "RUNNING", "approved"),
    "reject": ({"AWAITING_APPROVAL"}, "CANCELLED", "rejected"),
    "pause": ({"RUNNING"}, "PAUSED", "paused"),
    "resume": ({"PAUSED"}, "RUNNING", "resumed"),
    "cancel": ({"AWAITING_APPROVAL", "RUNNING", "PAUSED"}, "CANCELLED", "cancelled"),
    "stop": ({"RUNNING"}, "STOPPED", "stopped"),
    "finish": ({"RUNNING"}, "DONE", "finished"),
    "fail": ({"RUNNING"}, "FAILED", "failed"),
}
ENDED = {"DONE", "CANCELLED", "STOPPED", "FAILED"}


@dataclass(kw_only=True)
class Plan:
    """What somebody asks for."""

    ids: tuple[str, ...] | None = None
    queue: str | None = None
    at_most: int | None = None
    canary: tuple[int, ...] = ()
    rate: float | None = None
    edit: tuple[bytes, bytes] | None = None
    """From this body to that one; other bodies are not fit."""
    target: str | None = None


@dataclass(kw_only=True)
class Run:
    id: str
    plan: Plan
    status: str
    created_at: datetime
    total: int
    cut_off: str
    by: str
    approval_ends: datetime | None = None
    taken: int = 0
    stage: int = 0
    exhausted: bool = False
    last: tuple[datetime, str] | None = None
    place: int = 0
    next_at: datetime | None = None
    passed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Letters that were looked at and not taken, and why."""

    def rooms(self) -> list[int]:
        found = [] if self.plan.at_most is None else [self.plan.at_most - self.taken]
        return found + [step - self.taken for step in self.plan.canary[self.stage : self.stage + 1]]


@dataclass(kw_only=True)
class Expected:
    """What `take` must answer. The redrive ids of `fresh` are the store's to make."""

    over: list[str] = field(default_factory=list)
    """Nobody knows whether they were sent."""
    as_new: list[str] = field(default_factory=list)
    """Let go unsent."""
    fresh: list[str] = field(default_factory=list)
    waiting: str | None = None
    begins_in: float = 0.0


@dataclass
class Model(Letters):
    runs: dict[str, Run] = field(default_factory=dict)

    def matching(self, plan: Plan) -> int:
        """How many letters a run would take if it were made now."""
        named = None if plan.ids is None else set(plan.ids)
        number = sum(
            each.status == "PENDING" and plan.queue in {None, each.queue} and (named is None or each.id in named)
            for each in self.letters.values()
        )
        return number if plan.at_most is None else min(number, plan.at_most)

    def create(self, run_id: str, plan: Plan, *, by: str, now: datetime, approval_ends: datetime | None) -> Run:
        run = self.runs[run_id] = Run(
            id=run_id,
            plan=plan,
            status="RUNNING" if approval_ends is None else "AWAITING_APPROVAL",
            created_at=now,
            total=self.matching(plan),
            cut_off=max(self.letters, default=""),
            by=by,
            approval_ends=approval_ends,
        )
        self.lines.append((f"run:{run_id}", "requested", "", run.status))
        return run

    def change_run(self, run: Run, change: str, *, by: str, now: datetime) -> str | None:
        """Why not, or None."""
        sources, target, what = CHANGES[change]
        if run.status not in sources:
            return f"is {run.status}"
        if change == "approve" and run.by == by:
            return "cannot approve it"
        if change == "approve" and run.approval_ends is not None and now > run.approval_ends:
            return "the time to approve"
        before, run.status = run.status, target
        self.lines.append((f"run:{run.id}", what, before, target))
        if target in ENDED:
            self._give_back(run)
        return None

    def _give_back(self, run: Run) -> None:
        """T16 for what is known to be unsent."""
        for letter in self.letters.values():
            held = letter.held
            if held is not None and held.run == run.id and held.unsent:
                self.settle(letter.id, held.redrive_id, held.fence, "unclaim")

    def let_go(self, letter_id: str, fence: int, *, until: datetime, unsent: bool) -> None:
        letter = self.letters.get(letter_id)
        if letter is None or letter.held is None or letter.held.fence != fence:
            return
        letter.held.lease_until, letter.held.unsent = until, unsent
        run = self.runs.get(letter.held.run or "")
        if unsent and run is not None and run.status in ENDED:
            self.settle(letter_id, letter.held.redrive_id, fence, "unclaim")

    def pass_stage(self, run: Run, stage: int) -> bool:
        if run.stage != stage:
            return False
        run.stage += 1
        return True

    # Taking.

    def take(self, run: Run, *, at_most: int, now: datetime) -> Expected:
        if run.status != "RUNNING":
            return Expected(waiting="not running")
        rate = run.plan.rate
        begin = now if rate is None or run.next_at is None else max(now, run.next_at)
        begins_in = (begin - now).total_seconds()
        if begins_in > AHEAD:
            return Expected(waiting="pace", begins_in=begins_in)
        size = at_most if rate is None else min(at_most, max(1, int(rate * AHEAD)))
        expired = self._expired(run, now)[:size]
        fresh = self._further(run, size - len(expired), now)
        if rate is not None:
            run.next_at = begin + timedelta(seconds=(len(expired) + len(fresh)) / rate)
        if not expired and not fresh:
            return Expected(waiting=self._why_none(run))
        over, as_new = ([each for each in expired if self._is_unsent(each) is so] for so in (False, True))
        return Expected(over=over, as_new=as_new, fresh=fresh, begins_in=begins_in)

    def _is_unsent(self, letter_id: str) -> bool:
        held = self.letters[letter_id].held
        return held is not None and held.unsent

    def _expired(self, run: Run, now: datetime) -> list[str]:
        held = [(each.held, each.id) for each in self.letters.values() if each.held is not None]
        return sorted(each for one, each in held if one.run == run.id and one.lease_until <= now)

    def _further(self, run: Run, size: int, now: datetime) -> list[str]:
        """Page by page, until one has something to take."""
        room, found = min([size, *run.rooms()]), list[str]()
        while room > 0 and not found and not run.exhausted:
            for each in self._page(run, room):
                why = self._obstacle(run, each, now)
                if why is None:
                    found.append(each)
                else:
                    run.passed[each, why] += 1
        run.taken += len(found)
        run.exhausted |= run.plan.at_most is not None and run.taken >= run.plan.at_most
        return found

    def _page(self, run: Run, room: int) -> list[str]:
        """The selection is frozen: nothing from behind the cut-off, nothing twice."""
        if run.plan.ids is not None:
            every = list(dict.fromkeys(run.plan.ids))
            page = every[run.place : run.place + room]
            run.place += len(page)
            run.exhausted = run.place >= len(every)
            known = {each: self.letters[each] for each in page if each in self.letters}
            return [
                each
                for each in page
                if run.plan.queue is None or (each in known and known[each].queue == run.plan.queue)
            ]
        rest = sorted(
            (each for each in self.letters.values() if self._is_ahead(run, each)), key=lambda one: one.order
        )
        run.exhausted = len(rest) < room
        if rest:
            run.last = rest[:room][-1].order
        return [each.id for each in rest[:room]]

    def _is_ahead(self, run: Run, letter: Letter) -> bool:
        if letter.status != "PENDING" or letter.id > run.cut_off or run.plan.queue not in {None, letter.queue}:
            return False
        return run.last is None or letter.order > run.last

    def _obstacle(self, run: Run, letter_id: str, now: datetime) -> str | None:
        letter = self.letters.get(letter_id)
        if letter is None:
            return "not found"
        if letter.status != "PENDING":
            return "not pending"
        mine = (each for each in self.redrives.values() if each.letter == letter_id)
        if any(each.returned_at is not None and each.returned_at > run.created_at for each in mine):
            return "came back meanwhile"
        if run.approval_ends is not None and letter.edited_at is not None and letter.edited_at > run.created_at:
            self.lines.append((letter.id, "edited meanwhile", letter.status, letter.status))
            return "edited meanwhile"  # whoever approved the run has not seen that
        if run.plan.edit is None:
            return None
        return self._edited(letter, *run.plan.edit, now)

    def _edited(self, letter: Letter, wanted: bytes, new: bytes, now: datetime) -> str | None:
        if letter.bodies[-1] != wanted:
            self.lines.append((letter.id, "not edited", letter.status, letter.status))
            return "not edited"
        self.edit(letter, new, now)
        return None

    def _why_none(self, run: Run) -> str | None:
        if run.exhausted:
            in_hand = any(each.held is not None and each.held.run == run.id for each in self.letters.values())
            return "in other hands" if in_hand else "nothing is left"
        return "canary" if min([1, *run.rooms()]) <= 0 else None

    def hold(self, letter_id: str, held: Held) -> None:
        self.claim(self.letters[letter_id], held)

    # What a run tells.

    def progress(self, run: Run) -> dict[str, int]:
        mine = [each for each in self.redrives.values() if each.run == run.id]
        back = [each for each in mine if each.outcome == "came back"]
        same = sum(each.returned_group == each.group for each in back)
        outcomes = Counter(each.outcome for each in mine)
        return {
            "taken": run.taken,
            "in_hand": sum(each.outcome is None and not each.sent for each in mine),
            "sent": sum(each.sent or each.outcome in {"confirmed", "came back", "resolved"} for each in mine),
            "confirmed": outcomes["confirmed"],
            "came_back_same": same,
            "came_back_new": len(back) - same,
            "refused": outcomes["refused"],
            "released": outcomes["unclaimed"],
            "by_hand": outcomes["resolved"],
            "passed_over": run.passed.total(),
        }
