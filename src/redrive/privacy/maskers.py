"""Which masker is whose: by a queue's name, or by a pattern that fits it (`pay*`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.access import fits
from redrive.privacy.masking import Masker
from redrive.privacy.rules import MaskingRules

if TYPE_CHECKING:
    from collections.abc import Mapping


class Maskers:
    """A queue has the rules under its own name, else those of the longest pattern that fits it, beside the general
    ones; without any, the general ones alone.
    """

    def __init__(
        self, general: MaskingRules | None = None, queues: Mapping[str, MaskingRules] | None = None
    ) -> None:
        general, queues = general or MaskingRules(), queues or {}
        self.general = Masker(general)
        self._of = {pattern: Masker(general.beside(own)) for pattern, own in queues.items()}
        self._patterns = sorted((each for each in queues if each.endswith("*")), key=len, reverse=True)

    def for_queue(self, name: str) -> Masker:
        if name in self._of:
            return self._of[name]
        return next((self._of[each] for each in self._patterns if fits(name, each)), self.general)


UNMASKED = Maskers(MaskingRules(enabled=False))
"""For whoever has to see every byte: tests of an application, on their own machine."""
