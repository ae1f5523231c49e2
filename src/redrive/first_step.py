"""Awaiting something by taking its first step here: what never waits pays for no timer, and no task of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

    Steps = Generator[Any, None, Any]


def rest(steps: Steps, waits_for: Any) -> Steps:
    """The way of an awaitable after its first step, which ended with `waits_for`: as `yield from` goes it."""
    while True:
        try:
            yield waits_for
        except BaseException as error:  # noqa: BLE001  whatever it is, it is for whoever waits
            try:
                waits_for = steps.throw(error)
            except StopIteration as ended:
                return ended.value
        else:
            return (yield from steps)
