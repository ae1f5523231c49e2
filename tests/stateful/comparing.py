"""What the store holds and shows, against the model: letters, claims, redrives, runs, numbers and history."""

from __future__ import annotations

from collections import Counter
from typing import Any

from redrive.testing.letters import a_group
from stateful.ground import Ground, Shown
from stateful.model_runs import Model, Run

PASSED = {"not pending", "not found", "not edited", "edited meanwhile", "came back meanwhile"}
PROGRESS_EVERY = 3
TOLD_EVERY = 20
"""Steps after which all that people are shown is looked at too; it takes longer than the rows themselves."""


def compare(ground: Ground, model: Model) -> None:
    shown = ground.look()
    _letters(shown, model)
    _claims(shown, model)
    _redrives(shown, model)
    _history(shown, model)
    _numbers(shown, model)
    _runs(shown, model)
    if ground.steps % PROGRESS_EVERY == 0:
        _progress(ground, model)
    if ground.steps % TOLD_EVERY == 0:
        _told(ground, model)


def same(shown: Any, wanted: Any) -> None:
    assert shown == wanted, f"the store holds {shown!r}, the table says {wanted!r}"


def _letters(shown: Shown, model: Model) -> None:
    wanted = {
        (
            each.id,
            each.status,
            each.generation,
            each.revision,
            each.fence,
            each.redrive_id,
            each.refusals,
            each.deliveries,
            each.queue,
        )
        for each in model.letters.values()
    }
    same(set(shown.letters), wanted)


def _claims(shown: Shown, model: Model) -> None:
    """At most one per letter, and one exactly while it is REDRIVING."""
    wanted = sorted(
        (each.id, held.redrive_id, held.fence, held.owner, held.run, held.target)
        for each in model.letters.values()
        if (held := each.held) is not None
    )
    same(sorted(shown.claims), wanted)
    redriving = {each.id for each in model.letters.values() if each.status == "REDRIVING"}
    same({row[0] for row in shown.claims}, redriving)


def _redrives(shown: Shown, model: Model) -> None:
    taken = {(*row[:5], bool(row[5]), *row[6:]) for row in shown.redrives if row[6] not in PASSED}
    wanted = {
        (each.id, each.letter, each.generation, each.revision, each.run, each.sent, each.outcome, each.returned_as)
        for each in model.redrives.values()
    }
    same(taken, wanted)
    passed = Counter((row[4], row[1], row[6]) for row in shown.redrives if row[6] in PASSED)
    expected = {(run.id, *each): number for run in model.runs.values() for each, number in run.passed.items()}
    same(passed, Counter(expected))


def _history(shown: Shown, model: Model) -> None:
    """One line for each change since the last look, and none for what changed nothing."""
    new, model.lines = model.lines, []
    same(sorted(row[1:] for row in shown.lines), sorted(new))


def _by_group(model: Model) -> Counter[tuple[str, str]]:
    return Counter((a_group(each.group).id, each.status) for each in model.letters.values())


def _numbers(shown: Shown, model: Model) -> None:
    same(shown.counted, _by_group(model))
    same(shown.counters, shown.counted)


def _told(ground: Ground, model: Model) -> None:
    """What people are shown."""
    groups = ground.run(ground.store.groups())
    counted = {(each.id, status): number for each in groups for status, number in each.by_status.items()}
    same(counted, dict(_by_group(model)))
    for each in groups:
        same((each.total, each.pending), (sum(each.by_status.values()), each.by_status.get("PENDING", 0)))
    statistics = ground.run(ground.store.statistics())
    statuses = Counter(each.status for each in model.letters.values())
    same({status: number for status, number in statistics.by_status.items() if number}, dict(statuses))
    same(statistics.total, statuses.total())
    for run in list(model.runs.values())[-1:]:
        _outcomes(ground, model, run)
    for letter in list(model.letters.values())[-1:]:
        found = ground.run(ground.store.get(letter.id))
        assert found is not None
        same([each.message.body for each in found.revisions], letter.bodies)
        told = zip(found.generations, found.failures, strict=True)
        same({(generation, each.attempt): each.at for generation, each in told}, letter.told)


def _outcomes(ground: Ground, model: Model, run: Run) -> None:
    found = ground.run(ground.store.outcomes(run.id, limit=500))
    mine = [each for each in model.redrives.values() if each.run == run.id]
    wanted = Counter((each.letter, each.outcome or ("sent" if each.sent else "claimed")) for each in mine)
    same(Counter((each.letter_id, each.outcome) for each in found), wanted + run.passed)


def _runs(shown: Shown, model: Model) -> None:
    same(
        {(*row[:5], bool(row[5])) for row in shown.runs},
        {
            (each.id, each.status, each.total, each.taken, each.stage, each.exhausted)
            for each in model.runs.values()
        },
    )
    for each in model.runs.values():
        told = model.progress(each)
        same(each.taken, told["in_hand"] + told["sent"] + told["refused"] + told["released"])


def _progress(ground: Ground, model: Model) -> None:
    found = ground.run(ground.store.runs(limit=500)) if model.runs else []
    same({each.id for each in found}, set(model.runs))
    for each in found:
        wanted = model.progress(model.runs[each.id])
        same({name: getattr(each.progress, name) for name in wanted}, wanted)
        assert each.progress.without_word >= 0
