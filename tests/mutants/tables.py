"""All mutants, by what they break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutants import desk, driver, messages, order, worker

if TYPE_CHECKING:
    from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *driver.MUTANTS,
    *messages.MUTANTS,
    *worker.MUTANTS,
    *order.MUTANTS,
    *desk.MUTANTS,
)
