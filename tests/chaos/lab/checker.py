"""Says what became of every message, in the manner of Jepsen's total-queue checker.

It believes the history, the files and the rows, never the product, and uses none of its code. A message that was
acknowledged to its producer must be found in at least one place (handled with success, a letter, the broker, the
spool), and when everything is quiet in exactly the places its `expect` names:

| expect | in the end |
|---|---|
| handled | handled at least once, and no letter |
| effect | exactly one row in the handlers' own database, and no letter |
| letter | exactly one letter that waits for a person, and never handled with success |
| resolved | exactly one letter, RESOLVED because its redrive was confirmed, and handled at least once |
| any | anywhere, but at most one letter |

A worker that dies three times while it holds a message has to set the message apart, so one QUARANTINED letter for
process deaths is right for every message; how many there may be is bounded by the number of kills.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chaos.lab import places
from chaos.lab.history import AGAIN, OK, SEND, SENT, read_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from chaos.lab.broker import Broker
    from chaos.lab.places import Letter
    from chaos.lab.rows import Database

WAITING = {"PENDING", "QUARANTINED"}


@dataclass
class Evidence:
    """Everything that was written down or found."""

    expect: dict[str, str] = field(default_factory=dict)
    """Every message that a producer attempted to send."""
    bodies: dict[str, str] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    handled: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    redrive_ids: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """What the handlers saw, by message."""
    letters: dict[str, list[Letter]] = field(default_factory=lambda: defaultdict(list))
    on_broker: Counter[str] = field(default_factory=Counter)
    spooled: set[str] = field(default_factory=set)
    copies: Counter[str] = field(default_factory=Counter)
    """How often a producer sent it beyond the first time: to the broker each is a message of its own (G3)."""
    attempted_twice: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def found(self, message_id: str) -> bool:
        places = (self.handled, self.effects, self.letters, self.on_broker, self.spooled)
        return any(message_id in place for place in places)

    def set_apart(self, message_id: str) -> bool:
        """One letter, because its worker died of it."""
        return _set_apart(self.letters.get(message_id, []))


@dataclass(frozen=True)
class Verdict:
    attempted: int
    acknowledged: int
    handled: int
    """Messages handled with success at least once."""
    letters: int
    set_apart: int
    lost: list[str]
    recovered: list[str]
    """Never acknowledged and found all the same: harmless, for their producer will send them again."""
    unexpected: list[str]
    """Found, but nobody ever sent it."""
    duplicated: int
    """Successes beyond the first of each message."""
    doubled: list[str]
    misplaced: list[str]
    damaged: list[str]

    def problems(self, *, duplicates_allowed: int | None = 0, set_apart_allowed: int = 0) -> list[str]:
        """Nothing, if every promise was kept. `None`: any number of duplicates."""
        found = [f"lost: {each}" for each in self.lost]
        found += [f"nobody sent: {each}" for each in self.unexpected]
        found += [*self.doubled, *self.misplaced, *self.damaged]
        if duplicates_allowed is not None and self.duplicated > duplicates_allowed:
            found.append(f"{self.duplicated} duplicates, at most {duplicates_allowed} allowed")
        if self.set_apart > set_apart_allowed:
            found.append(f"{self.set_apart} set apart for process deaths, at most {set_apart_allowed} possible")
        return found


def gather(
    history: Path,
    *,
    broker: Broker | None = None,
    store: Database | None = None,
    effects: Path | None = None,
    spool: Path | None = None,
) -> Evidence:
    """Reads the history and whatever places are named."""
    evidence = Evidence()
    for line in read_history(history):
        _note(evidence, line)
    if broker is not None and _sound(broker.damage(), evidence):
        evidence.on_broker = broker.messages()
    if store is not None and _sound(places.damage(store), evidence):
        for letter in places.letters(store):
            evidence.letters[letter.message_id].append(letter)
        evidence.damage += places.contradictions(store)
    if effects is not None and _sound(places.damage(effects), evidence):
        evidence.effects = places.effects(effects)
    if spool is not None:
        evidence.spooled = places.spooled(spool, evidence.expect)
    return evidence


def _sound(damage: list[str], evidence: Evidence) -> bool:
    """A damaged file holds nothing that counts."""
    evidence.damage += damage
    return not damage


def judge(evidence: Evidence, *, quiet: bool = True) -> Verdict:
    """`quiet`: all work is done, so each message must be where it belongs and not under way any more."""
    letters = [letter for several in evidence.letters.values() for letter in several]
    successes = evidence.handled + evidence.effects
    return Verdict(
        attempted=len(evidence.expect),
        acknowledged=len(evidence.acknowledged),
        handled=len(successes),
        letters=len(letters),
        set_apart=sum(evidence.set_apart(each) for each in evidence.expect),
        lost=sorted(each for each in evidence.acknowledged if not evidence.found(each)),
        recovered=sorted(
            each for each in evidence.expect if each not in evidence.acknowledged and evidence.found(each)
        ),
        unexpected=sorted(_seen(evidence) - evidence.expect.keys()),
        duplicated=sum(count - 1 for count in successes.values()),
        doubled=_doubled(evidence, letters),
        misplaced=_misplaced(evidence) if quiet else [],
        damaged=evidence.damage + _altered(evidence, letters),
    )


def _note(evidence: Evidence, line: dict[str, Any]) -> None:
    message_id = line["id"]
    if line["op"] == SEND:
        if message_id in evidence.expect:
            evidence.attempted_twice.append(message_id)
        evidence.expect[message_id] = line["expect"]
        evidence.bodies[message_id] = line["body"]
    elif line["op"] == SENT:
        evidence.acknowledged.add(message_id)
    elif line["op"] == AGAIN:
        evidence.copies[message_id] += 1
    elif line["op"] == OK:
        evidence.handled[message_id] += 1
        if line.get("redrive"):
            evidence.redrive_ids[message_id].add(line["redrive"])


def _seen(evidence: Evidence) -> set[str]:
    return {*evidence.handled, *evidence.effects, *evidence.letters, *evidence.on_broker}


def _doubled(evidence: Evidence, letters: list[Letter]) -> list[str]:
    found = [f"two messages with one id: {each}" for each in evidence.attempted_twice]
    found += [
        f"{len(each)} letters of message {key}"
        for key, each in evidence.letters.items()
        if len(each) > 1 + evidence.copies[key]
    ]
    found += _repeated("letters with one identity", (letter.identity for letter in letters))
    found += [f"{len(ids)} redrive ids for {each}" for each, ids in evidence.redrive_ids.items() if len(ids) > 1]
    return found + [
        f"letter {letter.id} has {letter.redrives} redrive ids and {letter.generation} lives"
        for letter in letters
        if letter.redrives > letter.generation
    ]


def _repeated(what: str, values: Iterable[str]) -> list[str]:
    return [f"{count} {what}: {each}" for each, count in Counter(values).items() if count > 1]


def _altered(evidence: Evidence, letters: list[Letter]) -> list[str]:
    return [
        f"letter {letter.id} does not hold the bytes that were sent"
        for letter in letters
        if letter.message_id in evidence.bodies and letter.body != evidence.bodies[letter.message_id]
    ]


def _misplaced(evidence: Evidence) -> list[str]:
    found = []
    for message_id, expect in evidence.expect.items():
        where = _whereabouts(evidence, message_id)
        if message_id in evidence.on_broker or message_id in evidence.spooled:
            found.append(f"still under way: {where}")
        elif evidence.found(message_id) and not _RIGHT[expect](evidence, message_id):
            found.append(f"expected {expect}: {where}")
    return found


def _whereabouts(evidence: Evidence, message_id: str) -> str:
    letters = [f"{letter.status} ({letter.how})" for letter in evidence.letters.get(message_id, [])]
    handled, effects = evidence.handled[message_id], evidence.effects[message_id]
    on_broker, spooled = evidence.on_broker[message_id], message_id in evidence.spooled
    return f"{message_id} {handled=} {effects=} {letters=} {on_broker=} {spooled=}"


def _set_apart(letters: list[Letter]) -> bool:
    return len(letters) == 1 and letters[0].status == "QUARANTINED" and "process deaths" in (letters[0].how or "")


def _is_handled(evidence: Evidence, message_id: str) -> bool:
    letters = evidence.letters.get(message_id, [])
    return _set_apart(letters) or (not letters and evidence.handled[message_id] > 0)


def _has_effect(evidence: Evidence, message_id: str) -> bool:
    letters, effects = evidence.letters.get(message_id, []), evidence.effects[message_id]
    return effects == 1 if not letters else _set_apart(letters) and effects <= 1


def _is_letter(evidence: Evidence, message_id: str) -> bool:
    letters = evidence.letters.get(message_id, [])
    in_place = bool(letters) and all(letter.status in WAITING for letter in letters)
    return in_place and message_id not in evidence.handled


def _is_resolved(evidence: Evidence, message_id: str) -> bool:
    letters = evidence.letters.get(message_id, [])
    if _set_apart(letters):
        return True
    confirmed = [letter for letter in letters if (letter.status, letter.how) == ("RESOLVED", "confirmed")]
    return len(letters) == len(confirmed) == 1 and evidence.handled[message_id] > 0


def _is_anywhere(evidence: Evidence, message_id: str) -> bool:
    return len(evidence.letters.get(message_id, [])) <= 1


_RIGHT: dict[str, Callable[[Evidence, str], bool]] = {
    "handled": _is_handled,
    "effect": _has_effect,
    "letter": _is_letter,
    "resolved": _is_resolved,
    "any": _is_anywhere,
}
