"""A redrive run: letters selected once, sent back at a pace, and what became of each.

The selection is frozen when the run is made: a filter and a cut-off, or a list of ids. Letters that come later are
never taken, and so the run never chases its own returns. The states and what may happen in each are in `CHANGES`;
the engine (`engine.py`) carries a run out, any number of engines at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from redrive.dead_letter import Claim, Transition
from redrive.editing import Operation
from redrive.letter_query import LetterQuery

MAX_RATE = 1_000_000.0
WINDOW = 200
"""Letters that one engine has claimed and not marked yet, as a rule."""


class RunStatus(StrEnum):
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DONE = "DONE"
    CANCELLED = "CANCELLED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


ENDED = frozenset({RunStatus.DONE, RunStatus.CANCELLED, RunStatus.STOPPED, RunStatus.FAILED})


class RunChange(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    STOP = "stop"
    """A brake or the canary has decided: it does not go on."""
    FINISH = "finish"
    FAIL = "fail"


class RunRule(msgspec.Struct, frozen=True):
    sources: frozenset[RunStatus]
    target: RunStatus


def _rule(target: RunStatus, *sources: RunStatus) -> RunRule:
    return RunRule(frozenset(sources), target)


CHANGES: dict[RunChange, RunRule] = {
    RunChange.APPROVE: _rule(RunStatus.RUNNING, RunStatus.AWAITING_APPROVAL),
    RunChange.REJECT: _rule(RunStatus.CANCELLED, RunStatus.AWAITING_APPROVAL),
    RunChange.PAUSE: _rule(RunStatus.PAUSED, RunStatus.RUNNING),
    RunChange.RESUME: _rule(RunStatus.RUNNING, RunStatus.PAUSED),
    RunChange.CANCEL: _rule(RunStatus.CANCELLED, RunStatus.AWAITING_APPROVAL, RunStatus.RUNNING, RunStatus.PAUSED),
    RunChange.STOP: _rule(RunStatus.STOPPED, RunStatus.RUNNING),
    RunChange.FINISH: _rule(RunStatus.DONE, RunStatus.RUNNING),
    RunChange.FAIL: _rule(RunStatus.FAILED, RunStatus.RUNNING),
}


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """First a few, then more: each step is how many have been sent in all before outcomes are waited for."""

    steps: tuple[int, ...] = ()
    """Rising. None: no canary."""
    wait: float = 300.0
    """Seconds to wait for the outcomes of a step."""
    at_most_back: float = 0.2
    """The share of a step that may come back; above it the run is STOPPED."""


class Brakes(msgspec.Struct, frozen=True, kw_only=True):
    """When a run pauses by itself."""

    came_back: float | None = 0.5
    """The share of the last `window` outcomes that came back."""
    window: int = 100
    publish_errors: int | None = 5
    """In a row."""
    backlog: int | None = None
    """Messages that wait in the target queue."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for. It never changes: another plan is another run."""

    selection: LetterQuery
    """PENDING letters only, whatever it says of the status. `after`, `before` and `limit` do not count."""
    at_most: int | None = None
    """So many letters, the oldest first."""
    target: str | None = None
    """Another queue than each letter's own."""
    to_origin: bool = False
    quarantined: bool = False
    """QUARANTINED letters of the selection as well."""
    edit: tuple[Operation, ...] = ()
    """In this order."""
    allow_sensitive: bool = False
    """Whether the edit may touch headers that let somebody in (`header_class`)."""
    schema: str = ""
    """A JSON Schema that payloads have to fit as they are sent; other letters are passed over. Empty: none."""
    rate: float | None = None
    """Messages per second, over all engines; None: as fast as it goes."""
    ceilings: Mapping[str, float] = {}
    """Messages per second that these queues get from all runs together. The rate is within them."""
    canary: Canary = Canary()
    brakes: Brakes = Brakes()
    reason: str = ""
    rule: str = ""
    """The automatic rule that made it; empty: a person."""

    def digest(self, count: int) -> str:
        """What an approval is bound to: selection, target, edit with its permission and schema, and count, as they
        were shown.
        """
        letters = (self.selection, self.at_most, self.quarantined, count)
        shown = (letters, self.target, self.to_origin, self.edit, self.allow_sensitive, self.schema)
        return hashlib.sha256(_encoder.encode(shown)).hexdigest()


_encoder = msgspec.json.Encoder(order="deterministic")


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """What a run needs before its first effect, if it needs anything."""

    digest: str
    expires_at: datetime
    why: str = ""
    """The rule that asks for it."""
    by: str | None = None
    at: datetime | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of the letters taken so far, counted from their own rows."""

    taken: int = 0
    in_hand: int = 0
    """Claimed, and not known to be sent."""
    sent: int = 0
    """Sent, whatever became of it since."""
    confirmed: int = 0
    came_back_same: int = 0
    """In the group it had before."""
    came_back_new: int = 0
    refused: int = 0
    released: int = 0
    """Claimed and given back unsent: cancelled, or the broker said "not now"."""
    by_hand: int = 0
    """Sent, and then decided by a person, or assumed after a chosen silence."""
    last_sent_at: datetime | None = None
    passed_over: int = 0
    """Looked at and not taken: its edit did not fit, or its status did not allow it any more."""

    @property
    def came_back(self) -> int:
        return self.came_back_same + self.came_back_new

    @property
    def without_word(self) -> int:
        return self.sent - self.confirmed - self.came_back - self.by_hand


class Run(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    plan: RunPlan
    status: RunStatus
    why: str = ""
    """Of its last change."""
    requested_by: str
    created_at: datetime
    changed_at: datetime
    ended_at: datetime | None = None
    total: int
    """Letters of the selection when it was made."""
    exhausted: bool = False
    """Every letter of the selection has been taken or passed over."""
    stage: int = 0
    """Steps of the canary that are behind it."""
    approval: Approval | None = None
    progress: Progress = Progress()

    @property
    def remaining(self) -> int:
        return 0 if self.exhausted else max(self.total - self.progress.taken, 0)


class Waiting(StrEnum):
    """Why there is nothing to take."""

    NOTHING_LEFT = "nothing is left"
    """Every letter of the selection was taken, and none is in anybody's hand."""
    OTHER_HANDS = "in other hands"
    """Every letter was taken, and some are claimed: by another engine, or by one that died."""
    CANARY = "canary"
    """The outcomes of the canary's step decide."""
    ORDER = "order"
    """Letters of a key wait until the one before them is settled."""
    PACE = "pace"
    NOT_RUNNING = "not running"


class PassedOver(StrEnum):
    """Why a letter of the selection was not taken: its outcome in the run."""

    NOT_EDITED = "not edited"
    MISFIT = "did not fit the schema"
    EDITED_MEANWHILE = "edited meanwhile"
    NOT_PENDING = "not pending"
    NOT_FOUND = "not found"
    CAME_BACK_MEANWHILE = "came back meanwhile"
    BLOCKED = "blocked"
    UNREADABLE = "unreadable"


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """Letters of a run that are now this engine's to send (T4, T5, T6)."""

    claims: tuple[Claim, ...] = ()
    taken_over: int = 0
    """How many of them another engine had and did not finish."""
    begins_in: float = 0.0
    """Seconds until the first may be sent, at the pace that all engines share."""
    spacing: float = 0.0
    """Seconds between one and the next."""
    waiting: Waiting | None = None
    """Why there are none."""


class Settled(msgspec.Struct, frozen=True):
    """How the sending of one claim ended."""

    claim: Claim
    outcome: Transition
    """SENT, REFUSED or UNCLAIM."""
    reason: str = ""


class LetterOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one letter of a run."""

    letter_id: str
    redrive_id: str
    queue: str
    outcome: str
    """In the words of its history: claimed, sent, confirmed, came back, refused ..."""
    claimed_at: datetime
    sent_at: datetime | None = None
    outcome_at: datetime | None = None
    group_before: str = ""
    group_after: str | None = None
