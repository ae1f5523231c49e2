"""Python's collector of cyclic garbage, told what a process that works for long is like.

Hundreds of messages in hand are tens of thousands of objects, all alive, none in a cycle. By default they are
walked again after every 700 new ones: a fifth of what a failing message costs.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEW_ONES = 20_000


@contextmanager
def seldom_looked_for() -> Iterator[None]:
    """As long as it lasts. Whoever has switched the collector off, or made it rarer still, is left alone."""
    usual = gc.get_threshold()
    first = max(usual[0], _NEW_ONES) if usual[0] else 0
    gc.set_threshold(first, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
