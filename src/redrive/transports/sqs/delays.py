"""How long SQS can wait: fifteen minutes before a message is first received, twelve hours after."""

from __future__ import annotations

import math

LONGEST_DELAY = 900
"""Seconds that SQS keeps a message back after it was sent."""
LONGEST_INVISIBLE = 12 * 3600
LONGEST_HOP = LONGEST_INVISIBLE - 60
"""Seconds that a message which was received too early is made invisible for."""
_MARGIN = 3600


def hops_of(delay: float) -> int:
    """How often a message that waits so long is received too early."""
    return max(math.ceil((math.ceil(delay) - LONGEST_DELAY) / LONGEST_HOP), 0)


def longest_delay(retention: int) -> int:
    """Beyond it, SQS might delete a message before it is due."""
    return max(retention - _MARGIN, min(LONGEST_DELAY, retention // 2))
