"""What the settings say about runs: values for what nobody asks for, ceilings, and who has to agree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec

from redrive.approvals import ApprovalRules
from redrive.run import WINDOW, Brakes, Canary, RunPlan


def _never(_queue: str) -> float | None:
    return None


class RunPolicy(msgspec.Struct, frozen=True, kw_only=True):
    rate: float | None = None
    in_flight: int = WINDOW
    """Letters that one engine has claimed and not marked yet."""
    canary: Canary = Canary()
    brakes: Brakes = Brakes()
    ceilings: Mapping[str, float] = {}
    """Messages per second that a queue may get from all runs together."""
    expire_after: Callable[[str], float | None] = _never
    """Seconds after which the letters of a queue are of no use any more."""
    approval: ApprovalRules = ApprovalRules()

    @property
    def named_queues(self) -> frozenset[str]:
        """Those that something is said about, so that it matters whether a run touches them."""
        return frozenset(self.ceilings) | self.approval.queues

    def limited(self, plan: RunPlan, targets: Collection[str]) -> RunPlan:
        """The plan at a rate that no ceiling of its target queues forbids, and with those ceilings."""
        ceilings = {queue: self.ceilings[queue] for queue in sorted(targets) if queue in self.ceilings}
        return msgspec.structs.replace(plan, rate=self.rate_to(targets, plan.rate), ceilings=ceilings)

    def rate_to(self, targets: Collection[str], rate: float | None) -> float | None:
        """That rate, or the lowest ceiling of these queues if it is lower."""
        rates = [self.ceilings[queue] for queue in targets if queue in self.ceilings]
        return min(rates if rate is None else [*rates, rate], default=None)
