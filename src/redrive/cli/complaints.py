"""What cannot be read in files that people name: each told once, and not without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.cli.outcome import complain
from redrive.cli.output import note

if TYPE_CHECKING:
    from redrive.imports import Bad

_MOST = 100


class Complaints:
    def __init__(self) -> None:
        self.number = 0

    def tell(self, source: object, bad: Bad) -> None:
        self.number += 1
        if self.number <= _MOST:
            complain(f"{source}:{bad.line}: {bad.why}")
        elif self.number == _MOST + 1:
            note("... further rows that cannot be read are only counted.")
