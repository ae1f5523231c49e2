"""What is hidden in which queue beside what is found everywhere: fields by their names, places by their paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

Path = tuple[str, ...]
ANY = "*"
_PAYLOAD, _METADATA = "data", "metadata"
_FACTS = ("message_id", "timestamp", "version", "queue")
"""Of our envelope: they are the message's id, queue and time, which everybody sees."""


class MaskingRules(msgspec.Struct, frozen=True, kw_only=True):
    enabled: bool = True
    """False: everything is shown as it is."""
    fields: tuple[str, ...] = ()
    """More names of fields and headers that are hidden: whole names or their last words, however spelled."""
    hidden: tuple[Path, ...] = ()
    """Places in a payload that are hidden with all below them; `*` is any key or number. A first `data` may be
    written as in filters, where it is the payload itself.
    """
    shown: tuple[Path, ...] = ()
    """Places that are shown whatever a name says, with all below them that has no such name itself; what detectors
    find there is hidden all the same.
    """

    def beside(self, own: MaskingRules) -> MaskingRules:
        """A queue's own rules beside these: everything that either says. Whether it masks is for the queue."""
        return MaskingRules(
            enabled=own.enabled,
            fields=(*self.fields, *own.fields),
            hidden=(*self.hidden, *own.hidden),
            shown=(*self.shown, *own.shown),
        )


class Place:
    """A place that some path leads through."""

    __slots__ = ("below", "hidden", "kept", "shown")

    def __init__(self) -> None:
        self.below: dict[str, Place] = {}
        self.hidden = self.shown = self.kept = False

    def at(self, path: Iterable[str]) -> Place:
        found = self
        for part in path:
            found = found.below.setdefault(part, Place())
        return found


Places = tuple[Place, ...]


def step(places: Places, name: str) -> Places:
    """Where the paths stand that have come so far, one key or number further."""
    found = [below for place in places for below in (place.below.get(name), place.below.get(ANY)) if below]
    return tuple(found)


class PlaceRules:
    """The paths of a queue, for bodies of ours and for those of others."""

    def __init__(self, rules: MaskingRules) -> None:
        payload, envelope = Place(), Place()
        envelope.below[_PAYLOAD] = payload
        for name in _FACTS:
            envelope.at((name,)).kept = True
        for mark, paths in (("hidden", rules.hidden), ("shown", rules.shown)):
            for path in paths:
                self._mark(payload, envelope, path, mark)
        self.of_payload: Places = (payload,) if rules.hidden or rules.shown else ()
        self.of_envelope: Places = (envelope,)
        self.of_metadata: Places = step(self.of_envelope, _METADATA)

    @staticmethod
    def _mark(payload: Place, envelope: Place, path: Path, mark: str) -> None:
        setattr(payload.at(path), mark, True)
        if path[:1] == (_PAYLOAD,):
            setattr(payload.at(path[1:]), mark, True)
        if path[:1] == (_METADATA,):
            setattr(envelope.at(path), mark, True)
