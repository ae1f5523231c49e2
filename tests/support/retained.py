"""What retention has left in the store and put into archives, and that nothing is lost between the two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.letter_query import LetterQuery
from redrive.upkeep.archive import Archive
from redrive.upkeep.archive_file import read_archive

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter
    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport
    from support.desk import Desk


def in_store(desk: Desk) -> dict[str, DeadLetter]:
    async def work(store: DeadLetterStore, _transport: Transport) -> dict[str, DeadLetter]:
        found = await store.find(LetterQuery(limit=500))
        return {letter.id: letter async for letter in store.whole([each.id for each in found])}

    letters: dict[str, DeadLetter] = desk.do(work)
    return letters


def in_archive(desk: Desk) -> list[DeadLetter]:
    return [letter for path in Archive(desk.folder / ".redrive/archive").files() for letter in read_archive(path)]


def check(desk: Desk, whole: dict[str, DeadLetter], may_go: set[str]) -> None:
    """Whatever is gone is whole in an archive, nothing else is gone, and no letter is archived twice."""
    left, kept = in_store(desk), in_archive(desk)
    archived = {letter.id: letter for letter in kept}
    gone = whole.keys() - left.keys()
    assert gone <= may_go
    assert {each: archived.get(each) for each in gone} == {each: whole[each] for each in gone}
    assert {each: left[each] for each in left if each in whole} == {each: whole[each] for each in left}
    assert len(kept) == len(archived), "a letter is archived twice"
