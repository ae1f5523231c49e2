"""What a store must do with letters and their redrives, in plain Python: the table of transitions once more.

It knows nothing of the product's code, so that one mistake is not made twice. Each method does what the store is
asked for, and gives what the store must answer; `lines` are the lines of history that this must have made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

MAX_GENERATIONS = 3
MAX_REFUSALS = 3

BY_HAND = {
    "resolve": ({"PENDING", "REDRIVEN", "QUARANTINED"}, "RESOLVED", "resolved"),
    "discard": ({"PENDING", "QUARANTINED"}, "DISCARDED", "discarded"),
    "restore": ({"DISCARDED", "RESOLVED"}, "PENDING", "restored"),
    "quarantine": ({"PENDING"}, "QUARANTINED", "quarantined"),
    "release": ({"QUARANTINED"}, "PENDING", "released"),
    "expire": ({"PENDING"}, "DISCARDED", "expired"),
}
SETTLED = {"mark as sent": "sent", "mark as refused": "refused", "unclaim": "unclaimed"}


@dataclass(kw_only=True)
class Held:
    """The one live claim of a letter."""

    redrive_id: str
    fence: int
    owner: str
    lease_until: datetime
    run: str | None
    target: str
    unsent: bool = False


@dataclass(kw_only=True)
class Letter:
    id: str
    identity: str
    queue: str
    group: str
    created_at: datetime
    delivered_at: datetime
    bodies: list[bytes]
    told: dict[tuple[int, int], datetime]
    """When each attempt of each generation failed."""
    status: str = "PENDING"
    generation: int = 1
    fence: int = 0
    redrive_id: str | None = None
    refusals: int = 0
    deliveries: int = 1
    held: Held | None = None
    by_hand: set[int] = field(default_factory=set)
    """Revisions that a person made, not a run."""
    edited_at: datetime | None = None
    free: bool = True
    """Whether it may get another redrive id in this generation."""

    @property
    def revision(self) -> int:
        return len(self.bodies) - 1

    @property
    def order(self) -> tuple[datetime, str]:
        return self.created_at, self.id


@dataclass(kw_only=True)
class Redrive:
    """One redrive id, and what became of it."""

    id: str
    letter: str
    generation: int
    revision: int
    run: str | None
    group: str
    sent: bool = False
    outcome: str | None = None
    returned_as: int | None = None
    returned_at: datetime | None = None
    returned_group: str | None = None


@dataclass(kw_only=True)
class Returned:
    """A message that fails, as a consumer records it."""

    identity: str
    body: bytes
    queue: str
    group: str
    at: datetime
    attempts: int
    ticket: tuple[str, str] | None
    """Redrive id and letter id."""
    quarantine: bool = False

    def failures(self) -> dict[int, datetime]:
        return {n: self.at - timedelta(minutes=self.attempts - n) for n in range(1, self.attempts + 1)}


@dataclass
class Letters:
    letters: dict[str, Letter] = field(default_factory=dict)
    redrives: dict[str, Redrive] = field(default_factory=dict)
    lines: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Whom it is about, what happened, before, after."""

    def tell(self, letter: Letter, what: str, before: str) -> None:
        self.lines.append((letter.id, what, before, letter.status))

    # T1 to T3.

    def record(self, entry: Returned, answered: str, now: datetime) -> tuple[str, str]:
        """`answered`: the id that the store gave, which is the letter's own if it is new."""
        redrive = self._issued(entry)
        if redrive is not None:
            return redrive.letter, self._returned(entry, redrive, now)
        known = next((each for each in self.letters.values() if each.identity == entry.identity), None)
        if known is None:
            return self._new(entry, answered), "new"
        self._fold(known, entry, generation=1)
        self._quarantine(known, entry, generation=1)
        return known.id, "again"

    def _new(self, entry: Returned, letter_id: str) -> str:
        letter = Letter(
            id=letter_id,
            identity=entry.identity,
            queue=entry.queue,
            group=entry.group,
            created_at=entry.at,
            delivered_at=entry.at,
            bodies=[entry.body],
            told={(1, attempt): at for attempt, at in entry.failures().items()},
            status="QUARANTINED" if entry.quarantine else "PENDING",
        )
        self.letters[letter_id] = letter
        self.tell(letter, "recorded", "")
        return letter_id

    def _issued(self, entry: Returned) -> Redrive | None:
        if entry.ticket is None:
            return None
        redrive_id, letter_id = entry.ticket
        redrive, letter = self.redrives.get(redrive_id), self.letters.get(letter_id)
        if redrive is None or letter is None or redrive.letter != letter_id:
            return None
        return redrive if letter.bodies[redrive.revision] == entry.body else None

    def _returned(self, entry: Returned, redrive: Redrive, now: datetime) -> str:
        letter = self.letters[redrive.letter]
        if redrive.returned_as is not None:
            self._fold(letter, entry, generation=redrive.returned_as)
            self._quarantine(letter, entry, generation=1)
            return "again"
        decides = letter.redrive_id == redrive.id and letter.status in {"REDRIVING", "REDRIVEN", "RESOLVED"}
        letter.generation += 1
        letter.deliveries += 1
        letter.delivered_at = entry.at
        letter.told |= {(letter.generation, attempt): at for attempt, at in entry.failures().items()}
        redrive.outcome, redrive.returned_as, redrive.returned_at = "came back", letter.generation, now
        redrive.returned_group = entry.group
        before = letter.status
        if not decides:
            self.tell(letter, "came back", before)
            self._quarantine(letter, entry, generation=letter.generation)
            return "again"
        beyond = entry.quarantine or letter.generation > MAX_GENERATIONS
        letter.status = "QUARANTINED" if beyond else "PENDING"
        letter.group, letter.redrive_id, letter.refusals, letter.held = entry.group, None, 0, None
        letter.free = True
        self.tell(letter, "came back", before)
        return "came back"

    def _fold(self, letter: Letter, entry: Returned, *, generation: int) -> None:
        """A delivery counts once: it is known by its moment, or by its last failure."""
        last = letter.told.get((generation, entry.attempts))
        unknown = {n: at for n, at in entry.failures().items() if (generation, n) not in letter.told}
        counted = entry.at in {letter.delivered_at, last}
        letter.told |= {(generation, n): at for n, at in unknown.items()}
        if unknown or not counted:
            letter.deliveries += 1
            letter.delivered_at = entry.at

    def _quarantine(self, letter: Letter, entry: Returned, *, generation: int) -> None:
        wanted = entry.quarantine or generation > MAX_GENERATIONS
        if wanted and letter.status == "PENDING":
            letter.status = "QUARANTINED"
            self.tell(letter, "quarantined", "PENDING")

    # T4 to T8, T16.

    def may_claim(self, letter: Letter, now: datetime) -> bool:
        return letter.status == "PENDING" or (letter.held is not None and letter.held.lease_until <= now)

    def claim(self, letter: Letter, held: Held) -> None:
        """T4 and T5 by the redrive id that the store has made, or T6 with the one that there is."""
        letter.fence += 1
        if letter.held is not None:
            held.target, held.run = letter.held.target, letter.held.run
            letter.held = held
            self.tell(letter, "claim taken over", "REDRIVING")
            return
        assert held.redrive_id not in self.redrives, "a redrive id was given out twice"
        assert letter.free, "a second redrive id for one attempt, with nothing between"
        letter.status, letter.redrive_id, letter.held, letter.free = "REDRIVING", held.redrive_id, held, False
        self.redrives[held.redrive_id] = Redrive(
            id=held.redrive_id,
            letter=letter.id,
            generation=letter.generation,
            revision=letter.revision,
            run=held.run,
            group=letter.group,
        )
        self.tell(letter, "claimed", "PENDING")

    def settle(self, letter_id: str, redrive_id: str, fence: int, outcome: str) -> bool:
        letter = self.letters.get(letter_id)
        if letter is None or letter.held is None:
            return False
        if (letter.held.redrive_id, letter.held.fence) != (redrive_id, fence):
            return False
        redrive = self.redrives[redrive_id]
        letter.held = None
        if outcome == "mark as sent":
            letter.status, letter.refusals, redrive.sent = "REDRIVEN", 0, True
        else:
            letter.status, letter.redrive_id, letter.free = "PENDING", None, True
            redrive.outcome = SETTLED[outcome]
        self.tell(letter, SETTLED[outcome], "REDRIVING")
        if outcome == "mark as refused":
            self._refused(letter)
        return True

    def _refused(self, letter: Letter) -> None:
        letter.refusals += 1
        if letter.refusals >= MAX_REFUSALS:
            letter.status = "QUARANTINED"
            self.tell(letter, "quarantined", "PENDING")

    # T10 to T17.

    def confirm(self, redrive_id: str, letter_id: str) -> bool:
        letter = self.letters.get(letter_id)
        if letter is None or letter.redrive_id != redrive_id or letter.status not in {"REDRIVING", "REDRIVEN"}:
            return False
        before, letter.status = letter.status, "RESOLVED"
        letter.held, letter.refusals = None, 0
        self.redrives[redrive_id].outcome = "confirmed"
        self.tell(letter, "confirmed", before)
        return True

    def change(self, ids: list[str], transition: str) -> dict[str, str | None]:
        sources, target, what = BY_HAND[transition]
        unchanged: dict[str, str | None] = {}
        for each in dict.fromkeys(ids):
            letter = self.letters.get(each)
            if letter is None or letter.status not in sources:
                unchanged[each] = None if letter is None else letter.status
                continue
            before, letter.status = letter.status, target
            if before == "REDRIVEN" and letter.redrive_id is not None:
                self.redrives[letter.redrive_id].outcome = "resolved"
            if target == "PENDING":
                letter.refusals, letter.free = 0, True
            self.tell(letter, what, before)
        return unchanged

    def revise(self, letter_id: str, body: bytes, base: int, now: datetime) -> int | str:
        """The new revision's number, or why not."""
        letter = self.letters.get(letter_id)
        if letter is None:
            return "not found"
        if letter.revision == base + 1 and letter.bodies[-1] == body and letter.revision in letter.by_hand:
            return base + 1  # the same once more
        if letter.status != "PENDING":
            return "refused by its status"
        if letter.revision != base:
            return "edited meanwhile"
        self.edit(letter, body, now)
        letter.by_hand.add(base + 1)
        return base + 1

    def edit(self, letter: Letter, body: bytes, now: datetime) -> None:
        letter.bodies.append(body)
        letter.edited_at = now
        self.lines.append((letter.id, "edited", f"revision {letter.revision - 1}", f"revision {letter.revision}"))

    def purge(self, ids: list[str]) -> dict[str, str | None]:
        unchanged: dict[str, str | None] = {}
        for each in dict.fromkeys(ids):
            letter = self.letters.get(each)
            if letter is None or letter.status not in {"RESOLVED", "DISCARDED"}:
                unchanged[each] = None if letter is None else letter.status
                continue
            del self.letters[each]
            self.lines.append((each, "purged", letter.status, ""))
            forgotten = [one.id for one in self.redrives.values() if one.letter == each and one.run is None]
            for redrive_id in forgotten:
                del self.redrives[redrive_id]
        return unchanged
