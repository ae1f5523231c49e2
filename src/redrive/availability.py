"""Whether the store is there, as far as this process knows: one for everybody in it who uses the store (R26).

1. While it is there everybody asks it, each within a deadline.
2. Whoever finds it away finds it away for all: from then on they are told so at once, and ask nothing.
3. One at a time asks again, each time a little later. Any answer, be it a refusal, is a sign of life.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from redrive.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.clock import Clock

T = TypeVar("T")

DEADLINE = 15.0
_FIRST, _LAST = 1.0, 10.0
"""Seconds between two questions to a store that is away."""


class Availability:
    def __init__(self, *, clock: Clock, random: Callable[[], float]) -> None:
        self._clock = clock
        self._random = random
        self._deadline = DEADLINE
        self._wait = 0.0
        self._again_at = 0.0
        self._probing = False

    @property
    def away(self) -> bool:
        return self._wait > 0

    @property
    def due(self) -> bool:
        """Whether a question would be asked now, and not be answered with Unreachable at once."""
        return not self.away or (not self._probing and self._clock.monotonic() >= self._again_at)

    async def ask(self, question: Callable[[], Awaitable[T]], *, patient: bool = False) -> T:
        """What the question gives. Unreachable if the store does not answer, or did not a moment ago. Patient: it
        is a long piece of work whose steps have their own deadlines.
        """
        if not self.due:
            raise Unreachable("the store was away a moment ago", remedy="bring it back; work goes on by itself")
        probing = self._probing = self.away
        try:
            async with asyncio.timeout(None if patient else self._deadline):
                answer = await question()
        except (Unreachable, TimeoutError) as error:
            if probing or not self.away:  # of many who find out at the same moment, one
                self._postpone()
            raise self._explain(error) from error
        except Exception:
            self._wait = 0.0
            raise
        finally:
            if probing:
                self._probing = False
        self._wait = 0.0
        return answer

    def _postpone(self) -> None:
        # Decorrelated jitter: processes that lost the store together do not come back together.
        span = max(2 * _FIRST, 3 * self._wait) - _FIRST
        self._wait = min(_LAST, _FIRST + self._random() * span)
        self._again_at = self._clock.monotonic() + self._wait

    def _explain(self, error: Unreachable | TimeoutError) -> Unreachable:
        if isinstance(error, Unreachable):
            return Unreachable(f"the store is away: {error}", remedy=error.remedy)
        return Unreachable(
            f"the store is away: no answer within {self._deadline:g} s",
            remedy="find out what slows it down; work goes on by itself",
        )
